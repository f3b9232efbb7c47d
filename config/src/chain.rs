//! A chain: the ordered components of one configuration, and where the taps sit between them.

mod api;
mod check;
mod gateway;
mod scrape;
mod sign;
mod tap;
mod translate;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use api::Api;
pub use gateway::{Forward, Gateway, HeaderEvidence, ProcessMatch, Recipe};
pub use scrape::{Figure, Scrape, ScrapeKind};
pub use sign::{AwsService, Sign};
pub use tap::{ClientTls, HostHeader, Position, ServerTls, TapLimits, TapPoint, Upstream};
pub use translate::{Translate, TranslateFrom, TranslateTo, Unsupported};

use crate::scalar::{EnvName, HeaderName, HttpUrl};

/// One chain: what stands between the client and the engine, and the taps around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The name under which results of this chain are stored and shown. Letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// What the chain is for: the component that is measured, or one of the controls.
    pub kind: ChainKind,
    /// The chain that this one is the control of. An `untapped` chain must name it; a control
    /// without it (`direct`, `loop`, `relay`) serves every chain of a run.
    #[serde(default)]
    pub control_of: Option<String>,
    /// Whether any component is a stand-in. Results of such a chain are marked *simulated* wherever they are shown.
    #[serde(default)]
    pub simulated: bool,
    /// The component between the outer and the inner tap. Required for `gateway`, `service` and `untapped`.
    #[serde(default)]
    pub gateway: Option<Gateway>,
    /// Where the client sends its requests: the outer tap, or the component itself when untapped. No path.
    pub entry: HttpUrl,
    /// The API that the entry speaks. Default `openai-chat`.
    #[serde(default)]
    pub api: Api,
    /// With `api: converse`: a system prompt of at least so many characters ends in a cache point. Absent: none does.
    #[serde(default)]
    pub cache_system_from: Option<u64>,
    /// What precedes the API's own path, such as `/chat/completions`. Default `/v1`; nothing with `api: converse`.
    #[serde(default)]
    pub path_prefix: Option<String>,
    /// The model's name as the entry knows it.
    pub model: String,
    /// The environment variable that holds the key; sent as `Authorization: Bearer`. Absent: no key is sent.
    #[serde(default)]
    pub key_env: Option<EnvName>,
    /// Headers that the client adds to each request. Never secrets.
    #[serde(default)]
    pub request_headers: BTreeMap<HeaderName, String>,
    /// How the call id survives the component. Required for `gateway`.
    #[serde(default)]
    pub recipe: Option<Recipe>,
    /// Replicas of the engine that serve this chain while it is measured: a capacity is that of so many. Absent: not
    /// stated, as of a managed service.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000))]
    pub replicas: Option<u32>,
    /// The taps of the chain, from the client inwards. A component that balances has one inner tap per pod.
    #[serde(default)]
    pub taps: Vec<TapPoint>,
    /// The components' own metrics, read while the chain is driven. A component that balances has one
    /// entry per pod behind it.
    #[serde(default)]
    pub scrape: Vec<Scrape>,
}

/// What a chain is for. The controls are those of the method: each isolates one share of the instrument.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ChainKind {
    /// Client → outer tap → component → inner tap → engine: what is measured.
    Gateway,
    /// Client → outer tap → a service that is measured as a whole, such as a managed model: nothing can
    /// stand inside it, so it has no legs.
    Service,
    /// Client → component → engine, no tap: shows what inserting the taps does.
    Untapped,
    /// Client → tap → engine: the engine without the component.
    Direct,
    /// Outer tap → inner tap → engine: one hop and one wake-up, the instrument alone.
    Loop,
    /// Outer tap → zero-delay byte relay → inner tap: the floor, two hops and the relay's wake-up.
    Relay,
}

impl ChainKind {
    /// Whether the chain is a control and not a thing to be measured.
    #[must_use]
    pub const fn is_control(self) -> bool {
        !matches!(self, Self::Gateway | Self::Service)
    }

    /// The name as it is written in a file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Service => "service",
            Self::Untapped => "untapped",
            Self::Direct => "direct",
            Self::Loop => "loop",
            Self::Relay => "relay",
        }
    }
}

impl Chain {
    /// The taps at `position`, in the order of the file.
    pub fn taps_at(&self, position: Position) -> impl Iterator<Item = &TapPoint> {
        self.taps.iter().filter(move |tap| tap.position == position)
    }

    /// The path of a request: the prefix and the API's own `path`, such as `/chat/completions`.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        let prefix = self.path_prefix.as_deref();
        let prefix = prefix.unwrap_or_else(|| self.api.prefix());
        format!("{}{prefix}{path}", self.entry.path())
    }
}
