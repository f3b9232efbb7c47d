#!/usr/bin/env bash
# llama.cpp's server in the foreground: Gemma 3 270M as `m`, four slots of 2048 tokens, two threads.
#
#   llama-cpp.sh WORK_DIR PORT
#
# Ready when GET http://127.0.0.1:PORT/health answers 200, about 2 s after the start; metrics are on
# /metrics. It announces `Keep-Alive: timeout=5` and yet closes the connection behind every streamed answer.
set -euo pipefail
. "$(dirname "$0")/../place.sh"
[ $# -eq 2 ] || { echo "usage: llama-cpp.sh WORK_DIR PORT" >&2; exit 2; }
work=$1 port=$2
server=$(program llama-cpp llama-server)
mkdir -p "$work"
cd "$work"
exec "$server" --model "$real_home/llama-cpp/model/gemma.gguf" --alias m --host 127.0.0.1 --port "$port" \
    --metrics --parallel 4 --ctx-size 8192 --threads 2
