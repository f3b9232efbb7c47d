#!/usr/bin/env bash
# Measures hopscope's load generator beside aiperf (and guidellm) against an engine that knows the truth.
#
#   bench/generator/run.sh                             hopscope and aiperf at 1, 100, 500, 1000 streams, about 20 minutes
#   bench/generator/run.sh --with guidellm             guidellm too, up to 100 streams
#   bench/generator/run.sh --streams 100 --rounds 3    less
#   HOPSCOPE=other/hopscope bench/generator/run.sh …   another build
#
# Other arguments go to the package beside this (python3 -m generator --help). Needs what the repository
# needs to build, tests/real/install.sh's needs, and a machine on which nothing else runs. A valid run is
# kept as results/<date>-<machine>.json and .md; one that was disturbed is only shown.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../tests/real/place.sh"
target=$(dirname "$real_home")

with=() rest=()
while [ $# -gt 0 ]; do
    case "$1" in
        --with)
            [ "${2:-}" = guidellm ] || { echo "run.sh: --with takes guidellm" >&2; exit 2; }
            with=(guidellm)
            shift 2
            ;;
        *)
            rest+=("$1")
            shift
            ;;
    esac
done
"$repo_root/tests/real/install.sh" aiperf "${with[@]}"
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
status=0
# What a tool said before it failed is worth keeping.
trap '[ "$status" -gt 1 ] && echo "the files of the run are in $work" >&2 || rm -rf "$work"' EXIT

"$real_home/aiperf/bin/python" "$here/make_tokenizer.py" "$work/hub" "$repo_root"/*.md "$repo_root"/docs/*.md
tools=(--aiperf "$real_home/aiperf/bin/aiperf")
notes=(--note "hopscope $commit" --note "$(cat "$real_home/aiperf/version")")
for tool in "${with[@]}"; do
    tools+=("--$tool" "$real_home/$tool/bin/$tool")
    notes+=(--note "$(cat "$real_home/$tool/version")")
done
PYTHONPATH="$here" PYTHONDONTWRITEBYTECODE=1 python3 -m generator --hopscope "$HOPSCOPE" "${tools[@]}" \
    --hub "$work/hub" --work "$work/blocks" --out "$work/outcome.json" \
    "${notes[@]}" --note "repeat: bench/generator/run.sh ${with[*]:+--with ${with[*]} }${rest[*]}" \
    "${rest[@]}" | tee "$work/outcome.md" || status=$?
if [ "$status" -eq 0 ]; then
    mkdir -p "$here/results"
    mv "$work/outcome.md" "$here/results/$name.md"
    mv "$work/outcome.json" "$here/results/$name.json"
    echo "kept as bench/generator/results/$name.json"
fi
exit "$status"
