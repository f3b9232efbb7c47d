//! Every label of every metric. Values are bounded: chains and taps by the configuration, the
//! rest by the words of `record`.

use prometheus_client::encoding::EncodeLabelSet;

/// An exchange at a tap.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TapLabels {
    pub(crate) chain: String,
    pub(crate) tap: String,
}

/// How an exchange ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OutcomeLabels {
    pub(crate) chain: String,
    pub(crate) tap: String,
    pub(crate) outcome: &'static str,
}

/// A leg of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct LegLabels {
    pub(crate) chain: String,
    pub(crate) leg: &'static str,
    pub(crate) class: &'static str,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CallLabels {
    pub(crate) chain: String,
    pub(crate) class: &'static str,
}
