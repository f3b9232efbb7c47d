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
{
    echo 'chains: [chain.yaml]'
    echo 'threads: 1'
    if [ -n "${RECORD:-}" ]; then
        echo "record: {dir: $work/record}"
    fi
} >"$work/tap.yaml"
exec "$HOPSCOPE" tap "$work/tap.yaml"
