//! Bills, crossings and what-ifs through the crate's own surface.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

mod bills;
mod bounds;
mod crossings;
mod rig;
mod set;
