//! A session of AgentCore's runtime, as its client has it: chosen by the client, one call at a time, cold at first.

use http::{HeaderName, HeaderValue};
use record::client::ClientCall;
use std::hash::{BuildHasher as _, RandomState};

/// The field that names the session (service model `bedrock-agentcore` 2024-02-28: 33 to 256 characters).
pub(crate) const SESSION: HeaderName =
    HeaderName::from_static("x-amzn-bedrock-agentcore-runtime-session-id");

/// See the module. Who calls in it holds it until the call has ended: no two calls of it are in flight.
#[derive(Debug)]
pub(crate) struct Session {
    id: HeaderValue,
    /// What is known of the next call.
    cold: Option<bool>,
}

/// What a call has of its session.
#[derive(Debug, Clone)]
pub(crate) struct InSession {
    /// The session's name, as it is sent.
    pub(crate) id: HeaderValue,
    /// The call starts it; `None` where that is not known.
    pub(crate) cold: Option<bool>,
}

impl Session {
    /// A session that nobody had before: one of an earlier run may still be warm.
    pub(crate) fn new() -> Self {
        // Their keys are random, and differ each time.
        let [high, low] = [(); 2].map(|()| RandomState::new().hash_one(record::clock::now()));
        let id = format!("hopscope-{high:016x}{low:016x}");
        Self {
            // Letters and digits: no value that a header may not have.
            id: HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("")),
            cold: Some(true),
        }
    }

    /// The next call of it.
    pub(crate) fn next(&self) -> InSession {
        InSession {
            id: self.id.clone(),
            cold: self.cold,
        }
    }

    /// Takes in how a call of it ended. A refusal or a silence does not tell whether the session came up.
    pub(crate) fn ended(&mut self, call: &ClientCall) {
        let answered = call.status.is_some_and(|s| (200..300).contains(&s));
        self.cold = match (answered, self.cold) {
            (true, _) | (false, Some(false)) => Some(false),
            (false, _) => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: Option<u16>) -> ClientCall {
        ClientCall {
            status,
            ..ClientCall::unanswered(0, 0, 0, 0)
        }
    }

    #[test]
    fn only_the_first_call_is_cold_and_only_those_behind_an_answer_are_warm() {
        let mut session = Session::new();
        let first = session.next();
        assert!((33..=256).contains(&first.id.len()));
        assert_ne!(first.id, Session::new().next().id);
        assert_eq!(first.cold, Some(true));
        for (status, cold) in [
            (Some(429), None),
            (None, None),
            (Some(200), Some(false)),
            (Some(500), Some(false)),
        ] {
            session.ended(&answered(status));
            assert_eq!(session.next().cold, cold, "{status:?}");
        }
        assert_eq!(session.next().id, first.id);
    }
}
