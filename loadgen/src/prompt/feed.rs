//! Bodies built ahead of their call, on a thread of their own.
//!
//! A long prompt takes longer to build than a token may be late: no thread that reads streams or
//! keeps the schedule may do it.

use super::{Body, Message, Vocabulary};
use crate::LoadError;
use crate::seed::derive;
use crate::shard::Share;
use crate::trace::{Row, Trace};
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};

/// Bodies that wait for their call, at the most.
const AHEAD: usize = 256;
/// The same of a trace, whose prompts may be long: one of 128 Ki tokens takes 0.8 MB.
const AHEAD_OF_TRACE: usize = 64;

/// A body, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) seq: u64,
    pub(crate) tokens: u32,
    pub(crate) body: Bytes,
}

/// The system prompts of a cell.
#[derive(Debug, Default)]
pub(crate) struct Systems {
    texts: Vec<String>,
    tokens: u32,
}

impl Systems {
    /// `texts` of `tokens` tokens each.
    pub(crate) fn new(texts: Vec<String>, tokens: u32) -> Self {
        Self { texts, tokens }
    }

    /// The one whose turn it is at call (or task) `number`; none where there are none.
    pub(crate) fn of(&self, number: u64) -> Option<Message<'_>> {
        let count = self.texts.len() as u64;
        // The remainder is an index of the list.
        (count > 0).then(|| Message::system(self.texts[(number % count) as usize].as_str()))
    }
}

/// What a cell's prompts are made of.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) body: Body,
    /// Tokens of the user's part.
    pub(crate) tokens: u32,
    pub(crate) systems: Arc<Systems>,
    /// Of the text: differs between arms, blocks and cells. `None`: the same prompt each time.
    pub(crate) salt: Option<u64>,
    /// Of the engine's sampling: equal for the same call number of every arm of a block.
    pub(crate) sampling: u64,
}

impl Recipe {
    /// The text of call `seq`.
    pub(crate) fn text(&self, seq: u64) -> String {
        let seed = self
            .salt
            .map_or(0, |salt| derive(salt, &[&seq.to_le_bytes()]));
        self.vocabulary.text(self.tokens, seed)
    }

    /// The sampling seed of call `seq`.
    pub(crate) fn sampling(&self, seq: u64) -> u64 {
        derive(self.sampling, &[&seq.to_le_bytes()])
    }

    /// Tokens of the system prompt and the user's part.
    pub(crate) fn asked(&self) -> u32 {
        self.tokens + self.systems.tokens
    }

    fn prepare(&self, seq: u64) -> Prepared {
        let mut messages: Vec<Message<'_>> = self.systems.of(seq).into_iter().collect();
        messages.push(Message::user(self.text(seq)));
        Prepared {
            seq,
            tokens: self.asked(),
            body: self.body.of(&messages, self.sampling(seq)),
        }
    }

    /// Counts prompts again. Exact by construction, and checked all the same.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let wanted = [(self.text(0), self.tokens.max(1))].into_iter();
        let systems = self.systems.texts.first().cloned();
        for (text, tokens) in wanted.chain(systems.map(|text| (text, self.systems.tokens.max(1)))) {
            self.exact(&text, tokens)?;
        }
        Ok(())
    }

    /// Counts `text` again.
    fn exact(&self, text: &str, tokens: u32) -> Result<(), LoadError> {
        let counted = self.vocabulary.count(text);
        if counted == tokens {
            return Ok(());
        }
        Err(LoadError::Tokenizer {
            name: self.vocabulary.name().to_owned(),
            what: format!("a prompt of {tokens} tokens counts {counted}"),
        })
    }

    /// The text of call `seq` of a trace: blocks of one name have one text in all calls of the cell.
    fn text_of(&self, seq: u64, row: &Row, block: u32) -> String {
        let salt = self.salt.unwrap_or(0);
        if row.blocks.is_empty() {
            return self
                .vocabulary
                .text(row.input, derive(salt, &[&seq.to_le_bytes()]));
        }
        let seed = |name: i64| derive(salt, &[b"block", &name.to_le_bytes()]);
        let blocks = Trace::blocks(row, block).map(|(tokens, name)| (tokens, seed(name)));
        self.vocabulary.blocks(blocks)
    }

    fn prepare_of(&self, seq: u64, row: &Row, block: u32) -> Prepared {
        let body = Body {
            max_tokens: row.output,
            ..self.body.clone()
        };
        let message = Message::user(self.text_of(seq, row, block));
        Prepared {
            seq,
            tokens: row.input,
            body: body.of(&[message], self.sampling(seq)),
        }
    }
}

