//! One request at an engine, from its head to the decision what to answer.

use super::pace::Pace;
use super::plan::Plan;
use super::reply::{Ending, Next, Reply, Stop};
use super::request::{Dialect, Generation};
use super::{Engine, Faults, answer, managed, play};
use crate::aws::{Received, Refused};
use crate::clock::{Alarm, now};
use crate::http::{
    Conn, Framing, Headers, HttpError, Outlet, RequestHead, error_body, simple_response,
};
use crate::truth::{ExchangeTruth, Mark, Outcome, Recorder, Role};

/// Serves the next request of a connection. `Close` also when there is none.
pub(super) async fn exchange(
    engine: &Engine,
    conn: &mut Conn,
    alarm: &mut Alarm,
    connection: u64,
) -> Next {
    let served = match next_head(engine, conn, alarm).await {
        Ok(Some(head)) => request(engine, conn, alarm, connection, head).await,
        Ok(None) => return Next::Close,
        Err(error) => Err(error),
    };
    match served {
        Ok(next) => next,
        Err(error) => {
            if let Some(status) = error.status() {
                let body = error_body(status, &error.to_string());
                let response = plain(status, "application/json", body.as_bytes(), false);
                // The client may have gone, which is its own affair.
                let _ = conn.write(&response).await;
            }
            Next::Close
        }
    }
}

async fn next_head(
    engine: &Engine,
    conn: &mut Conn,
    alarm: &mut Alarm,
) -> Result<Option<RequestHead>, HttpError> {
    let idle_ms = engine.options.keep_alive_ms;
    if idle_ms == 0 {
        return conn.request_head().await;
    }
    let deadline = now() + idle_ms * 1_000_000;
    tokio::select! {
        biased;
        head = conn.request_head() => head,
        _ = alarm.until(deadline) => Ok(None),
    }
}

