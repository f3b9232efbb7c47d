#!/usr/bin/env bash
# A day of load in minutes: 2.6 million calls through an outer and an inner tap, and what the load generator and the
# tap hold in memory meanwhile, second by second, the close of the run included.
#
#   bench/soak/run.sh                       24 phases at 2000 calls a second: about 25 minutes
#   RATE=600 SECONDS_AN_HOUR=10 bench/soak/run.sh   less
#   HOPSCOPE=other/hopscope bench/soak/run.sh       another build
#
# Needs what the repository needs to build, and 12 GB of disk. A run that came to its end is kept as
# results/<date>-<machine>.md; everything it shows is simulated but the memory.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../tests/real/place.sh"
target=$(dirname "$real_home")
rate=${RATE:-2000}
hour=${SECONDS_AN_HOUR:-54}

if [ -z "${HOPSCOPE:-}" ]; then
    cargo build --release --locked --bin hopscope --manifest-path "$repo_root/Cargo.toml" --target-dir "$target"
    HOPSCOPE="$target/release/hopscope"
fi
HOPSCOPE=$(realpath "$HOPSCOPE")
ulimit -n "$(ulimit -Hn)"
commit=$(git -C "$repo_root" describe --always --dirty 2>/dev/null || echo unknown)
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sed -n 1p | tr -cs '[:alnum:]\n' - | tr '[:upper:]' '[:lower:]')
name="$(date -u +%F)-$(nproc)x-${cpu%-}"
work=$(mktemp -d)
started=()
stop() {
    for pid in "${started[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$work"
}
trap stop EXIT

# Where the stand-ins and the taps listen.
engine=127.0.0.1:17911 outer=127.0.0.1:17912 inner=127.0.0.1:17913 relay=127.0.0.1:17914 admin=127.0.0.1:17915
cat >"$work/chain.yaml" <<YAML
name: soak
kind: gateway
gateway: {name: byte relay}
simulated: true
entry: http://$outer
model: m
recipe: {forward: header, tried: true, explain: a relay passes headers on}
taps:
  - {name: outer, position: outer, listen: "$outer", upstream: {addresses: ["$relay"]}}
  - {name: inner, position: inner, listen: "$inner", upstream: {addresses: ["$engine"]}}
YAML
cat >"$work/tap.yaml" <<YAML
chains: [chain.yaml]
admin: $admin
YAML
{
    printf 'name: soak\nnumber: 8\nquestion: Does the generator stay as it is?\n'
    printf 'workload: {input_tokens: 20, output_tokens: 16}\nblocks: 1\nwarmup: {calls: 1}\nseed: 8\nprofile:\n  phases:\n'
    for n in $(seq -w 24); do
        printf '    - {name: hour-%s, rate: %s, duration: %ss}\n' "$n" "$rate" "$hour"
    done
} >"$work/scenario.yaml"

begin() {
    "$HOPSCOPE" "$@" >>"$work/log" 2>&1 &
    started+=($!)
}
begin sim engine --listen "$engine" --ttft-us 1000 --gap-us 0
begin sim relay --listen "$relay" --upstream "$inner"
begin tap --config "$work/tap.yaml" --record "$work/records"
tap=$!
for address in $engine $relay $outer; do
    for _ in $(seq 100); do
        (exec 3<>"/dev/tcp/${address%:*}/${address#*:}") 2>/dev/null && break
        sleep 0.1
    done
done
"$HOPSCOPE" load --quiet --scenario "$work/scenario.yaml" --chain "$work/chain.yaml" --out "$work/run" \
    --tap "$work/records:$tap" >"$work/said" 2>&1 &
load=$!
started+=("$load")

anonymous() { sed -n 's/^Pss_Anon: *\([0-9]*\) kB/\1/p' "/proc/$1/smaps_rollup" 2>/dev/null; }
begun=$(date +%s)
while kill -0 "$load" 2>/dev/null; do
    row="$(($(date +%s) - begun)) $(anonymous "$load" || true) $(anonymous "$tap" || true)"
    [ "$(wc -w <<<"$row")" -eq 3 ] && echo "$row" >>"$work/memory"
    sleep 1
done
status=0
wait "$load" || status=$?
[ "$status" -le 1 ] || { cat "$work/said" "$work/log" >&2; exit "$status"; }

python3 - "$work" "$rate" "$hour" "$commit" "$name" >"$work/outcome.md" <<'PY'
import json
import os
import sys

work, rate, hour, commit, name = sys.argv[1:]
lasts = 24 * int(hour)
rows = [[int(cell) for cell in line.split()] for line in open(f"{work}/memory")]
cell = json.load(open(f"{work}/run/manifest.json"))["cells"][0]
size = sum(os.path.getsize(os.path.join(at, file)) for at, _, files in os.walk(f"{work}/run") for file in files)


def most(begin, end, column):
    values = [row[column] for row in rows if begin <= row[0] < end]
    return f"{max(values) / 1024:.1f}" if values else "not measured"


print(f"# A day of load in {lasts / 60:.0f} minutes\n")
print(f"{cell['sent']} calls sent of {cell['scheduled']} scheduled, {rate} a second, 16 tokens each, through an outer and an inner tap of one process, a byte")
print(f"relay and an engine (stand-ins) on one machine ({name}). hopscope {commit}.\n")
print("Memory of a process' own (`Pss_Anon`), the largest of each stretch, looked at once a second, MB:\n")
print("| stretch | load generator | tap process |\n|---|---|---|")
for n in range(0, 24, 3):
    begin, end = n * int(hour), (n + 3) * int(hour)
    print(f"| hours {n + 1} to {n + 3} | {most(begin, end, 1)} | {most(begin, end, 2)} |")
print(f"| close of the run | {most(lasts, 10**9, 1)} | {most(lasts, 10**9, 2)} |\n")
print(f"The close took {rows[-1][0] - lasts} s and left {size / 1e9:.1f} GB.")
PY
cat "$work/outcome.md"
mkdir -p "$here/results"
mv "$work/outcome.md" "$here/results/$name.md"
echo "kept as bench/soak/results/$name.md"
