//! End to end through real sockets: taps in this process, stand-ins as engine and gateway.

mod faults;
mod legs;
mod processes;
mod rig;
mod transparent;
