//! What a decision says of reports made by hand.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

mod answered;
mod guided;
mod rig;
mod shown;
mod tabled;
