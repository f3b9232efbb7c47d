//! How many tokens a backend counts for the prompts of a run, as the usage probe found it.

use serde::{Deserialize, Serialize};

/// The lengths that the probe of one reference found, for all chains that send the same text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenProbe {
    /// The chain whose backend's count was brought to what was asked for.
    pub reference: String,
    /// Tokens asked for: system prompt and user's part.
    pub asked: u32,
    /// Tokens of the system prompt that are sent, under the named tokenizer; 0 without one.
    pub system: u32,
    /// Tokens of the user's part that are sent, under the named tokenizer.
    pub user: u32,
    /// Tokens that the reference counts beside the text: its chat template. From the fit.
    pub template: f64,
    /// Tokens that it counts for one of the named tokenizer. From the fit.
    pub each: f64,
    /// What each chain counts for such prompts, the reference first.
    pub counted: Vec<Counted>,
}

impl TokenProbe {
    /// Tokens that are sent, under the named tokenizer.
    #[must_use]
    pub fn sent(&self) -> u32 {
        self.system.saturating_add(self.user)
    }

    /// Both counts in words, and how much the others' differ.
    #[must_use]
    pub fn words(&self, tokenizer: &str) -> String {
        let mut text = format!(
            "Prompts: {} tokens asked for, {} of {tokenizer} sent",
            self.asked,
            self.sent()
        );
        for one in &self.counted {
            text.push_str("; ");
            text.push_str(&one.chain);
            let Some(mean) = one.mean() else {
                text.push_str(" states no count");
                continue;
            };
            let (low, high) = (one.tokens.iter().min(), one.tokens.iter().max());
            text.push_str(&format!(
                " counts {mean:.1} ({}–{} in {} prompts)",
                low.unwrap_or(&0),
                high.unwrap_or(&0),
                one.tokens.len()
            ));
            if one.chain != self.reference
                && let Some(deviation) = one.deviation
            {
                text.push_str(&format!(
                    ", {:+.2} % from {}",
                    deviation * 100.0,
                    self.reference
                ));
            }
        }
        text
    }
}

/// What the backend of one chain counts for prompts of these lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// The chain.
    pub chain: String,
    /// `usage.prompt_tokens` of each prompt; empty where its answers state none.
    pub tokens: Vec<u32>,
    /// The mean over the reference's mean of the same prompts, less 1: 0 for the reference, `None` where
    /// its answers state none.
    pub deviation: Option<f64>,
}

impl Counted {
    /// The mean of the counts; `None` of none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.tokens.iter().map(|n| f64::from(*n)).sum();
        (!self.tokens.is_empty()).then(|| sum / self.tokens.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_counts_are_told_and_what_nobody_counted_is_no_zero() {
        let counted = |chain: &str, tokens: &[u32], deviation| Counted {
            chain: chain.to_owned(),
            tokens: tokens.to_vec(),
            deviation,
        };
        let probe = TokenProbe {
            reference: "a".to_owned(),
            asked: 500,
            system: 100,
            user: 280,
            template: 25.0,
            each: 1.25,
            counted: vec![
                counted("a", &[498, 502], Some(0.0)),
                counted("b", &[518, 522], Some(0.04)),
                counted("c", &[], None),
            ],
        };
        assert_eq!(
            probe.words("o200k_base"),
            "Prompts: 500 tokens asked for, 380 of o200k_base sent; a counts 500.0 (498–502 in 2 prompts); \
             b counts 520.0 (518–522 in 2 prompts), +4.00 % from a; c states no count"
        );
        assert_eq!(probe.counted[2].mean(), None);
    }
}