/// The takers' end. Numbers go out in order, each once.
pub(crate) struct Feed {
    bodies: Mutex<mpsc::Receiver<Prepared>>,
}

impl Feed {
    /// Starts the thread that builds; it ends when the feed is dropped.
    /// Only the numbers of `share` are built.
    pub(crate) fn start(recipe: Recipe, share: Share) -> Result<Arc<Self>, LoadError> {
        recipe.check()?;
        Self::of(AHEAD, share, move |seq| Some(recipe.prepare(seq)))
    }

    /// The same for the calls of a trace; it ends with the trace.
    pub(crate) fn replay(
        recipe: Recipe,
        trace: &Trace,
        share: Share,
    ) -> Result<Arc<Self>, LoadError> {
        let block = trace.block_tokens();
        if let Some(first) = trace.rows()?.next() {
            let first = first?;
            recipe.exact(&recipe.text_of(0, &first, block), first.input)?;
        }
        let mut rows = trace.rows()?.enumerate();
        Self::of(AHEAD_OF_TRACE, share, move |seq| {
            // A line that went bad since the trace was checked ends it, and the schedule tells.
            let row = rows.find(|(number, _)| *number as u64 == seq)?.1.ok()?;
            Some(recipe.prepare_of(seq, &row, block))
        })
    }

    /// Starts a thread that makes bodies, at most `ahead` before they are taken.
    fn of(
        ahead: usize,
        share: Share,
        mut make: impl FnMut(u64) -> Option<Prepared> + Send + 'static,
    ) -> Result<Arc<Self>, LoadError> {
        let (sender, bodies) = mpsc::channel(ahead);
        std::thread::Builder::new()
            .name("prompts".to_owned())
            .spawn(move || {
                let mut seq = share.index;
                while let Some(ready) = make(seq)
                    && sender.blocking_send(ready).is_ok()
                {
                    seq += share.of;
                }
            })
            .map_err(|source| LoadError::Start {
                what: "the thread that builds prompts",
                source,
            })?;
        Ok(Arc::new(Self {
            bodies: Mutex::new(bodies),
        }))
    }

    /// The next body; `None` only where the building thread died, or at the end of a trace.
    pub(crate) async fn next(&self) -> Option<Prepared> {
        self.bodies.lock().await.recv().await
    }

    /// The same, for a thread outside a runtime.
    pub(crate) fn next_blocking(&self) -> Option<Prepared> {
        self.bodies.blocking_lock().blocking_recv()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;
    use config::scenario::Tokenizer;
    use std::collections::HashSet;

    #[test]
    fn no_two_calls_of_any_part_or_cell_have_the_same_prompt() {
        let vocabulary = Arc::new(Vocabulary::load(&Tokenizer::O200k).unwrap());
        let mut seen = HashSet::new();
        for salt in 0..4 {
            for index in 0..2 {
                let recipe = Recipe {
                    vocabulary: vocabulary.clone(),
                    body: Body {
                        api: Api::Chat,
                        model: "m".to_owned(),
                        stream: true,
                        max_tokens: 16,
                        ignore_eos: true,
                    },
                    tokens: 16,
                    systems: Arc::default(),
                    salt: Some(salt),
                    sampling: 0,
                };
                let feed = Feed::start(recipe.clone(), Share { index, of: 2 }).unwrap();
                for turn in 0..100 {
                    let ready = feed.next_blocking().unwrap();
                    assert_eq!(ready.seq, index + 2 * turn);
                    assert!(seen.insert(recipe.text(ready.seq)), "{salt} {}", ready.seq);
                    let body = std::str::from_utf8(&ready.body).unwrap();
                    assert!(body.contains(&recipe.text(ready.seq)));
                }
            }
        }
    }
}
