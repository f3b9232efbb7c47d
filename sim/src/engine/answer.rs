//! Answering whole: not streamed, or with an error.

use serde_json::{Value, json};

use super::bedrock;
use super::pace::Pace;
use super::plan::Plan;
use super::reply::{Ending, Next, Reply, Stop};
use super::shape::{Said, Shape};
use crate::aws::{self, Refused};
use crate::http::{Framing, Headers, error_body};
use crate::truth::{Field, Mark, Outcome, TokenTruth};

/// Sends the whole answer when its last token is due.
pub(super) async fn whole(
    reply: &mut Reply<'_>,
    plan: &Plan,
    mut pace: Pace<'_>,
    start: u64,
) -> Ending {
    let faults = &plan.faults;
    if faults.stall_after.is_some() {
        reply.conn.gone().await;
        return Err(Stop::fault(Next::Close));
    }
    let shape = Shape::of(plan, reply.read_at());
    let (choices, texts) = choices(plan, &shape);
    pace.all(reply, plan.text(0).count(), start).await?;
    let counts = plan.used(&reply.recorder.truth);
    let body = shape.answer(&choices, plan.finish_reason, counts);
    let claimed = body.len() as u64 + u64::from(faults.truncate_length) * 1024;
    let cut = faults.close_after.is_some() || faults.reset_after.is_some();
    let sent = if cut { body.len() / 2 } else { body.len() };
    let mut extra = shape.answer_fields(counts);
    if faults.fin_after_response {
        Reply::promise_keep_alive(&mut extra);
    }
    head(reply, 200, claimed, &extra, faults.informational);
    reply.outlet.piece(&[&body.as_bytes()[..sent]]);
    if !cut {
        for text in texts {
            reply.recorder.truth.text_events_written += 1;
            reply.outlet.carry_token(text);
        }
        for mark in [Mark::Finish, Mark::Usage, Mark::End] {
            reply.outlet.carry_mark(mark, None);
        }
    }
    reply.flush().await?;
    ending(plan)
}

fn ending(plan: &Plan) -> Ending {
    let faults = &plan.faults;
    if faults.reset_after.is_some() {
        return Err(Stop::fault(Next::Reset));
    }
    if faults.close_after.is_some() || faults.truncate_length {
        return Err(Stop::fault(Next::Close));
    }
    let next = if faults.fin_after_response {
        Next::Close
    } else {
        Next::KeepAlive
    };
    Ok((Outcome::Complete, next))
}

/// Sends an error and ends the exchange with `outcome`.
pub(super) async fn error(
    reply: &mut Reply<'_>,
    status: u16,
    message: &str,
    outcome: Outcome,
) -> Ending {
    let (body, mut extra) = of_kind(reply, status, bedrock::error_type(status), message);
    if !reply.aws && matches!(status, 429 | 503) {
        extra.0.push(("retry-after".to_owned(), b"1".to_vec()));
    }
    send_error(reply, status, &body, &extra, outcome).await
}

/// Sends why a request is not signed as it must be.
pub(super) async fn refused(reply: &mut Reply<'_>, refused: &Refused) -> Ending {
    let (body, mut extra) = of_kind(reply, 403, refused.kind, &refused.message);
    extra.0.push(refused.field());
    send_error(reply, 403, &body, &extra, Outcome::Rejected).await
}

/// The body of an error and the fields that go with it. Bedrock names its type in a field.
pub(super) fn of_kind(
    reply: &Reply<'_>,
    status: u16,
    kind: &str,
    message: &str,
) -> (String, Headers) {
    if !reply.aws {
        return (error_body(status, message), Headers::default());
    }
    let body = json!({"message": message}).to_string();
    let field = ("x-amzn-errortype".to_owned(), aws::error_field(kind));
    (body, Headers(vec![field]))
}

/// Sends an error with this JSON body and ends the exchange with `outcome`.
pub(super) async fn send_error(
    reply: &mut Reply<'_>,
    status: u16,
    body: &str,
    extra: &Headers,
    outcome: Outcome,
) -> Ending {
    head(reply, status, body.len() as u64, extra, false);
    reply.outlet.piece(&[body.as_bytes()]);
    reply.outlet.carry_mark(Mark::End, None);
    reply.flush().await?;
    Ok((outcome, Next::KeepAlive))
}

fn head(reply: &mut Reply<'_>, status: u16, length: u64, extra: &Headers, informational: bool) {
    reply.open(Framing::Length(length));
    if informational {
        let hints = b"HTTP/1.1 103 Early Hints\r\nlink: </sim>; rel=preload\r\n\r\n";
        reply.outlet.raw(hints);
    }
    let mut headers = reply.headers("application/json");
    headers.0.extend_from_slice(&extra.0);
    let length = length.to_string().into_bytes();
    headers.0.push(("content-length".to_owned(), length));
    reply.recorder.truth.status = Some(status);
    reply.outlet.head(status, &headers);
    reply.outlet.carry_mark(Mark::ResponseHead, None);
}

/// The choices of the answer and the ends of their texts.
fn choices(plan: &Plan, shape: &Shape) -> (Vec<Value>, Vec<TokenTruth>) {
    let mut choices = Vec::new();
    let mut ends = Vec::new();
    for choice in 0..plan.choices {
        let (mut content, mut reasoning) = (String::new(), String::new());
        let mut tools: Vec<String> = Vec::new();
        for added in plan.text(choice) {
            match added.field {
                Field::Content => content.push_str(&added.text),
                Field::Reasoning => reasoning.push_str(&added.text),
                Field::ToolArguments if added.opens => tools.push(added.text),
                Field::ToolArguments => {
                    if let Some(tool) = tools.last_mut() {
                        tool.push_str(&added.text);
                    }
                }
            }
        }
        let arguments = (0..)
            .zip(&tools)
            .map(|(tool, text)| (Field::ToolArguments, tool, text));
        let texts = [
            (Field::Reasoning, 0, &reasoning),
            (Field::Content, 0, &content),
        ];
        for (field, tool, text) in texts.into_iter().chain(arguments) {
            if !text.is_empty() {
                ends.push(whole_text(choice, field, tool, text.len()));
            }
        }
        let said = Said {
            content,
            reasoning,
            calls: calls_json(shape, &tools),
        };
        choices.push(shape.choice(plan, choice, &said));
    }
    (choices, ends)
}

fn whole_text(choice: u16, field: Field, tool: u16, length: usize) -> TokenTruth {
    TokenTruth {
        choice,
        field,
        tool,
        end_text_offset: length as u64,
        read_at: None,
        write_begin: 0,
        write_end: 0,
    }
}

fn calls_json(shape: &Shape, tools: &[String]) -> Vec<Value> {
    (0..)
        .zip(tools)
        .map(|(tool, arguments)| {
            let (id, name) = shape.named(tool);
            json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": arguments}
            })
        })
        .collect()
}
