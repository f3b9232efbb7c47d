#!/usr/bin/env bash
# Measures the tap beside nginx, HAProxy and Envoy: delay added to a streamed token, CPU per event.
#
#   bench/hop-delay/run.sh                                   about 16 minutes at 1, 50, 300 streams
#   bench/hop-delay/run.sh --streams 500,1000                further levels
#   HOPSCOPE=other/hopscope bench/hop-delay/run.sh …         another build of the tap
#
# Arguments go to the hop-delay program (--help lists them). Needs what the repository needs to
# build, tests/real/install.sh's needs, and a machine on which nothing else runs. A valid run is
# kept as results/<date>-<machine>.json and .md; one that was disturbed is only shown.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../tests/real/place.sh"
target=$(dirname "$real_home")
real="$repo_root/tests/real"

"$real/install.sh" nginx haproxy envoy
if [ -z "${HOPSCOPE:-}" ]; then
    cargo build --release --bin hopscope --manifest-path "$repo_root/Cargo.toml" --target-dir "$target"
    HOPSCOPE="$target/release/hopscope"
fi
export HOPSCOPE
cargo build --release --locked --manifest-path "$here/Cargo.toml" --target-dir "$target/bench"

pin=()
if command -v taskset >/dev/null; then
    pin=(--pin)
fi
ulimit -n "$(ulimit -Hn)"
commit=$(git -C "$repo_root" describe --always --dirty 2>/dev/null || echo unknown)
version() { cat "$real_home/$1/version"; }
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sed -n 1p | tr -cs '[:alnum:]\n' - | tr '[:upper:]' '[:lower:]')
name="$(date -u +%F)-$(nproc)x-${cpu%-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

status=0
"$target/bench/release/hop-delay" "${pin[@]}" --work "$work" --out "$work/outcome.json" \
    --subject "tap=$here/tap.sh {work} {port} {upstream}" \
    --subject "nginx=$real/run/nginx.sh {work} {port} {upstream}" \
    --subject "haproxy=$real/run/haproxy.sh {work} {port} {upstream}" \
    --subject "envoy=$real/run/envoy.sh {work} {port} {upstream}" \
    --note "hopscope $commit" --note "$(version nginx)" --note "$(version haproxy)" \
    --note "envoy $(version envoy)" --note "repeat: bench/hop-delay/run.sh $*" \
    "$@" | sed '/^written to /d' | tee "$work/outcome.md" || status=$?
if [ "$status" -eq 0 ]; then
    mkdir -p "$here/results"
    mv "$work/outcome.md" "$here/results/$name.md"
    # Without the paths of this machine.
    sed -e "s#$repo_root/##g" -e "s#$work#WORK#g" "$work/outcome.json" >"$here/results/$name.json"
    echo "kept as bench/hop-delay/results/$name.json"
fi
exit "$status"
