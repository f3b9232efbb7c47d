//! Streaming an answer at its pace.

use std::io;

use super::fault::Faults;
use super::pace::Pace;
use super::plan::Plan;
use super::reply::{Ending, Next, Reply, Stop};
use super::shape::Shape;
use super::text::{Addition, Text};
use crate::clock::now;
use crate::delta::Positions;
use crate::http::{Framing, Headers};
use crate::truth::{Mark, Outcome, TokenTruth};

/// Pause between the two writes of a split event: long enough that no peer reads them as one.
const SPLIT_PAUSE: u64 = 2_000_000;

/// Announced by a stream that lies about its length: more than any stream has.
const FALSE_LENGTH: u64 = 1 << 40;

/// Sends the whole stream, or as much of it as its faults allow.
pub(super) async fn stream(reply: &mut Reply<'_>, plan: &Plan, pace: Pace<'_>) -> Ending {
    let framing = match (plan.faults.truncate_length, reply.minor) {
        (true, _) => Framing::Length(FALSE_LENGTH),
        (false, 0) => Framing::UntilClose,
        (false, _) => Framing::Chunked,
    };
    reply.open(framing);
    let mut play = Play {
        shape: Shape::of(plan, reply.read_at()),
        positions: Positions::default(),
        faults: &plan.faults,
        plan,
        reply,
        role_sent: false,
    };
    play.run(framing, pace).await
}

struct Play<'r, 'c> {
    plan: &'r Plan,
    faults: &'r Faults,
    shape: Shape,
    positions: Positions,
    reply: &'r mut Reply<'c>,
    role_sent: bool,
}

impl Play<'_, '_> {
    async fn run(&mut self, framing: Framing, mut pace: Pace<'_>) -> Ending {
        self.head(framing).await?;
        if self.plan.options.role_early {
            self.role().await?;
        }
        let mut texts: Vec<Text> = (0..self.plan.choices)
            .map(|choice| self.plan.text(choice))
            .collect();
        let mut sent = 0;
        loop {
            self.cut(sent).await?;
            let additions: Vec<Addition> = texts.iter_mut().filter_map(Text::next).collect();
            if additions.is_empty() {
                break;
            }
            let tokens = (sent + 1) * self.plan.options.tokens_per_chunk.max(1);
            pace.chunk(self.reply, tokens).await?;
            self.before_chunk(sent).await?;
            for (choice, added) in (0..).zip(&additions) {
                self.chunk(choice, added, sent).await?;
            }
            sent += 1;
        }
        if !self.role_sent {
            self.role().await?;
        }
        self.finish().await
    }

    async fn head(&mut self, framing: Framing) -> Result<(), Stop> {
        if self.faults.informational {
            let hints = b"HTTP/1.1 103 Early Hints\r\nlink: </sim>; rel=preload\r\n\r\n";
            self.reply.outlet.raw(hints);
            self.flush().await?;
        }
        let mut headers = self.reply.headers(self.shape.content_type());
        let mut add = |name: &str, value: &str| {
            headers.0.push((name.to_owned(), value.as_bytes().to_vec()));
        };
        match framing {
            Framing::Chunked => add("transfer-encoding", "chunked"),
            Framing::Length(length) => add("content-length", &length.to_string()),
            Framing::UntilClose => {}
        }
        if let Some((name, value)) = self.shape.stream_field() {
            add(name, value);
        }
        if self.faults.trailers {
            add("trailer", "x-sim-trailer");
        }
        if self.faults.fin_after_response {
            Reply::promise_keep_alive(&mut headers);
        }
        self.send_head(&headers).await
    }

    async fn send_head(&mut self, headers: &Headers) -> Result<(), Stop> {
        let recorded = &mut self.reply.recorder.truth;
        recorded.status = Some(200);
        recorded.streamed = true;
        self.reply.outlet.head(200, headers);
        self.reply.outlet.carry_mark(Mark::ResponseHead, None);
        self.flush().await
    }

