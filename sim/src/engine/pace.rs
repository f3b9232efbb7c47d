//! Where the times of an answer come from: the script or the modelled engine, or it was waited for already.

use super::model::Ticket;
use super::reply::{Reply, Stop};
use super::script::Script;

/// One of the three.
pub(super) enum Pace<'m> {
    Script(Box<Script>),
    Model(Ticket<'m>),
    /// Everything is there.
    Held,
}

impl Pace<'_> {
    /// Waits until the next chunk is due, with which `tokens` tokens of a choice are out.
    pub(super) async fn chunk(&mut self, reply: &mut Reply<'_>, tokens: u64) -> Result<(), Stop> {
        match self {
            Self::Held => Ok(()),
            Self::Script(script) => reply.wait_until(script.due()).await,
            Self::Model(ticket) => {
                let cached = reply.unless_gone(ticket.reached(tokens)).await?;
                reply.recorder.truth.cached_tokens = Some(cached);
                Ok(())
            }
        }
    }

    /// Waits until the last of `chunks` chunks is due.
    pub(super) async fn all(
        &mut self,
        reply: &mut Reply<'_>,
        chunks: usize,
        start: u64,
    ) -> Result<(), Stop> {
        if let Self::Script(script) = self {
            let due = (0..chunks).fold(start, |_, _| script.due());
            return reply.wait_until(due).await;
        }
        self.chunk(reply, u64::MAX).await
    }
}
