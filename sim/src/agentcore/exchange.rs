//! One invocation of the runtime.

use serde_json::Value;

use super::sessions::Entered;
use super::{Form, JSON, Service, agent, error_body, error_fields};
use crate::clock::{Alarm, now};
use crate::http::{Conn, Framing, Headers, Outlet, RequestHead};
use crate::truth::{ExchangeTruth, Field, Mark, Outcome, Recorder, Role, TokenTruth};

/// The field that names the session.
pub(super) const SESSION: &str = "x-amzn-bedrock-agentcore-runtime-session-id";

/// A request whose body is there.
pub(super) struct Asked<'a> {
    pub(super) head: &'a RequestHead,
    pub(super) body: &'a [u8],
    /// When the last bytes of head and body were read, ns.
    pub(super) read_at: (u64, u64),
    pub(super) connection: u64,
}

/// The client has gone.
struct Gone;

/// Answers an invocation; whether the connection is still good.
pub(super) async fn invoke(
    service: &Service,
    conn: &mut Conn,
    alarm: &mut Alarm,
    asked: &Asked<'_>,
) -> bool {
    let mut truth = ExchangeTruth {
        role: Role::Engine,
        call: asked.head.headers.get("x-hopscope-call").map(str::to_owned),
        attempt: 1,
        connection: asked.connection,
        ..ExchangeTruth::default()
    };
    truth.set_read(Mark::RequestHead, asked.read_at.0);
    truth.set_read(Mark::RequestBody, asked.read_at.1);
    let mut invocation = Invocation {
        service,
        conn,
        alarm,
        asked,
        recorder: Recorder::new(&service.log, truth),
    };
    match invocation.run().await {
        Ok(outcome) => {
            invocation.recorder.truth.outcome = outcome;
            true
        }
        Err(Gone) => {
            invocation.recorder.truth.outcome = Outcome::ClientGone;
            false
        }
    }
}

/// A call of a session. Dropping it lets the next one in.
struct Turn<'s> {
    service: &'s Service,
    id: &'s str,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.service.sessions().leave(self.id, now());
    }
}

struct Invocation<'r> {
    service: &'r Service,
    conn: &'r mut Conn,
    alarm: &'r mut Alarm,
    asked: &'r Asked<'r>,
    recorder: Recorder,
}

