# The commands of everyday work. `.ci/run` holds what they do, and needs no `just`.

# What is there
default:
    @just --list --unsorted

# Stand-ins, taps and load on this machine; a page at the end
demo:
    cargo run --release -- demo

# All tests; real components that are missing are skipped, and named
test:
    cargo test --release --workspace

# Format the workspace and what stands beside it
fmt:
    cargo fmt --all
    cargo fmt --manifest-path fuzz/Cargo.toml
    cargo fmt --manifest-path bench/hop-delay/Cargo.toml

# Format, lints and documentation, as the change will be judged
lint:
    .ci/run fmt clippy doc

# The published JSON Schemas, after a change of a form
schema:
    UPDATE=1 cargo test --release -p config --test shipped

# The instrument's error on this machine, in minutes
calibrate:
    .ci/run calibrate

# The instrument's error at full length
calibrate-full:
    cargo run --release -- calibrate --config config/calibration.yaml

# Real gateways and servers under target/real
real *components:
    tests/real/install.sh {{ components }}

# Ten seconds of each fuzz target, or `just fuzz 60`
fuzz seconds="10":
    FUZZ_SECONDS={{ seconds }} .ci/run fuzz

# The tap against nginx, HAProxy and Envoy
bench:
    bench/hop-delay/run.sh

# The load generator against AIPerf
bench-generator:
    bench/generator/run.sh

# Everything that a change must pass
ci:
    CI=true .ci/run
