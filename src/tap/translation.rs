//! OpenAI's chat completions for clients, Bedrock's Converse for the upstream.
//!
//! The request is read to its end and translated before it goes on; of a streamed answer each read is translated as
//! it comes and written at once; any other answer is held until it is whole. The record is of what the upstream was
//! asked and said. The time all of it takes lies between a read's stamp and its write's: it is part of the tap's own
//! delay.

use super::context::TapContext;
use super::exchange::Client;
use super::fault::Fault;
use super::head::{RequestHead, ResponseHead};
use super::live::Live;
use super::whole::{Halt, replace_body, whole_body};
use config::chain::{Translate, Unsupported};
use record::stamp::Arrival;
use std::time::{SystemTime, UNIX_EPOCH};
use translate::{Naming, Options, Stream};
use wire::Dialect;

/// Translates what passes one tap.
pub(crate) struct Translator(Options);

impl From<&Translate> for Translator {
    fn from(written: &Translate) -> Self {
        Self(Options {
            model: written.model.clone(),
            cache_system_from: written
                .cache_system_from
                .map(|from| usize::try_from(from).unwrap_or(usize::MAX)),
            unsupported: match written.unsupported {
                Unsupported::Refuse => translate::Unsupported::Refuse,
                Unsupported::Drop => translate::Unsupported::Drop,
            },
        })
    }
}

impl Translator {
    /// Translates a request: `head` and `rest` become what is sent.
    pub(crate) async fn request(
        &self,
        tap: &TapContext,
        client: &mut Client,
        head: &mut RequestHead,
        (rest, read): (&mut Vec<u8>, &mut Arrival),
        live: &mut Live,
    ) -> Result<Translation, Halt> {
        if head.method != "POST" || Dialect::from_path(&head.target) != Dialect::OpenAiChat {
            let message = format!(
                "hopscope: tap {} translates POST …/chat/completions only, not {} {}",
                tap.name,
                head.method,
                head.path()
            );
            return Err(Fault::new(404, "invalid_request_error", message).into());
        }
        let body = whole_body(tap, client, head, (rest, read)).await?;
        let made = translate::request(&body, &self.0).map_err(|refusal| {
            Fault::new(400, "invalid_request_error", format!("hopscope: {refusal}"))
        })?;
        head.target = made.path;
        // What told of the client's own body and of the answer it takes; its key is not the upstream's.
        const OFF: [&str; 4] = ["content-type", "accept", "accept-encoding", "authorization"];
        head.fields
            .retain(|(name, _)| !OFF.iter().any(|off| name.eq_ignore_ascii_case(off)));
        let json = b"application/json".to_vec();
        head.fields.push(("content-type".to_owned(), json));
        replace_body(head, rest, made.body);
        live.translated(head);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Translation {
            naming: Naming {
                id: format!("chatcmpl-{:016x}", live.exchange.id),
                model: made.model,
                created: since.map_or(0, |since| since.as_secs()),
            },
            include_usage: made.include_usage,
            dropped: made.dropped,
            answer: Answer::None,
        })
    }
}

/// The translation of one answer.
pub(crate) struct Translation {
    naming: Naming,
    include_usage: bool,
    dropped: Vec<String>,
    answer: Answer,
}

enum Answer {
    /// Its head has not come.
    None,
    Stream(Box<Stream>),
    /// Held until it is whole.
    Whole {
        head: Box<ResponseHead>,
        body: Vec<u8>,
    },
}

/// How the client's side of an answer is framed.
#[derive(Clone, Copy)]
pub(crate) struct Client1 {
    /// It knows chunks: HTTP/1.1.
    pub(crate) chunks: bool,
    /// No further request follows.
    pub(crate) close: bool,
}

impl Translation {
    /// The head came in: what of the answer can be written now goes to `out`.
    pub(crate) fn head(
        &mut self,
        head: &ResponseHead,
        client: Client1,
        extra: &[(&str, &str)],
        out: &mut Vec<u8>,
    ) {
        if let Some(id) = head.value("x-amzn-requestid") {
            self.naming.id = format!("chatcmpl-{id}");
        }
        let mut head = head.clone();
        head.fields.retain(|(name, _)| {
            let own = [
                "content-type",
                "content-length",
                "transfer-encoding",
                "trailer",
            ];
            !own.iter().any(|own| name.eq_ignore_ascii_case(own))
        });
        for (name, value) in extra {
            head.fields
                .push(((*name).to_owned(), value.as_bytes().to_vec()));
        }
        if !self.dropped.is_empty() {
            let dropped = self.dropped.join(", ").into_bytes();
            head.fields.push(("x-hopscope-dropped".to_owned(), dropped));
        }
        let kind = head.content_type.as_deref().unwrap_or_default();
        if kind.starts_with("application/vnd.amazon.eventstream") {
            let mut add =
                |name: &str, value: &[u8]| head.fields.push((name.to_owned(), value.to_vec()));
            add("content-type", b"text/event-stream; charset=utf-8");
            if client.chunks {
                add("transfer-encoding", b"chunked");
            }
            head.write(out, client.close, false, &[]);
            self.answer = Answer::Stream(Box::new(Stream::new(&self.naming, self.include_usage)));
        } else {
            let head = Box::new(head);
            self.answer = Answer::Whole {
                head,
                body: Vec::new(),
            };
        }
    }

    /// The next bytes of the body came in, the last ones where it has `ended`: what they make goes to `out`.
    pub(crate) fn body(&mut self, bytes: &[u8], ended: bool, client: Client1, out: &mut Vec<u8>) {
        match &mut self.answer {
            Answer::None => {}
            Answer::Stream(stream) => {
                let mut made = Vec::new();
                stream.feed(bytes, &mut made);
                if ended {
                    stream.finish(&mut made);
                }
                if client.chunks {
                    chunk(&made, ended, out);
                } else {
                    out.append(&mut made);
                }
            }
            Answer::Whole { head, body } => {
                body.extend_from_slice(bytes);
                if ended {
                    let made = whole(head, body, &self.naming);
                    let length = made.len().to_string().into_bytes();
                    head.fields
                        .push(("content-type".to_owned(), b"application/json".to_vec()));
                    head.fields.push(("content-length".to_owned(), length));
                    head.write(out, client.close, false, &[]);
                    out.extend_from_slice(&made);
                }
            }
        }
    }
}

fn whole(head: &ResponseHead, body: &[u8], naming: &Naming) -> Vec<u8> {
    if head.status == 200
        && let Some(made) = translate::answer(body, naming)
    {
        return made;
    }
    translate::error(head.status, head.value("x-amzn-errortype"), body)
}

/// One chunk of `Transfer-Encoding: chunked`, and the last one where it is the end (RFC 9112 §7.1).
fn chunk(made: &[u8], last: bool, out: &mut Vec<u8>) {
    if !made.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", made.len()).as_bytes());
        out.extend_from_slice(made);
        out.extend_from_slice(b"\r\n");
    }
    if last {
        out.extend_from_slice(b"0\r\n\r\n");
    }
}
