//! Answers kept for requests that come again.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

const MAX_ANSWERS: usize = 1024;
/// Longer answers are not kept: at most this × [`MAX_ANSWERS`] bytes are held.
pub(super) const MAX_ANSWER: usize = 256 * 1024;

/// An answer as it was sent.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) streamed: bool,
    pub(super) content_type: String,
    /// The body without its framing.
    pub(super) body: Vec<u8>,
}

/// The most recent answers by request.
#[derive(Default)]
pub(super) struct Cache(Mutex<Held>);

#[derive(Default)]
struct Held {
    answers: HashMap<u64, Arc<Answer>>,
    order: VecDeque<u64>,
}

impl Cache {
    /// Names a request.
    pub(super) fn key(target: &str, body: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        (target, body).hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn get(&self, key: u64) -> Option<Arc<Answer>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.answers.get(&key).cloned()
    }

    pub(super) fn put(&self, key: u64, answer: Arc<Answer>) {
        if answer.body.len() > MAX_ANSWER {
            return;
        }
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.answers.insert(key, answer).is_some() {
            return;
        }
        held.order.push_back(key);
        if held.order.len() > MAX_ANSWERS
            && let Some(oldest) = held.order.pop_front()
        {
            held.answers.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Arc, Cache, MAX_ANSWER, MAX_ANSWERS};

    fn answer(length: usize) -> Arc<Answer> {
        Arc::new(Answer {
            streamed: false,
            content_type: String::new(),
            body: vec![0; length],
        })
    }

    #[test]
    fn keeps_a_bounded_number_of_bounded_answers() {
        let cache = Cache::default();
        for key in 0..=MAX_ANSWERS as u64 {
            cache.put(key, answer(1));
        }
        assert!(cache.get(0).is_none() && cache.get(1).is_some());
        cache.put(0, answer(MAX_ANSWER + 1));
        assert!(cache.get(0).is_none());
        assert_ne!(Cache::key("/a", b"x"), Cache::key("/a", b"y"));
    }
}
