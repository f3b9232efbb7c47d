#!/usr/bin/env bash
# One hopscope tap in the foreground, measuring everything, on one thread like the proxies that it
# is compared with.
#
#   HOPSCOPE=path/to/hopscope [RECORD=1] tap.sh WORK_DIR PORT UPSTREAM
#
# With RECORD=1 it also writes every exchange to WORK_DIR/record.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: tap.sh WORK_DIR PORT UPSTREAM" >&2; exit 2; }
: "${HOPSCOPE:?set it to the hopscope program}"
work=$1 port=$2 upstream=$3
mkdir -p "$work"
cat >"$work/chain.yaml" <<YAML
name: hop-delay
kind: direct
entry: http://127.0.0.1:$port
model: m
taps:
  - name: outer
    position: outer
    listen: 127.0.0.1:$port
    upstream: {addresses: ["$upstream"]}
YAML
printf 'chains: [chain.yaml]\nthreads: 1\n' >"$work/tap.yaml"
record=()
if [ -n "${RECORD:-}" ]; then
    record=(--record "$work/record")
fi
exec "$HOPSCOPE" tap --config "$work/tap.yaml" "${record[@]}"
