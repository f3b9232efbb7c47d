//! Asking the upstream, once or twice.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rand::Rng;

use super::Gateway;
use crate::http::{Conn, HttpError, Pool, ResponseHead};
use crate::truth::{AttemptTruth, ExchangeTruth};

/// An upstream that has answered with a head.
pub(super) struct Upstream {
    pub(super) conn: Conn,
    pub(super) head: ResponseHead,
    /// Where the connection belongs.
    pub(super) pool: Arc<Pool>,
}

impl Gateway {
    /// Makes up to two attempts with a request (head and body) and notes each. The last one's answer is used, whatever its status.
    pub(super) async fn ask(
        &self,
        pool: &Arc<Pool>,
        request: &[u8],
        truth: &mut ExchangeTruth,
    ) -> Result<Upstream, HttpError> {
        let abandon = self.abandons();
        let mut number = 1;
        loop {
            truth.attempt = number;
            let answer = self.attempt(number, pool, request, truth).await;
            let again = number == 1
                && match &answer {
                    Ok(_) if abandon => {
                        if let Some(attempt) = truth.attempts.last_mut() {
                            attempt.abandoned = true;
                        }
                        true
                    }
                    Ok(upstream) => self.options.retry && upstream.head.status >= 500,
                    Err(_) => self.options.retry,
                };
            if !again {
                return answer;
            }
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
            number += 1;
        }
    }

    fn abandons(&self) -> bool {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        random.random::<f64>() < self.options.abandon_share
    }

    async fn attempt(
        &self,
        number: u32,
        pool: &Arc<Pool>,
        request: &[u8],
        truth: &mut ExchangeTruth,
    ) -> Result<Upstream, HttpError> {
        let mut attempt = AttemptTruth {
            number,
            ..AttemptTruth::default()
        };
        let answer = self.send(pool, request, &mut attempt).await;
        if let Ok(upstream) = &answer {
            attempt.head_read_at = Some(upstream.conn.read_at);
            attempt.status = Some(upstream.head.status);
        }
        truth.attempts.push(attempt);
        answer
    }

    /// Tries an idle connection; where that turns out to be closed before any answer, a fresh one.
    async fn send(
        &self,
        pool: &Arc<Pool>,
        request: &[u8],
        attempt: &mut AttemptTruth,
    ) -> Result<Upstream, HttpError> {
        if let Some(conn) = pool.take_idle() {
            attempt.reused_connection = true;
            match self.send_on(pool, conn, request, attempt).await {
                Err(HttpError::Truncated | HttpError::Io(_)) => {}
                answered => return answered,
            }
        }
        attempt.reused_connection = false;
        let conn = pool.connect().await.map_err(|error| {
            let address = pool.address();
            io::Error::new(error.kind(), format!("cannot reach {address}: {error}"))
        })?;
        self.send_on(pool, conn, request, attempt).await
    }

    async fn send_on(
        &self,
        pool: &Arc<Pool>,
        mut conn: Conn,
        request: &[u8],
        attempt: &mut AttemptTruth,
    ) -> Result<Upstream, HttpError> {
        let written = conn.write(request).await?;
        attempt.request_write_begin = Some(written.last_begin);
        attempt.request_write_end = Some(written.end);
        let head = conn.response_head().await?;
        let pool = Arc::clone(pool);
        Ok(Upstream { conn, head, pool })
    }
}
