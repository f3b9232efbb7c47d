//! Scenarios, arrivals, clients and probes: what drives a chain.
