//! What each configuration costs a month, by load, and where one becomes cheaper than another.
//!
//! [`study`] makes bills, crossings and a tornado of a plan, of prices and of measured capacity; `docs/cost.md`
//! has the rules. [`fit`] says what fits on which GPUs, [`findings`] what is wrong with a plan.

mod bill;
pub mod campaign;
mod course;
mod crossing;
pub mod findings;
pub mod fit;
mod inputs;
mod model;
mod set;
mod study;
mod tariff;
mod tornado;

pub use model::{
    Bill, Capacity, Configuration, Crossing, HOURS, Limit, Line, NoCrossing, Pair, Range, SECONDS,
    Study, TornadoBar,
};
pub use set::{SetError, apply};
pub use study::study;