async fn request(
    engine: &Engine,
    conn: &mut Conn,
    alarm: &mut Alarm,
    connection: u64,
    head: RequestHead,
) -> Result<Next, HttpError> {
    let head_read_at = conn.read_at;
    let dialect = Dialect::of(&head.method, head.path());
    let faults = match dialect {
        Some(_) => engine.faults(&head),
        None => Ok(None),
    };
    let slow = faults
        .as_ref()
        .ok()
        .and_then(|faults| faults.as_ref()?.slow_read);
    if head.expects_continue() && conn.pending().is_empty() {
        conn.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let (body, body_read_at) = conn.body(head.framing()?, slow).await?;
    let Some(dialect) = dialect else {
        return other_path(engine, conn, &head).await;
    };
    let truth = engine.begin(&head, (head_read_at, body_read_at), connection);
    let mut reply = Reply {
        conn,
        alarm,
        recorder: Recorder::new(&engine.log, truth),
        outlet: Outlet::new(Framing::Length(0)),
        minor: head.minor,
        keep_alive: head.keeps_alive(),
        aws: dialect.is_bedrock(),
    };
    if let Err(refused) = engine.check(&head, &body) {
        let ending = answer::refused(&mut reply, &refused).await;
        return Ok(settle(&mut reply, ending));
    }
    let planned = faults
        .map_err(|error| error.to_string())
        .and_then(|faults| engine.plan(dialect, &body, faults, &head));
    drop(body);
    let ending = generate(engine, &mut reply, planned, body_read_at).await;
    Ok(settle(&mut reply, ending))
}

type Planned = Result<(Plan, bool), String>;

async fn generate(engine: &Engine, reply: &mut Reply<'_>, planned: Planned, start: u64) -> Ending {
    let (mut plan, streamed) = match planned {
        Ok(planned) => planned,
        Err(message) => return answer::error(reply, 400, &message, Outcome::Rejected).await,
    };
    let truth = &mut reply.recorder.truth;
    if !plan.faults.is_none() {
        truth.fault = Some(plan.faults.to_string());
    }
    if let Some(status) = plan.faults.status {
        let message = "injected by the stand-in";
        return answer::error(reply, status, message, Outcome::Fault).await;
    }
    let mut start = start;
    if let Some(mut guardrail) = plan.guardrail.take() {
        let blocked = guardrail.look_at_input(reply).await?;
        plan.guardrail = Some(guardrail);
        if blocked {
            plan.intervene(false);
            return say(reply, &plan, streamed, (Pace::Held, start)).await;
        }
        start = now();
    }
    // Held until the answer has ended.
    let (start, _call) = match managed::enter(engine, reply, &mut plan, start).await {
        Ok(entered) => entered,
        Err(ending) => return ending,
    };
    let mut pace = match engine.pace(&mut plan, start) {
        Ok(pace) => pace,
        Err(message) => return answer::error(reply, 400, message, Outcome::Rejected).await,
    };
    reply.recorder.truth.cached_tokens = Some(plan.counts.cached);
    if let Some(mut guardrail) = plan.guardrail.take() {
        let text: Vec<String> = plan.text(0).map(|added| added.text).collect();
        pace.all(reply, text.len(), start).await?;
        pace = Pace::Held;
        let blocked = guardrail.look_at_output(&text.concat(), reply).await?;
        plan.guardrail = Some(guardrail);
        if blocked {
            plan.intervene(true);
        }
    }
    say(reply, &plan, streamed, (pace, start)).await
}

/// Says what is planned.
async fn say(
    reply: &mut Reply<'_>,
    plan: &Plan,
    streamed: bool,
    (pace, start): (Pace<'_>, u64),
) -> Ending {
    let truth = &mut reply.recorder.truth;
    truth.response_id = Some(plan.id.clone());
    truth.prompt_tokens = Some(plan.counts.prompt);
    truth.completion_tokens = Some(plan.counts.completion);
    truth.cached_tokens.get_or_insert(plan.counts.cached);
    match streamed {
        true => play::stream(reply, plan, pace).await,
        false => answer::whole(reply, plan, pace, start).await,
    }
}

fn settle(reply: &mut Reply<'_>, ending: Ending) -> Next {
    let (outcome, next) = match ending {
        Ok(ended) => ended,
        Err(Stop { outcome, next }) => (outcome, next),
    };
    reply.recorder.truth.outcome = outcome;
    match next {
        Next::KeepAlive if !reply.keep_alive => Next::Close,
        next => next,
    }
}

async fn other_path(
    engine: &Engine,
    conn: &mut Conn,
    head: &RequestHead,
) -> Result<Next, HttpError> {
    let keep_alive = head.keeps_alive();
    let mut response = match (head.method.as_str(), head.path()) {
        ("GET" | "HEAD", "/health") => plain(200, "text/plain", b"", keep_alive),
        ("GET" | "HEAD", "/v1/models") => {
            let body = engine.models();
            plain(200, "application/json", body.as_bytes(), keep_alive)
        }
        ("GET" | "HEAD", "/metrics") if engine.model.is_some() || engine.service.is_some() => {
            let body = engine.metrics();
            plain(
                200,
                "text/plain; version=0.0.4",
                body.as_bytes(),
                keep_alive,
            )
        }
        (_, "/health" | "/v1/models" | "/v1/chat/completions" | "/v1/completions") => {
            let body = error_body(405, "method not allowed");
            plain(405, "application/json", body.as_bytes(), keep_alive)
        }
        (_, path) => {
            let body = error_body(404, &format!("no such path: {path}"));
            plain(404, "application/json", body.as_bytes(), keep_alive)
        }
    };
    if head.method == "HEAD" {
        let body = response.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        response.truncate(body.map_or(response.len(), |at| at + 4));
    }
    conn.write(&response).await?;
    Ok(if keep_alive {
        Next::KeepAlive
    } else {
        Next::Close
    })
}

fn plain(status: u16, content_type: &str, body: &[u8], keep_alive: bool) -> Vec<u8> {
    simple_response(status, content_type, &Headers::default(), body, keep_alive)
}

impl Engine {
    /// Lets a request pass that is signed as it must be, where it must be.
    fn check(&self, head: &RequestHead, body: &[u8]) -> Result<(), Refused> {
        let Some(verifier) = &self.verifier else {
            return Ok(());
        };
        verifier.check(&Received {
            method: &head.method,
            target: &head.target,
            headers: &head.headers,
            body,
        })
    }

    /// Whether prompts are looked at block by block.
    fn names_blocks(&self) -> bool {
        self.model.is_some() || self.service.is_some()
    }

    /// The truth of an exchange whose request has been read.
    fn begin(
        &self,
        head: &RequestHead,
        (head_read_at, body_read_at): (u64, u64),
        connection: u64,
    ) -> ExchangeTruth {
        let mut truth = ExchangeTruth {
            role: Role::Engine,
            call: head.headers.get("x-hopscope-call").map(str::to_owned),
            connection,
            ..ExchangeTruth::default()
        };
        truth.attempt = self.attempt(truth.call.as_deref());
        truth.set_read(Mark::RequestHead, head_read_at);
        truth.set_read(Mark::RequestBody, body_read_at);
        truth
    }

    /// The faults that the request's own field asks for.
    fn faults(&self, head: &RequestHead) -> Result<Option<Faults>, super::FaultError> {
        head.headers
            .get("x-sim-fault")
            .map(str::parse)
            .transpose()
            .map(|asked| asked.or_else(|| self.next_faults()))
    }

    fn plan(
        &self,
        dialect: Dialect,
        body: &[u8],
        faults: Option<Faults>,
        head: &RequestHead,
    ) -> Planned {
        let asked = Generation::parse(
            dialect,
            head,
            body,
            self.names_blocks(),
            self.options.count(),
        )?;
        let streamed = asked.stream;
        let of_body = asked.wishes.fault.clone();
        let faults = match head.headers.get("x-sim-fault") {
            Some(_) => faults,
            None => of_body.or(faults),
        };
        let id = match head.headers.get("x-request-id") {
            Some(id) => id.to_owned(),
            None => self.random_id(),
        };
        let plan = Plan::new(&self.options, asked, faults.unwrap_or_default(), &id);
        Ok((plan, streamed))
    }
}
