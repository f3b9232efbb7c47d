//! Letting a request in under the rules of its key.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::exchange::Turn;
use super::keys::{Key, KeyRules, Refused, Side, Why};
use crate::clock::now;
use crate::delta::Delta;
use crate::prompt::visit_texts;
use crate::reading::Reader;
use crate::sse::Splitter;
use crate::truth::Outcome;

impl Turn<'_> {
    /// Checks a request against the rules of its key and counts it. Gives the body that goes on: tools may
    /// have been taken out.
    pub(super) async fn screen<'b>(
        &mut self,
        key: &Key,
        body: &'b [u8],
    ) -> io::Result<Result<Cow<'b, [u8]>, Why>> {
        let keys = &self.gateway.keys;
        let form: Value = serde_json::from_slice(body).unwrap_or_default();
        let allowed = check_model(&key.rules, &form)
            .and_then(|()| screen_tools(&key.rules, &form, keys.filters_tools()));
        let filtered = match allowed {
            Ok(filtered) => filtered,
            Err(why) => {
                keys.note_refusal(key, &why);
                return Ok(Err(why));
            }
        };
        if let Err(why) = keys.admit(key, self.body_read_at) {
            return Ok(Err(why));
        }
        let mut text = String::new();
        for field in ["messages", "prompt"] {
            visit_texts(&form[field], &mut |said| push_line(&mut text, said));
        }
        if let Err(why) = self.guard(key, Side::Input, &text, now()).await? {
            keys.settle(key, now(), 0, 0);
            return Ok(Err(why));
        }
        let body = filtered.map_or(Cow::Borrowed(body), Cow::Owned);
        Ok(Ok(match keys.cache_salt(key) {
            Some(salt) => salted(body, salt),
            None => body,
        }))
    }

    /// Spends the time of the key's guardrails on one side from `from` ns on, one after the other until one
    /// blocks.
    async fn guard(
        &mut self,
        key: &Key,
        side: Side,
        text: &str,
        from: u64,
    ) -> io::Result<Result<(), Why>> {
        let text = text.to_lowercase();
        let mut from = from;
        for guardrail in key.rules.guardrails.iter().filter(|rail| rail.on == side) {
            let station = &self.gateway.station;
            station
                .spend(self.alarm, from, guardrail.latency_us)
                .await?;
            from = now();
            let blocks = |word: &String| text.contains(&word.to_lowercase());
            if guardrail.words.iter().any(blocks) {
                let why = Why::Guardrail(guardrail.name.clone());
                self.gateway.keys.note_refusal(key, &why);
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    /// Whether answers must be held whole to be looked at.
    pub(super) fn guards_output(&self) -> bool {
        let rails = self.key.map_or(&[][..], |key| &key.rules.guardrails);
        rails.iter().any(|rail| rail.on == Side::Output)
    }

    /// The guardrails on an answer that was read at `read_at`.
    pub(super) async fn guard_output(
        &mut self,
        streamed: bool,
        body: &[u8],
        read_at: u64,
    ) -> io::Result<Result<(), Why>> {
        match self.key {
            Some(key) if self.guards_output() => {
                let text = answer_text(streamed, body);
                self.guard(key, Side::Output, &text, read_at).await
            }
            _ => Ok(Ok(())),
        }
    }

    /// Accounts for what an admitted request has used, once its exchange has ended.
    pub(super) fn settle(&self, key: &Key, body: &[u8], ended: &io::Result<Outcome>) {
        let free = matches!(ended, Ok(Outcome::CacheHit | Outcome::UpstreamFailed));
        let failed = self.truth.status.is_none_or(|status| status >= 400);
        let (prompt, completion) = match (self.truth.prompt_tokens, self.truth.completion_tokens) {
            _ if free => (0, 0),
            (Some(prompt), Some(completion)) => (prompt, completion),
            _ if failed => (0, 0),
            // No usage came: a gateway counts itself, here in words and events with text.
            _ => (words_of(body), self.truth.text_events_read),
        };
        self.gateway.keys.settle(key, now(), prompt, completion);
    }

    /// Answers a refusal before the upstream was asked.
    pub(super) async fn refuse(&mut self, why: &Why) -> io::Result<Outcome> {
        let refused = &self.gateway.counters.refused;
        refused.fetch_add(1, Ordering::Relaxed);
        self.tell(why).await?;
        Ok(Outcome::Refused)
    }

    /// Answers with the error of a refusal.
    pub(super) async fn tell(&mut self, why: &Why) -> io::Result<()> {
        let Refused {
            status,
            body,
            headers,
        } = self.gateway.keys.refused(why);
        self.send_error(status, &body, &headers).await
    }
}

/// The body with this salt of the engine's prefix cache; as it is where it is no JSON object.
fn salted<'b>(body: Cow<'b, [u8]>, salt: &str) -> Cow<'b, [u8]> {
    match serde_json::from_slice::<Value>(&body) {
        Ok(Value::Object(mut fields)) => {
            fields.insert("cache_salt".to_owned(), Value::from(salt));
            Cow::Owned(Value::Object(fields).to_string().into_bytes())
        }
        _ => body,
    }
}

fn check_model(rules: &KeyRules, form: &Value) -> Result<(), Why> {
    let Some(models) = &rules.models else {
        return Ok(());
    };
    let asked = form["model"].as_str().unwrap_or("(none named)");
    match models.iter().any(|model| model == asked) {
        true => Ok(()),
        false => Err(Why::Model(asked.to_owned())),
    }
}

/// The body without the tools that are not allowed, `None` where it may stay as it is.
fn screen_tools(rules: &KeyRules, form: &Value, filters: bool) -> Result<Option<Vec<u8>>, Why> {
    let (Some(allowed), Some(asked)) = (&rules.tools, form["tools"].as_array()) else {
        return Ok(None);
    };
    let name = |tool: &Value| {
        tool["function"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let may = |tool: &Value| allowed.contains(&name(tool));
    let Some(first) = asked.iter().find(|tool| !may(tool)) else {
        return Ok(None);
    };
    if !filters {
        return Err(Why::Tool(name(first)));
    }
    let kept: Vec<Value> = asked.iter().filter(|tool| may(tool)).cloned().collect();
    let mut form = form.clone();
    if let Some(fields) = form.as_object_mut() {
        match kept.is_empty() {
            true => {
                // A choice among no tools is an error of the request.
                fields.remove("tools");
                fields.remove("tool_choice");
            }
            false => {
                fields.insert("tools".to_owned(), Value::from(kept));
            }
        }
    }
    Ok(Some(form.to_string().into_bytes()))
}

fn words_of(body: &[u8]) -> u64 {
    let form: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut words = 0;
    for field in ["messages", "prompt"] {
        visit_texts(&form[field], &mut |text| {
            words += text.split_whitespace().count() as u64;
        });
    }
    words
}

/// All texts of an answer.
fn answer_text(streamed: bool, body: &[u8]) -> String {
    let mut text = String::new();
    let mut add = |delta: Delta| {
        delta
            .pieces
            .iter()
            .for_each(|piece| text.push_str(&piece.text));
    };
    if !streamed {
        Delta::parse(body).map(add);
        return text;
    }
    let mut splitter = Splitter::default();
    splitter.bytes.extend_from_slice(body);
    let mut reader = Reader::default();
    while let Some(event) = splitter.next_event() {
        reader.read(&event, None).delta.map(&mut add);
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
