//! A recorded course of calls: when each came, how long its prompt and its answer were, and which blocks of
//! its prompt it shares with others.
//!
//! The file is read once from end to end before anything is measured, so that a bad line is found then, and
//! again line by line while it is replayed: no more of it than a line is ever in memory.

mod azure;
mod mooncake;
#[cfg(test)]
mod tests;

use crate::LoadError;
use config::scenario::TimeUnit;
use record::clock::Nanos;
use record::manifest::TraceInfo;
use record::timeline::{hash, hash_on};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

/// Longest line; one with a million tokens in blocks of 16 has a tenth of it.
const LINE: u64 = 16 << 20;
/// Longest prompt and longest answer, tokens: as in a scenario.
const TOKENS: u64 = 1_000_000;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// When it is due, from the beginning of the replay.
    pub(crate) due: Nanos,
    /// Tokens of its prompt.
    pub(crate) input: u32,
    /// Tokens of its answer, at least one.
    pub(crate) output: u32,
    /// The names of the blocks of its prompt, in order; none where it shares nothing.
    pub(crate) blocks: Vec<i64>,
}

/// What a line says, before the clock of the replay.
#[derive(Debug)]
struct Entry {
    /// Nanoseconds since an instant of the trace's own.
    at: i128,
    input: u64,
    output: u64,
    blocks: Vec<i64>,
}

/// A trace whose every line was found good.
#[derive(Debug)]
pub(crate) struct Trace {
    settings: config::scenario::Trace,
    /// What is in it.
    pub(crate) info: TraceInfo,
    /// When its last call is due.
    pub(crate) lasts: Nanos,
}

impl Trace {
    /// Reads all of it.
    ///
    /// # Errors
    /// The first line that cannot be used, with its number; or there is nothing to replay.
    pub(crate) fn open(settings: &config::scenario::Trace) -> Result<Self, LoadError> {
        let mut rows = Rows::open(settings)?;
        let mut info = TraceInfo {
            file: settings.file.display().to_string(),
            calls: 0,
            input_tokens: 0,
            output_tokens: 0,
            empty: 0,
            fingerprint: 0,
        };
        let mut lasts = 0;
        for row in rows.by_ref() {
            let row = row?;
            info.calls += 1;
            info.input_tokens += u64::from(row.input);
            info.output_tokens += u64::from(row.output);
            lasts = row.due;
        }
        info.empty = rows.empty;
        info.fingerprint = rows.fingerprint;
        let path = settings.file.clone();
        let nothing = |what: &str| {
            Err(LoadError::Trace {
                path: path.clone(),
                line: 0,
                what: what.to_owned(),
            })
        };
        if info.calls == 0 {
            return nothing("holds no call to replay; correct the file, or `from` and `duration`");
        }
        if lasts == 0 {
            return nothing(
                "its calls are all due at once, and a trace is for when they come; use `closed_loop` for that",
            );
        }
        Ok(Self {
            settings: settings.clone(),
            info,
            lasts,
        })
    }

    /// Its calls, anew.
    pub(crate) fn rows(&self) -> Result<Rows, LoadError> {
        Rows::open(&self.settings)
    }

    /// How much faster than the trace it is replayed.
    pub(crate) fn speed(&self) -> f64 {
        self.settings.speed
    }

    /// The blocks of a prompt: how many tokens each has, and its name.
    pub(crate) fn blocks(row: &Row, block_tokens: u32) -> impl Iterator<Item = (u32, i64)> {
        let last = row.blocks.len().saturating_sub(1);
        let input = row.input;
        row.blocks.iter().enumerate().map(move |(at, name)| {
            // As many blocks as the length asks for: `Rows` refuses anything else.
            let before = u32::try_from(at)
                .unwrap_or(u32::MAX)
                .saturating_mul(block_tokens);
            let tokens = match at == last {
                true => input.saturating_sub(before),
                false => block_tokens,
            };
            (tokens, *name)
        })
    }

    /// Tokens of a block.
    pub(crate) fn block_tokens(&self) -> u32 {
        self.settings.block_tokens
    }
}

/// The calls of a trace, line by line.
pub(crate) struct Rows {
    settings: config::scenario::Trace,
    reader: BufReader<File>,
    form: Form,
    line: u64,
    bytes: Vec<u8>,
    /// When the first call of the file came, and the last so far.
    first: Option<i128>,
    last: i128,
    empty: u64,
    fingerprint: u64,
    done: bool,
}

enum Form {
    Mooncake,
    Azure(azure::Columns),
}

