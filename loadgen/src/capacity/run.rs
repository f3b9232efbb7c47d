//! What one run at a rate attained of the objective: of the calls that were due, the share that met each part of it.

use config::scenario::Slo;
use record::client::{CallOutcome, ClientCall};
use record::clock::Nanos;
use record::manifest::Attained;
use std::collections::HashMap;

/// Stretches of a run, equal in time, that are resampled whole: calls that queue behind each other are not
/// independent, and a queue outlives a call and not, as a rule, a tenth of the run.
pub(crate) const STRETCHES: usize = 10;

/// A part of the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Part {
    /// TTFT from the intended send within its bound.
    Ttft,
    /// Added TTFT within its bound.
    Added,
    /// TPOT within its bound.
    Tpot,
    /// Answered in full.
    Answered,
}

impl Part {
    /// The words used in every output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Added => "added TTFT",
            Self::Tpot => "TPOT",
            Self::Answered => "answered",
        }
    }

    /// The share that `slo` wants; `None` where it bounds no such thing.
    fn wanted(self, slo: &Slo) -> Option<f64> {
        let bound = match self {
            Self::Ttft => slo.ttft_p95,
            Self::Added => slo.added_ttft_p95,
            Self::Tpot => slo.tpot_p95,
            Self::Answered => return Some(1.0 - slo.error_share_max),
        };
        bound.map(|_| 0.95)
    }

    /// The parts that `slo` has, each with the share it wants.
    pub(crate) fn of(slo: &Slo) -> Vec<(Self, f64)> {
        [Self::Ttft, Self::Added, Self::Tpot, Self::Answered]
            .into_iter()
            .filter_map(|part| Some((part, part.wanted(slo)?)))
            .collect()
    }
}

/// So many calls of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) met: u64,
    pub(crate) of: u64,
}

impl Share {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            met: self.met + other.met,
            of: self.of + other.of,
        }
    }

    /// `None` of no calls.
    pub(crate) fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.met as f64 / self.of as f64)
    }
}

/// The calls of one run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Calls a second.
    pub(crate) rate: f64,
    /// Calls that were due.
    pub(crate) due: u64,
    /// What each stretch attained, by part of the objective in the order of [`Part::of`].
    pub(crate) stretches: Vec<Vec<Share>>,
}

/// What a run at `rate` is made from.
pub(crate) struct Driven<'a> {
    pub(crate) rate: f64,
    /// The measured window.
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    /// Calls that were due in it.
    pub(crate) due: u64,
    /// Those that were sent.
    pub(crate) calls: &'a [ClientCall],
    /// Added TTFT by the call's number, nanoseconds, of those whose legs were paired.
    pub(crate) added: &'a HashMap<u64, i64>,
}

impl Run {
    /// A call that was not answered, not sent, or whose added TTFT is not known meets no bound. One that was
    /// answered with a single token has no TPOT and is left out of that part.
    pub(crate) fn of(slo: &Slo, driven: &Driven<'_>) -> Self {
        let parts = Part::of(slo);
        let mut stretches = vec![vec![Share::default(); parts.len()]; STRETCHES];
        let measured = driven.calls.iter().filter(|call| !call.warmup);
        let window = driven.to.saturating_sub(driven.from).max(1);
        let mut sent = 0;
        for call in measured {
            sent += 1;
            let into = call.intended.saturating_sub(driven.from);
            let at = u128::from(into) * STRETCHES as u128 / u128::from(window);
            let stretch = &mut stretches[(at as usize).min(STRETCHES - 1)];
            for ((part, _), share) in parts.iter().zip(stretch) {
                if let Some(met) = meets(*part, slo, call, driven.added) {
                    *share = share.and(Share {
                        met: u64::from(met),
                        of: 1,
                    });
                }
            }
        }
        // Nobody knows when those were due that found too many in flight: late, where a queue has grown.
        let unsent = driven.due.saturating_sub(sent);
        for share in stretches.last_mut().into_iter().flatten() {
            share.of += unsent;
        }
        Self {
            rate: driven.rate,
            due: driven.due,
            stretches,
        }
    }

    /// What the whole run attained of each part.
    pub(crate) fn whole(&self) -> Vec<Share> {
        sum(self.stretches.iter())
    }

    /// Each part, as the run's record has it.
    pub(crate) fn attained(&self, slo: &Slo) -> Vec<Attained> {
        let parts = Part::of(slo).into_iter().zip(self.whole());
        parts
            .map(|((part, wanted), share)| Attained {
                part: part.name().to_owned(),
                share: share.value(),
                wanted,
            })
            .collect()
    }

    /// Did the objective hold? A part of which there is no call did not.
    pub(crate) fn held(&self, slo: &Slo) -> bool {
        let attained = self.attained(slo);
        attained
            .iter()
            .all(|part| part.share.is_some_and(|share| share >= part.wanted))
    }
}

