//! The timeline of one streamed response: when each position of its text passed, without the text.
//!
//! A position is the number of decoded UTF-8 bytes of one track (choice, field, tool call) so far.
//! Gateways drop, merge, split and synthesise chunks, so chunk numbers say nothing across two
//! taps; positions do. A rolling hash at each position lets two taps be compared wherever both
//! have a mark, and keeps the text itself out of every record.

use crate::clock::Nanos;
use crate::stamp::{Arrival, Departure, Passage};
use serde::{Deserialize, Serialize};
use wire::Field;

/// Marks kept for one exchange; later ones are counted in [`Timeline::overflow`] and not kept.
/// Enough for 64 Ki content events, 2.5 MiB at the most.
pub const MAX_MARKS: usize = 65_536;

/// Tracks kept for one exchange (choices times fields times tool calls).
pub const MAX_TRACKS: usize = 64;

/// Where text accumulates, and how much of it there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    /// Index of the choice.
    pub choice: u16,
    /// Which text of the choice.
    pub field: Field,
    /// Index of the tool call; 0 for other fields.
    pub tool: u16,
    /// Decoded UTF-8 bytes in all.
    pub bytes: u32,
    /// FNV-1a hash of all of them (64 bit).
    pub hash: u64,
}

/// A content event ended here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextMark {
    /// Index into [`Timeline::tracks`].
    pub track: u8,
    /// Cumulative bytes of the track at the event's end.
    pub end: u32,
    /// The track's rolling hash at `end`, folded to 32 bits: two taps agree on the text up to a
    /// common position unless a hash collides (2⁻³² a position).
    pub hash: u32,
    /// Index of its read, for [`Timeline::passage`].
    pub read: u32,
}

/// One read that completed events, relative to [`Timeline::base`]; compact, since a call has many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ReadMark {
    /// Read returned, nanoseconds after `base`.
    at: u64,
    /// `at` less the earliest arrival; saturates at 4.29 s.
    early: u32,
    /// `at` less the kernel's stamp; `None` without one.
    kernel: Option<u32>,
    waited: bool,
    /// Write began, after `at`; `None` where the bytes were not passed on.
    begin: Option<u32>,
    /// Write ended, after it began.
    took: u64,
    blocked: bool,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Zero of the relative instants inside.
    base: Nanos,
    /// Every track seen, in order of appearance.
    pub tracks: Vec<Track>,
    reads: Vec<ReadMark>,
    /// Every content event's end, in order of arrival.
    pub texts: Vec<TextMark>,
    /// Content events whose marks were not kept.
    pub overflow: u32,
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Continues an FNV-1a hash (64 bit; Fowler, Noll, Vo) over `bytes`.
#[must_use]
pub fn hash_on(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |h, b| (h ^ u64::from(*b)).wrapping_mul(FNV_PRIME))
}

/// FNV-1a hash (64 bit) of `bytes`.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    hash_on(FNV_OFFSET, bytes)
}

