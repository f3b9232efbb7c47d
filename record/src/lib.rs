//! What was measured: marks, timeline, exchange, call, legs, pairing, histograms, verdict, and the run directory.
