//! How much text makes as many tokens of a backend as were asked for.

use config::scenario::Workload;
use record::token_probe::TokenProbe;

/// Tokens of a prompt's parts under the named tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// Of the system prompt; 0 without one.
    pub(crate) system: u32,
    /// Of the user's part.
    pub(crate) user: u32,
}

impl Lengths {
    /// What a scenario asks for.
    pub(crate) fn asked(workload: &Workload) -> Self {
        Self {
            system: workload.system.as_ref().map_or(0, |system| system.tokens),
            user: workload.input_tokens,
        }
    }

    /// Of both.
    pub(crate) fn sum(self) -> u32 {
        self.system.saturating_add(self.user)
    }

    /// This share of both, at least one token of each that there is.
    pub(crate) fn share(self, share: f64) -> Self {
        let part = |tokens: u32| match tokens {
            0 => 0,
            // Shares are below 1: a cast of less than what was a u32.
            _ => ((f64::from(tokens) * share).round() as u32).max(1),
        };
        Self {
            system: part(self.system),
            user: part(self.user),
        }
    }
}

impl From<&TokenProbe> for Lengths {
    fn from(probe: &TokenProbe) -> Self {
        Self {
            system: probe.system,
            user: probe.user,
        }
    }
}

/// What a backend counts for a text of so many tokens of ours: `template + each · tokens`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    pub(crate) template: f64,
    pub(crate) each: f64,
}

impl Line {
    /// The least squares of `(tokens of ours, tokens of the backend)`.
    ///
    /// # Errors
    /// They have no slope, or one that no tokenizer has; in words.
    pub(crate) fn through(points: &[(u32, u32)]) -> Result<Self, String> {
        let count = points.len() as f64;
        let mean = |of: fn(&(u32, u32)) -> u32| {
            points.iter().map(|p| f64::from(of(p))).sum::<f64>() / count
        };
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let over = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            let parts = points.iter();
            parts
                .map(|(a, b)| of(f64::from(*a) - x, f64::from(*b) - y))
                .sum()
        };
        let spread = over(&|dx, _| dx * dx);
        if spread <= 0.0 {
            return Err("its prompts are too short for a correction".to_owned());
        }
        let each = over(&|dx, dy| dx * dy) / spread;
        if !(0.05..=20.0).contains(&each) {
            return Err(format!(
                "usage states {each:.3} tokens for each of ours, which no tokenizer does: does it count this prompt at all?"
            ));
        }
        Ok(Self {
            template: y - each * x,
            each,
        })
    }

    /// The text for which the backend counts `asked`: the system prompt as many tokens of the backend as were
    /// asked for it, the user's part what is left beside the template.
    ///
    /// # Errors
    /// Nothing is left; in words.
    pub(crate) fn solve(self, asked: Lengths) -> Result<Lengths, String> {
        let whole = (f64::from(asked.sum()) - self.template) / self.each;
        let system = match asked.system {
            0 => 0.0,
            system => (f64::from(system) / self.each).round().max(1.0),
        };
        let user = (whole - system).round();
        if user < 1.0 {
            return Err(format!(
                "it counts {:.0} tokens beside the text, and {} were asked for in all; ask for more `input_tokens`",
                self.template,
                asked.sum()
            ));
        }
        // Both are whole and positive, and a twentieth of a u32 asks for no more than one.
        Ok(Lengths {
            system: system as u32,
            user: user as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_the_line_asks_for() {
        let points = [(100, 155), (200, 280), (400, 530)];
        let line = Line::through(&points).unwrap();
        assert!((line.each - 1.25).abs() < 1e-9 && (line.template - 30.0).abs() < 1e-9);
        let asked = Lengths {
            system: 0,
            user: 530,
        };
        assert_eq!(line.solve(asked).unwrap().user, 400);
        let asked = Lengths {
            system: 250,
            user: 280,
        };
        let found = line.solve(asked).unwrap();
        assert_eq!((found.system, found.sum()), (200, 400));
    }

    #[test]
    fn what_cannot_be_corrected_is_said() {
        let flat = Line::through(&[(100, 7), (200, 7), (400, 7)]).unwrap_err();
        assert!(flat.contains("0.000 tokens for each"), "{flat}");
        let short = Line::through(&[(1, 9), (1, 9)]).unwrap_err();
        assert!(short.contains("too short"), "{short}");
        let line = Line {
            template: 50.0,
            each: 1.0,
        };
        let asked = Lengths {
            system: 0,
            user: 40,
        };
        assert!(line.solve(asked).unwrap_err().contains("50 tokens beside"));
    }

    #[test]
    fn a_share_leaves_something_of_each_part() {
        let asked = Lengths {
            system: 1,
            user: 100,
        };
        let quarter = asked.share(0.25);
        assert_eq!((quarter.system, quarter.user), (1, 25));
        let none = Lengths { system: 0, user: 1 }.share(0.25);
        assert_eq!((none.system, none.user), (0, 1));
    }
}
