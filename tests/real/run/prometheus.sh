#!/usr/bin/env bash
# Prometheus in the foreground, scraping each TARGET every second. It asks for protobuf and keeps native
# histograms; with NATIVE=off it is as it comes, reads text and keeps classic ones.
#
#   [NATIVE=off] prometheus.sh WORK_DIR PORT TARGET…      (each HOST:PORT, its /metrics is read)
#
# Ready when GET http://127.0.0.1:PORT/-/ready answers 200; its data goes to WORK_DIR/data.
set -euo pipefail
. "$(dirname "$0")/../place.sh"
[ $# -ge 3 ] || { echo "usage: prometheus.sh WORK_DIR PORT TARGET…" >&2; exit 2; }
work=$1 port=$2
shift 2
prometheus=$(program prometheus prometheus)
mkdir -p "$work"
{
    echo 'global: {scrape_interval: 1s}'
    echo 'scrape_configs:'
    echo '  - job_name: hopscope'
    echo '    static_configs:'
    printf "      - {targets: ['%s']}\n" "$@"
} >"$work/prometheus.yml"

native=--enable-feature=native-histograms
[ "${NATIVE:-on}" = on ] || native=
exec "$prometheus" --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" \
    --web.listen-address="127.0.0.1:$port" $native