/// Part by part.
pub(crate) fn sum<'a>(stretches: impl Iterator<Item = &'a Vec<Share>>) -> Vec<Share> {
    stretches.fold(Vec::new(), |mut all, stretch| {
        all.resize(stretch.len(), Share::default());
        for (all, one) in all.iter_mut().zip(stretch) {
            *all = all.and(*one);
        }
        all
    })
}

fn meets(part: Part, slo: &Slo, call: &ClientCall, added: &HashMap<u64, i64>) -> Option<bool> {
    let complete = call.outcome == CallOutcome::Complete;
    let within = |bound: Option<config::Period>, value: Option<f64>| {
        complete && bound.zip(value).is_some_and(|(b, v)| v <= b.nanos() as f64)
    };
    Some(match part {
        Part::Answered => complete,
        Part::Ttft => within(slo.ttft_p95, call.ttft_intended().map(|v| v as f64)),
        Part::Added => within(
            slo.added_ttft_p95,
            added.get(&call.seq).map(|added| *added as f64),
        ),
        Part::Tpot if complete && call.usage_completion.is_some_and(|n| n < 2) => return None,
        Part::Tpot => within(slo.tpot_p95, call.tpot()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Period;

    const SECOND: Nanos = 1_000_000_000;

    fn slo() -> Slo {
        Slo {
            ttft_p95: Some(Period::millis(100)),
            added_ttft_p95: None,
            tpot_p95: Some(Period::millis(10)),
            error_share_max: 0.01,
        }
    }

    fn call(seq: u64, intended: Nanos, ttft: Nanos, tokens: u32, tpot: Nanos) -> ClientCall {
        let first = intended + ttft;
        ClientCall {
            outcome: CallOutcome::Complete,
            sent: Some(intended),
            first_text: Some(first),
            last_text: Some(first + tpot * u64::from(tokens - 1)),
            usage_completion: Some(tokens),
            ..ClientCall::unanswered(1, seq, intended, intended)
        }
    }

    fn run(due: u64, calls: &[ClientCall]) -> Run {
        let none = HashMap::new();
        let driven = Driven {
            rate: 5.0,
            from: SECOND,
            to: 11 * SECOND,
            due,
            calls,
            added: &none,
        };
        Run::of(&slo(), &driven)
    }

    #[test]
    fn what_was_not_sent_not_answered_or_slow_meets_nothing() {
        let ms = 1_000_000;
        let mut lost = call(3, 5 * SECOND, 10 * ms, 5, ms);
        lost.outcome = CallOutcome::TimedOut;
        let mut warm = call(9, SECOND, 10 * ms, 5, ms);
        warm.warmup = true;
        let calls = [
            warm,
            call(0, SECOND, 100 * ms, 5, 10 * ms),
            call(1, 2 * SECOND, 101 * ms, 5, 11 * ms),
            // No TPOT, and no loss of one.
            call(2, 3 * SECOND, 10 * ms, 1, 0),
            lost,
        ];
        let run = run(5, &calls);
        let share = |met, of| Share { met, of };
        assert_eq!(run.whole(), [share(2, 5), share(1, 4), share(3, 5)]);
        assert_eq!(
            run.stretches[0],
            [share(1, 1), share(1, 1), share(1, 1)],
            "the first second of ten"
        );
        assert_eq!(run.stretches[9], [share(0, 1), share(0, 1), share(0, 1)]);
        assert!(!run.held(&slo()));
    }

    #[test]
    fn nineteen_of_twenty_are_a_95th_percentile() {
        let ms = 1_000_000;
        let calls = |slow: u64| -> Vec<ClientCall> {
            (0..20)
                .map(|n| call(n, 2 * SECOND, if n < slow { 200 * ms } else { ms }, 3, ms))
                .collect()
        };
        assert!(run(20, &calls(1)).held(&slo()));
        assert!(!run(20, &calls(2)).held(&slo()));
        assert!(!run(0, &[]).held(&slo()), "nothing was measured");
    }

    #[test]
    fn added_ttft_is_that_of_the_calls_that_were_paired() {
        let ms = 1_000_000;
        let slo = Slo {
            ttft_p95: None,
            tpot_p95: None,
            added_ttft_p95: Some(Period::millis(5)),
            error_share_max: 0.5,
        };
        let calls: Vec<ClientCall> = (0..4).map(|n| call(n, SECOND, ms, 3, ms)).collect();
        let added = HashMap::from([(0, -1_000), (1, 5_000_000), (2, 5_000_001)]);
        let driven = Driven {
            rate: 1.0,
            from: SECOND,
            to: 2 * SECOND,
            due: 4,
            calls: &calls,
            added: &added,
        };
        let attained = Run::of(&slo, &driven).attained(&slo);
        assert_eq!(attained[0].share, Some(0.5));
        assert_eq!(
            (attained[0].part.as_str(), attained[0].wanted),
            ("added TTFT", 0.95)
        );
        assert_eq!(attained[1].share, Some(1.0));
    }
}