fn fold(hash: u64) -> u32 {
    // The low word of both halves: a fold, not a truncation by accident.
    ((hash >> 32) as u32) ^ (hash as u32)
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Timeline {
    /// An empty timeline whose instants count from `base`.
    #[must_use]
    pub fn starting(base: Nanos) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// Notes the read that the next [`Self::text`] calls belong to; the same read twice is one.
    pub fn read(&mut self, passage: &Passage) {
        let arrival = passage.arrival;
        let at = arrival.at.saturating_sub(self.base);
        let noted = self.reads.last().is_some_and(|last| last.at == at);
        if noted || self.texts.len() >= MAX_MARKS {
            return;
        }
        let departure = passage.departure;
        self.reads.push(ReadMark {
            at,
            early: narrow(arrival.at.saturating_sub(arrival.earliest)),
            kernel: arrival.kernel.map(|k| narrow(arrival.at.saturating_sub(k))),
            waited: arrival.waited,
            begin: departure.map(|d| narrow(d.begin.saturating_sub(arrival.at))),
            took: departure.map_or(0, |d| d.end.saturating_sub(d.begin)),
            blocked: departure.is_some_and(|d| d.blocked),
        });
    }

    /// Notes text of the last read. Positions and hashes go on even where marks are not kept.
    pub fn text(&mut self, choice: u16, field: Field, tool: u16, text: &str) {
        let Some(index) = self.track(choice, field, tool) else {
            self.overflow += 1;
            return;
        };
        let track = &mut self.tracks[index];
        track.bytes = track.bytes.saturating_add(narrow(text.len() as u64));
        track.hash = hash_on(track.hash, text.as_bytes());
        let (end, hash) = (track.bytes, fold(track.hash));
        if self.texts.len() >= MAX_MARKS || self.reads.is_empty() {
            self.overflow += 1;
            return;
        }
        let read = narrow(self.reads.len() as u64 - 1);
        let track = u8::try_from(index).unwrap_or(u8::MAX);
        // Two deltas of one track inside one chunk end at one instant: keep the later position.
        if let Some(last) = self.texts.last_mut()
            && last.track == track
            && last.read == read
            && last.end == end
        {
            return;
        }
        self.texts.push(TextMark {
            track,
            end,
            hash,
            read,
        });
    }

    fn track(&mut self, choice: u16, field: Field, tool: u16) -> Option<usize> {
        let known = |t: &Track| t.choice == choice && t.field == field && t.tool == tool;
        if let Some(index) = self.tracks.iter().position(known) {
            return Some(index);
        }
        if self.tracks.len() >= MAX_TRACKS {
            return None;
        }
        self.tracks.push(Track {
            choice,
            field,
            tool,
            bytes: 0,
            hash: FNV_OFFSET,
        });
        Some(self.tracks.len() - 1)
    }

    /// When the read of `mark` came in and went out.
    #[must_use]
    pub fn passage(&self, mark: &TextMark) -> Option<Passage> {
        let read = self.reads.get(mark.read as usize)?;
        let at = self.base + read.at;
        Some(Passage {
            arrival: Arrival {
                at,
                earliest: at.saturating_sub(u64::from(read.early)),
                kernel: read.kernel.map(|k| at.saturating_sub(u64::from(k))),
                waited: read.waited,
            },
            departure: read.begin.map(|begin| {
                let begin = at + u64::from(begin);
                Departure {
                    begin,
                    end: begin + read.took,
                    blocked: read.blocked,
                }
            }),
        })
    }

    /// The index, among this timeline's tracks, of the track that `other` calls `track`.
    #[must_use]
    pub fn same_track(&self, other: &Track) -> Option<u8> {
        self.tracks
            .iter()
            .position(|t| {
                t.choice == other.choice && t.field == other.field && t.tool == other.tool
            })
            .and_then(|index| u8::try_from(index).ok())
    }

    /// Reads that completed at least one content event.
    #[must_use]
    pub fn content_reads(&self) -> usize {
        let mut count = 0;
        let mut last = None;
        for mark in &self.texts {
            if last != Some(mark.read) {
                count += 1;
                last = Some(mark.read);
            }
        }
        count
    }

    /// Gaps between successive content events in nanoseconds ("chunk gap", vLLM's ITL): events of
    /// one read are 0 apart. Not divided by tokens.
    pub fn gaps(&self) -> impl Iterator<Item = u64> + '_ {
        self.texts.windows(2).map(|pair| {
            let at = |m: &TextMark| self.reads.get(m.read as usize).map_or(0, |r| r.at);
            at(&pair[1]).saturating_sub(at(&pair[0]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(at: Nanos) -> Passage {
        Passage {
            arrival: Arrival {
                at,
                earliest: at - 10,
                kernel: Some(at - 5),
                waited: true,
            },
            departure: Some(Departure {
                begin: at + 3,
                end: at + 9,
                blocked: false,
            }),
        }
    }

    #[test]
    fn positions_accumulate_per_track_and_stamps_come_back_whole() {
        let mut line = Timeline::starting(1_000);
        line.read(&passage(2_000));
        line.text(0, Field::Content, 0, "He");
        line.read(&passage(3_000));
        line.text(0, Field::Content, 0, "llo");
        line.text(0, Field::Reasoning, 0, "é");
        assert_eq!(
            line.texts
                .iter()
                .map(|m| (m.track, m.end))
                .collect::<Vec<_>>(),
            [(0, 2), (0, 5), (1, 2)]
        );
        assert_eq!(line.passage(&line.texts[1]), Some(passage(3_000)));
        assert_eq!(line.tracks[0].hash, hash(b"Hello"));
        assert_eq!(line.gaps().collect::<Vec<_>>(), [1_000, 0]);
        assert_eq!(line.content_reads(), 2);
    }

    #[test]
    fn the_same_text_in_other_pieces_has_the_same_hash_at_common_positions() {
        let mut one = Timeline::starting(0);
        let mut two = Timeline::starting(0);
        one.read(&passage(100));
        two.read(&passage(100));
        for piece in ["ab", "cd", "ef"] {
            one.text(0, Field::Content, 0, piece);
        }
        for piece in ["abcd", "ef"] {
            two.text(0, Field::Content, 0, piece);
        }
        assert_eq!(one.texts[1].hash, two.texts[0].hash);
        assert_eq!(one.texts[2].hash, two.texts[1].hash);
    }

    #[test]
    fn marks_are_bounded_and_what_is_dropped_is_counted() {
        let mut line = Timeline::starting(0);
        line.read(&passage(100));
        for _ in 0..MAX_MARKS + 7 {
            line.text(0, Field::Content, 0, "x");
        }
        assert_eq!(line.texts.len(), MAX_MARKS);
        assert_eq!(line.overflow, 7);
        assert_eq!(line.tracks[0].bytes as usize, MAX_MARKS + 7);
    }
}
