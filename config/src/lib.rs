//! The shipped configuration files and the types that check them.
//!
//! A file is read in two steps. First what was *written*: YAML into a tree that knows the place of
//! every value, held against the JSON Schema of the form, so that unknown keys, missing keys, wrong
//! types and malformed addresses or durations are all found at once. Then what it *means*: the typed
//! form, and what must hold between its parts, such as no two listeners on one port.
//! Every finding is one line, `file:line:column: what is wrong; remedy`.
//!
//! | form | files |
//! |---|---|
//! | [`Chain`] | `config/chains/*.yaml` |
//! | [`TapProcess`] | `config/taps/*.yaml` |
//! | [`Scenario`] | `config/scenarios/*.yaml`, `config/experiments/*.yaml` |
//! | [`Calibration`] | `config/calibration.yaml`, `config/calibration-short.yaml` |
//! | [`Demo`] | `config/demo/demo.yaml` |
//! | [`Variants`] | `config/variants.yaml` |
//! | [`Matrix`] | `config/matrix.yaml`, `config/demo/matrix.yaml` |
//! | [`Plan`] | `config/plan.yaml`, `config/plan-sound.yaml` |
//! | [`Geometry`] | `config/geometry.yaml` |
//! | [`PriceFile`] | `config/prices/*.yaml` |
//! | [`Objectives`] | `config/objectives.yaml` |
//! | [`Facts`] | `config/facts.yaml` |
//! | [`Workload`] | `config/workload.yaml` |
//!
//! Secrets never stand in a file: `key_env` names the environment variable that holds one.

pub mod calibration;
pub mod chain;
pub mod demo;
mod error;
pub mod facts;
pub mod geometry;
mod load;
pub mod matrix;
mod names;
pub mod objectives;
pub mod plan;
pub mod prices;
mod scalar;
pub mod scenario;
pub mod schema;
mod set;
mod shape;
pub mod standin;
pub mod tap;
mod text;
mod tree;
pub mod variants;
pub mod workload;

pub use calibration::Calibration;
pub use chain::{Api, Chain, ChainKind, Position, TapPoint};
pub use demo::Demo;
pub use error::{ConfigError, Finding};
pub use facts::Facts;
pub use geometry::Geometry;
pub use load::{Checked, Form, Report, from_text, load};
pub use matrix::Matrix;
pub use objectives::Objectives;
pub use plan::Plan;
pub use prices::{PriceBook, PriceFile};
pub use scalar::{ByteSize, Date, EnvName, HeaderName, HostPort, HttpUrl, Listen, Period};
pub use scenario::Scenario;
pub use set::{DemoSet, MatrixSet, TapSet, chains, demo, matrix, tap_process};
pub use tap::TapProcess;
pub use variants::Variants;
pub use workload::Workload;