impl Invocation<'_> {
    async fn run(&mut self) -> Result<Outcome, Gone> {
        let service = self.service;
        let id = match self.asked.head.headers.get(SESSION) {
            Some(id) => id.to_owned(),
            None => service.uuid(),
        };
        if !(33..=256).contains(&id.len()) {
            let message = "Value at 'runtimeSessionId' failed to satisfy constraint: Member must have length between 33 and 256";
            return self.fail(400, "ValidationException", message).await;
        }
        let entered = service
            .sessions()
            .enter(&service.options, &id, self.asked.read_at.1);
        let entered = match entered {
            Ok(entered) => entered,
            Err(turned) => {
                service.count_refused();
                let (status, kind) = turned.kind();
                self.fail(status, kind, turned.message()).await?;
                return Ok(Outcome::Refused);
            }
        };
        let _turn = Turn { service, id: &id };
        self.wait_until(entered.ready_at).await?;
        if entered.fails {
            service.sessions().end(&id);
            let message = "Runtime initialization time exceeded. Please make sure that initialization completes in 60s.";
            return self.fail(424, "RuntimeClientError", message).await;
        }
        let words = match self.words().await? {
            Ok(words) => words,
            Err(why) => return self.fail(424, "RuntimeClientError", &why).await,
        };
        self.say(&words, &id, entered).await?;
        Ok(Outcome::Complete)
    }

    /// What the agent says, once its models have answered.
    async fn words(&mut self) -> Result<Result<Vec<String>, String>, Gone> {
        let service = self.service;
        let Some(engine) = &service.engine else {
            return Ok(Ok(agent::script(&service.options, self.asked.connection)));
        };
        let body: Value = serde_json::from_slice(self.asked.body).unwrap_or_default();
        let prompt = body["prompt"].as_str().unwrap_or_default();
        let headers = &self.asked.head.headers;
        tokio::select! {
            biased;
            () = self.conn.gone() => Err(Gone),
            words = agent::ask(engine, &service.options, prompt, headers) => Ok(words),
        }
    }

    async fn say(&mut self, words: &[String], id: &str, entered: Entered) -> Result<(), Gone> {
        let options = &self.service.options;
        let first = now() + options.first_us * 1_000;
        let due = |piece: usize| first + piece as u64 * options.gap_us * 1_000;
        let accept = self.asked.head.headers.get("accept").unwrap_or_default();
        let form = match accept.trim() {
            JSON => Form::Json,
            _ => options.agent,
        };
        let mut headers = Headers(vec![(SESSION.to_owned(), id.as_bytes().to_vec())]);
        if entered.is_new {
            let took = entered.ready_at.saturating_sub(self.asked.read_at.1) / 1_000_000;
            let field = "x-sim-cold-start-ms".to_owned();
            headers.0.push((field, took.to_string().into_bytes()));
        }
        if form == Form::Json {
            self.wait_until(due(words.len().saturating_sub(1))).await?;
            let text = words.concat();
            let body = serde_json::json!({"result": text}).to_string();
            let mut outlet = self.whole(200, &body, headers);
            if !text.is_empty() {
                outlet.carry_token(content(text.len() as u64));
                self.recorder.truth.text_events_written += 1;
            }
            return self.flush(&mut outlet).await;
        }
        let mut outlet = self.stream(headers);
        for event in agent::opening(form) {
            outlet.piece(&[&sse(&event)]);
        }
        self.flush(&mut outlet).await?;
        let mut said = 0;
        for (number, text) in words.iter().enumerate() {
            self.wait_until(due(number)).await?;
            for event in agent::piece(form, text) {
                outlet.piece(&[&sse(&event)]);
            }
            said += text.len() as u64;
            outlet.carry_token(content(said));
            self.recorder.truth.text_events_written += 1;
            self.flush(&mut outlet).await?;
        }
        for event in agent::closing(form, &words.concat()) {
            outlet.piece(&[&sse(&event)]);
        }
        outlet.end(b"");
        outlet.carry_mark(Mark::End, None);
        self.flush(&mut outlet).await
    }

    /// Answers with an error in the form of AWS.
    async fn fail(&mut self, status: u16, kind: &str, message: &str) -> Result<Outcome, Gone> {
        let body = error_body(message);
        let mut outlet = self.whole(status, &body, error_fields(kind));
        self.flush(&mut outlet).await?;
        Ok(Outcome::Rejected)
    }

    /// A whole answer in JSON.
    fn whole(&mut self, status: u16, body: &str, mut headers: Headers) -> Outlet {
        let length = body.len();
        let field = ("content-length".to_owned(), length.to_string().into_bytes());
        headers.0.push(field);
        let mut outlet = self.begin(status, JSON, headers, Framing::Length(length as u64));
        outlet.piece(&[body.as_bytes()]);
        outlet.carry_mark(Mark::End, None);
        outlet
    }

    fn stream(&mut self, mut headers: Headers) -> Outlet {
        self.recorder.truth.streamed = true;
        let framing = match self.asked.head.minor {
            0 => Framing::UntilClose,
            _ => Framing::Chunked,
        };
        if framing == Framing::Chunked {
            let field = "transfer-encoding".to_owned();
            headers.0.push((field, b"chunked".to_vec()));
        }
        self.begin(200, "text/event-stream; charset=utf-8", headers, framing)
    }

    /// The head of an answer.
    fn begin(
        &mut self,
        status: u16,
        content_type: &str,
        mut headers: Headers,
        framing: Framing,
    ) -> Outlet {
        let mut add = |name: &str, value: &str| {
            headers.0.push((name.to_owned(), value.as_bytes().to_vec()));
        };
        add("content-type", content_type);
        if !self.asked.head.keeps_alive() {
            add("connection", "close");
        }
        self.recorder.truth.status = Some(status);
        let mut outlet = Outlet::new(framing);
        outlet.head(status, &headers);
        outlet.carry_mark(Mark::ResponseHead, None);
        outlet
    }

    /// Waits for an instant, or for the client to go.
    async fn wait_until(&mut self, deadline: u64) -> Result<(), Gone> {
        tokio::select! {
            biased;
            () = self.conn.gone() => Err(Gone),
            waited = self.alarm.until(deadline) => waited.map_err(|_| Gone),
        }
    }

    async fn flush(&mut self, outlet: &mut Outlet) -> Result<(), Gone> {
        let flushed = outlet.flush(self.conn, &mut self.recorder.truth).await;
        flushed.map(|_| ()).map_err(|_| Gone)
    }
}

/// An event in the way that AgentCore's SDK writes what an agent yields.
fn sse(event: &Value) -> Vec<u8> {
    format!("data: {event}\n\n").into_bytes()
}

fn content(end_text_offset: u64) -> TokenTruth {
    TokenTruth {
        choice: 0,
        field: Field::Content,
        tool: 0,
        end_text_offset,
        read_at: None,
        write_begin: 0,
        write_end: 0,
    }
}