impl Rows {
    fn open(settings: &config::scenario::Trace) -> Result<Self, LoadError> {
        let file = File::open(&settings.file).map_err(|source| LoadError::File {
            path: settings.file.clone(),
            source,
        })?;
        let mut rows = Self {
            settings: settings.clone(),
            reader: BufReader::new(file),
            form: Form::Mooncake,
            line: 0,
            bytes: Vec::new(),
            first: None,
            last: i128::MIN,
            empty: 0,
            fingerprint: hash(b""),
            done: false,
        };
        if settings
            .file
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("csv"))
        {
            let head = rows.read()?.unwrap_or_default();
            let columns = azure::Columns::of(&head).map_err(|what| rows.wrong(what))?;
            rows.form = Form::Azure(columns);
        }
        Ok(rows)
    }

    /// The next line that holds something; `None` at the end.
    fn read(&mut self) -> Result<Option<String>, LoadError> {
        loop {
            self.bytes.clear();
            let mut line = self.reader.by_ref().take(LINE);
            let read = line.read_until(b'\n', &mut self.bytes);
            let read = read.map_err(|source| LoadError::File {
                path: self.settings.file.clone(),
                source,
            })?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.fingerprint = hash_on(self.fingerprint, &self.bytes);
            if read as u64 == LINE && self.bytes.last() != Some(&b'\n') {
                return Err(self.wrong(format!(
                    "the line is longer than {LINE} bytes; is this a trace?"
                )));
            }
            let text = std::str::from_utf8(&self.bytes)
                .map_err(|_| self.wrong("the line is not UTF-8; is this a trace?".to_owned()))?;
            if !text.trim().is_empty() {
                return Ok(Some(text.trim().to_owned()));
            }
        }
    }

    fn wrong(&self, what: String) -> LoadError {
        LoadError::Trace {
            path: self.settings.file.clone(),
            line: self.line,
            what,
        }
    }

    /// The next call that is to be replayed.
    fn replayed(&mut self) -> Result<Option<Row>, LoadError> {
        let speed = self.settings.speed;
        let from = i128::from(self.settings.from.nanos());
        let until = self.settings.duration.map(|d| from + i128::from(d.nanos()));
        while let Some(text) = self.read()? {
            let entry = match &self.form {
                Form::Mooncake => mooncake::entry(&text, self.settings.time_unit),
                Form::Azure(columns) => columns.entry(&text),
            };
            let entry = entry.map_err(|what| self.wrong(what))?;
            self.check(&entry).map_err(|what| self.wrong(what))?;
            self.last = entry.at;
            let since = entry.at - *self.first.get_or_insert(entry.at);
            if since < from {
                continue;
            }
            if until.is_some_and(|until| since >= until) {
                return Ok(None);
            }
            self.empty += u64::from(entry.output == 0);
            let narrow = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
            return Ok(Some(Row {
                // Not below zero, and of what a year has in nanoseconds.
                due: ((since - from) as f64 / speed).round() as Nanos,
                input: narrow(entry.input),
                output: narrow(entry.output.max(1)),
                blocks: entry.blocks,
            }));
        }
        Ok(None)
    }

    /// What is wrong with a line that could be read.
    fn check(&self, entry: &Entry) -> Result<(), String> {
        if entry.at < self.last {
            return Err(
                "its time lies before that of the line above; sort the trace by time".to_owned(),
            );
        }
        if !(1..=TOKENS).contains(&entry.input) || entry.output > TOKENS {
            return Err(format!(
                "{} prompt tokens and {} of the answer; a prompt has from 1 to {TOKENS}, an answer at most as many",
                entry.input, entry.output
            ));
        }
        let block = u64::from(self.settings.block_tokens);
        let wanted = entry.input.div_ceil(block);
        if !entry.blocks.is_empty() && entry.blocks.len() as u64 != wanted {
            return Err(format!(
                "{} names in `hash_ids`, but {} tokens are {wanted} blocks of {block}; correct `block_tokens`",
                entry.blocks.len(),
                entry.input
            ));
        }
        Ok(())
    }
}

impl Iterator for Rows {
    type Item = Result<Row, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let taken = self.replayed().transpose();
        self.done = !matches!(taken, Some(Ok(_)));
        taken
    }
}

/// Nanoseconds of a unit of time.
fn nanos(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Ms => 1_000_000,
        TimeUnit::S => 1_000_000_000,
    }
}

/// Where a trace lies, for messages.
pub(crate) fn place(path: &Path, line: u64) -> String {
    match line {
        0 => path.display().to_string(),
        line => format!("{}:{line}", path.display()),
    }
}
