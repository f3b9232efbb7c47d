//! What must hold between the parts of a plan. Whether the plan is wise is judged by `hopscope plan`.

use super::{Plan, Traffic};
use crate::load::{Form, Report};

/// The configurations whose capacity is theirs to measure, and so to expect.
const OWN_CAPACITY: [&str; 5] = ["baseline-plus", "a1", "a2", "b1", "b2"];

impl Form for Plan {
    const NAME: &'static str = "plan";

    fn check(&self, report: &mut Report<'_>) {
        for (at, text) in [
            ("region", &self.region),
            ("models.default", &self.models.default),
            ("models.imported", &self.models.imported),
            (
                "models.self_hosted.geometry",
                &self.models.self_hosted.geometry,
            ),
            ("hardware.instance", &self.hardware.instance),
            ("fixed", &self.fixed),
        ] {
            if text.trim().is_empty() {
                report.add(at, format!("`{at}` is empty; name it"));
            }
        }
        self.check_rates(report);
        self.check_guardrails(report);
        self.check_expected(report);
        self.traffic.check(report);
        self.check_context(report);
    }
}

impl Plan {
    fn check_rates(&self, report: &mut Report<'_>) {
        for (at, pair) in self.rates.windows(2).enumerate() {
            if let [before, after] = pair
                && after <= before
            {
                report.add(
                    &format!("rates[{}]", at + 1),
                    format!("{after} does not rise above {before}; list each rate once, rising"),
                );
            }
        }
    }

    fn check_guardrails(&self, report: &mut Report<'_>) {
        for (at, policy) in self.guardrails.iter().enumerate() {
            if self.guardrails[..at].contains(policy) {
                report.add(
                    &format!("guardrails[{at}]"),
                    format!(
                        "`{}` is listed twice and would be billed twice; remove one",
                        policy.as_str()
                    ),
                );
            }
        }
    }

    fn check_expected(&self, report: &mut Report<'_>) {
        for (name, one) in &self.expected {
            let at = format!("expected.{name}");
            if !OWN_CAPACITY.contains(&name.as_str()) {
                report.add(
                    &at,
                    format!(
                        "`{name}` has no capacity of its own to expect; use {}",
                        OWN_CAPACITY.join(", ")
                    ),
                );
            }
            if !(one.low <= one.rate && one.rate <= one.high) {
                report.add(
                    &format!("{at}.rate"),
                    format!(
                        "{} is not between `low` {} and `high` {}; correct one of them",
                        one.rate, one.low, one.high
                    ),
                );
            }
            if one.source.trim().is_empty() {
                report.add(
                    &format!("{at}.source"),
                    "nobody could judge an expectation without its source; name it",
                );
            }
        }
    }

    /// One call must fit into the context, or no engine would take it.
    fn check_context(&self, report: &mut Report<'_>) {
        let call = self.traffic.input_tokens + self.traffic.output_tokens;
        let context = self.models.self_hosted.context_tokens;
        if call > f64::from(context) {
            report.add(
                "models.self_hosted.context_tokens",
                format!("a call of `traffic` has {call} tokens and does not fit into {context}; raise the context or shorten the call"),
            );
        }
    }
}

impl Traffic {
    fn check(&self, report: &mut Report<'_>) {
        let cached = self.prompt_cache_share + self.cache_write_share;
        if cached > 1.0 {
            report.add(
                "traffic.prompt_cache_share",
                format!("with `cache_write_share` it makes {cached} of a prompt; a token is read from the cache or written to it, so lower one"),
            );
        }
    }
}
