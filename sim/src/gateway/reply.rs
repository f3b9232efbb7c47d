//! Sending what a gateway holds whole: answers, errors, streams from memory.

use std::io;

use super::cache::Answer;
use super::exchange::Turn;
use super::fields::close_head;
use crate::delta::Delta;
use crate::http::{Framing, Headers, Outlet, error_body, simple_response};
use crate::reading::Reader;
use crate::sse::Splitter;
use crate::truth::Mark;

impl Turn<'_> {
    /// Head and body in one write.
    pub(super) async fn send_whole(
        &mut self,
        (status, fields): (u16, &Headers),
        body: &[u8],
        read_at: Option<u64>,
    ) -> io::Result<()> {
        let mut outlet = Outlet::new(Framing::Length(body.len() as u64));
        outlet.head(status, fields);
        outlet.piece(&[body]);
        outlet.carry_mark(Mark::ResponseHead, None);
        outlet.carry_mark(Mark::End, read_at);
        self.truth.status = Some(status);
        if let Some(delta) = Delta::parse(body) {
            self.note_whole(delta, read_at, &mut outlet);
        }
        outlet.flush(self.conn, self.truth).await?;
        Ok(())
    }

    fn note_whole(&mut self, delta: Delta, read_at: Option<u64>, outlet: &mut Outlet) {
        let tokens = Reader::default().tokens(&delta, read_at);
        outlet.carry(tokens, &[], read_at, self.truth);
        let count = delta.pieces.len() as u64;
        self.truth.text_events_read = if read_at.is_some() { count } else { 0 };
        self.truth.text_events_written = count;
        self.truth.response_id = delta.id;
        self.truth.prompt_tokens = delta.usage.map(|usage| usage.prompt);
        self.truth.completion_tokens = delta.usage.map(|usage| usage.completion);
        self.truth.cached_tokens = delta.usage.and_then(|usage| usage.cached);
    }

    /// Sends an answer from memory.
    pub(super) async fn replay(&mut self, answer: &Answer, alike: Option<f64>) -> io::Result<()> {
        let content_type = answer.content_type.clone().into_bytes();
        let mut fields = Headers(vec![
            ("content-type".to_owned(), content_type),
            ("x-cache-hit".to_owned(), b"true".to_vec()),
        ]);
        if let Some(alike) = alike {
            let alike = format!("{alike:.4}").into_bytes();
            fields.0.push(("x-semantic-similarity".to_owned(), alike));
        }
        if answer.streamed {
            return self.send_stream(fields, answer, None).await;
        }
        let length = Framing::Length(answer.body.len() as u64);
        close_head(&mut fields, length, self.keep_alive);
        self.send_whole((200, &fields), &answer.body, None).await
    }

    /// Sends a stream that is held whole, event by event; it was read at `read_at` if it was read for this
    /// exchange.
    pub(super) async fn send_stream(
        &mut self,
        mut fields: Headers,
        answer: &Answer,
        read_at: Option<u64>,
    ) -> io::Result<()> {
        self.truth.streamed = true;
        self.truth.status = Some(200);
        let framing = self.stream_framing();
        close_head(&mut fields, framing, self.keep_alive);
        let mut outlet = Outlet::new(framing);
        outlet.head(200, &fields);
        outlet.carry_mark(Mark::ResponseHead, None);
        outlet.flush(self.conn, self.truth).await?;
        let mut splitter = Splitter::default();
        splitter.bytes.extend_from_slice(&answer.body);
        let mut reader = Reader::default();
        while let Some(event) = splitter.next_event() {
            let reading = reader.read(&event, read_at);
            outlet.piece(&[&event]);
            outlet.carry(reading.tokens, &reading.marks, read_at, self.truth);
            outlet.flush(self.conn, self.truth).await?;
        }
        reader.seen.note(self.truth);
        if read_at.is_some() {
            self.truth.text_events_read = reader.seen.text_events;
        }
        outlet.end(b"");
        outlet.carry_mark(Mark::End, None);
        outlet.flush(self.conn, self.truth).await?;
        Ok(())
    }

    /// Notes what an answer has used that the client does not get.
    pub(super) fn note_usage(&mut self, answer: &Answer) {
        let mut reader = Reader::default();
        if answer.streamed {
            let mut splitter = Splitter::default();
            splitter.bytes.extend_from_slice(&answer.body);
            while let Some(event) = splitter.next_event() {
                reader.read(&event, None);
            }
        } else if let Some(delta) = Delta::parse(&answer.body) {
            reader.seen.id = delta.id;
            reader.seen.usage = delta.usage;
        }
        reader.seen.note(self.truth);
    }

    /// Sends an error in the form of the OpenAI API.
    pub(super) async fn error(
        &mut self,
        status: u16,
        message: &str,
        extra: &Headers,
    ) -> io::Result<()> {
        let body = error_body(status, message);
        self.send_error(status, &body, extra).await
    }

    /// Sends an error with this JSON body.
    pub(super) async fn send_error(
        &mut self,
        status: u16,
        body: &str,
        extra: &Headers,
    ) -> io::Result<()> {
        let response = simple_response(
            status,
            "application/json",
            extra,
            body.as_bytes(),
            self.keep_alive,
        );
        let written = self.conn.write(&response).await?;
        self.truth.status = Some(status);
        for mark in [Mark::ResponseHead, Mark::End] {
            self.truth
                .set_written(mark, None, written.begin, written.end);
        }
        Ok(())
    }
}
