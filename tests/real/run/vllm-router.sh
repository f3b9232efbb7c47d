#!/usr/bin/env bash
# vllm-router in the foreground: round robin, retries and circuit breaker off.
#
#   [POLICY=cache_aware] [METRICS_PORT=n] vllm-router.sh WORK_DIR PORT WORKER…      (each HOST:PORT)
#
# Ready when GET http://127.0.0.1:PORT/health answers 200, about 2 s after every WORKER answers
# GET /health. Its Prometheus page is on METRICS_PORT, else on a free port that is written to
# WORK_DIR/metrics-port.
set -euo pipefail
. "$(dirname "$0")/../place.sh"
[ $# -ge 3 ] || { echo "usage: vllm-router.sh WORK_DIR PORT WORKER…" >&2; exit 2; }
work=$1 port=$2
shift 2
python=$(program vllm-router python)
mkdir -p "$work"
metrics_port=${METRICS_PORT:-$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}
echo "$metrics_port" >"$work/metrics-port"

exec "$python" "$(dirname "$python")/vllm-router" --host 127.0.0.1 --port "$port" \
    --worker-urls "${@/#/http://}" --policy "${POLICY:-round_robin}" \
    --disable-retries --disable-circuit-breaker --log-level warning \
    --prometheus-host 127.0.0.1 --prometheus-port "$metrics_port"