    async fn role(&mut self) -> Result<(), Stop> {
        self.role_sent = true;
        if self.shape.has_role() {
            for choice in 0..self.plan.choices {
                let counts = self.plan.used(&self.reply.recorder.truth);
                self.reply.outlet.piece(&[self.shape.role(choice, counts)]);
                self.reply.outlet.carry_mark(Mark::Role, None);
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Faults that end the stream after `sent` chunks.
    async fn cut(&mut self, sent: u64) -> Result<(), Stop> {
        let here = Some(sent);
        let faults = self.faults;
        if ![
            faults.close_after,
            faults.reset_after,
            faults.stall_after,
            faults.error_event,
        ]
        .contains(&here)
        {
            return Ok(());
        }
        self.flush().await?; // half of a pair
        if faults.reset_after == here {
            return Err(Stop::fault(Next::Reset));
        }
        if faults.close_after == here {
            return Err(Stop::fault(Next::Close));
        }
        if faults.stall_after == here {
            self.reply.conn.gone().await;
            return Err(Stop::fault(Next::Close));
        }
        self.reply.outlet.piece(&[self.shape.error()]);
        self.flush().await?;
        self.close_body().await?;
        Err(Stop::fault(Next::KeepAlive))
    }

    /// What comes before chunk number `sent`.
    async fn before_chunk(&mut self, sent: u64) -> Result<(), Stop> {
        if self
            .faults
            .ping
            .is_some_and(|every| sent.is_multiple_of(every))
        {
            self.reply.outlet.piece(&[self.shape.ping()]);
            self.flush().await?;
        }
        if !self.role_sent {
            self.role().await?;
        }
        if self.faults.malformed_chunk == Some(sent) {
            self.reply.outlet.piece(&[self.shape.broken()]);
            self.flush().await?;
        }
        Ok(())
    }

    async fn chunk(&mut self, choice: u16, added: &Addition, sent: u64) -> Result<(), Stop> {
        let rides = added.last && !self.plan.options.finish_apart && !self.faults.no_finish;
        let finish = rides.then_some(self.plan.finish_reason);
        let padding = match sent {
            0 => self.faults.oversized_event.unwrap_or(0),
            _ => 0,
        };
        let counts = self.plan.used(&self.reply.recorder.truth);
        let event = self.shape.text(choice, added, finish, (counts, padding));
        self.reply.outlet.piece(&[event]);
        self.carry(choice, added);
        if rides {
            self.reply.outlet.carry_mark(Mark::Finish, None);
        }
        let first_of_pair = sent.is_multiple_of(2) && !added.last;
        if self.faults.pair_events && first_of_pair {
            return Ok(());
        }
        if self.faults.split_event {
            return self.flush_split().await;
        }
        self.flush().await
    }

    fn carry(&mut self, choice: u16, added: &Addition) {
        let (field, tool) = (added.field, added.tool);
        let end = self
            .positions
            .advance(choice, field, tool, added.text.len());
        self.reply.recorder.truth.text_events_written += 1;
        self.reply.outlet.carry_token(TokenTruth {
            choice,
            field,
            tool,
            end_text_offset: end,
            read_at: None,
            write_begin: 0,
            write_end: 0,
        });
    }

    async fn finish(&mut self) -> Ending {
        let counts = self.plan.used(&self.reply.recorder.truth);
        let mut finish_comes_with_usage = false;
        if self.plan.options.finish_apart && !self.faults.no_finish {
            for choice in 0..self.plan.choices {
                self.apart().await?;
                let reason = self.plan.finish_reason;
                let Some(event) = self.shape.finish_apart(choice, reason, counts) else {
                    finish_comes_with_usage = true;
                    continue;
                };
                self.reply.outlet.piece(&[event]);
                self.reply.outlet.carry_mark(Mark::Finish, None);
                self.flush().await?;
            }
        }
        if self.plan.include_usage {
            self.apart().await?;
            let event = self.shape.usage(counts);
            self.reply.outlet.piece(&[event]);
            if finish_comes_with_usage {
                self.reply.outlet.carry_mark(Mark::Finish, None);
            }
            self.reply.outlet.carry_mark(Mark::Usage, None);
            if self.shape.terminal().is_none() {
                self.reply.outlet.carry_mark(Mark::Done, None);
            }
            self.flush().await?;
        }
        self.close_body().await?;
        let spoiled = !self.faults.is_harmless();
        let closes = self.faults.truncate_length || self.faults.fin_after_response;
        Ok((
            if spoiled {
                Outcome::Fault
            } else {
                Outcome::Complete
            },
            if closes { Next::Close } else { Next::KeepAlive },
        ))
    }

    async fn close_body(&mut self) -> Result<(), Stop> {
        if !self.faults.no_done && self.shape.terminal().is_some() {
            self.apart().await?;
            if let Some(terminal) = self.shape.terminal() {
                self.reply.outlet.piece(&[terminal]);
            }
            self.reply.outlet.carry_mark(Mark::Done, None);
            self.flush().await?;
        }
        let trailers: &[u8] = match self.faults.trailers {
            true => b"x-sim-trailer: end\r\n",
            false => b"",
        };
        self.apart().await?;
        self.reply.outlet.end(trailers);
        self.reply.outlet.carry_mark(Mark::End, None);
        self.flush().await
    }

    /// Waits before a piece of the stream's end, where it is to come apart from the one before.
    async fn apart(&mut self) -> Result<(), Stop> {
        match self.plan.options.end_gap_us {
            0 => Ok(()),
            gap => self.reply.wait_until(now() + gap * 1_000).await,
        }
    }

    async fn flush(&mut self) -> Result<(), Stop> {
        self.reply.flush().await
    }

    async fn flush_split(&mut self) -> Result<(), Stop> {
        let bytes = self.reply.outlet.take_bytes();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let written = self.reply.conn.write(first).await.map_err(Stop::client)?;
        self.reply.wait_until(written.end + SPLIT_PAUSE).await?;
        let written = self.reply.conn.write(second).await.map_err(Stop::client)?;
        self.reply
            .outlet
            .stamp(written, &mut self.reply.recorder.truth);
        Ok(())
    }
}

impl Stop {
    fn client(_: io::Error) -> Self {
        Self::gone()
    }
}
