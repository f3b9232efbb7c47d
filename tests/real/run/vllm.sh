#!/usr/bin/env bash
# vLLM in the foreground, on one core, with the small model that install/vllm-model.py describes and
# dummy weights. It serves `m`; KV blocks are of 128 tokens, so a shorter prompt never hits its cache.
#
#   vllm.sh WORK_DIR PORT
#
# Ready when GET http://127.0.0.1:PORT/health answers 200: half a minute to a minute and a half, three minutes
# beside much else. Two of them need some 6 GB.
set -euo pipefail
. "$(dirname "$0")/../place.sh"
[ $# -eq 2 ] || { echo "usage: vllm.sh WORK_DIR PORT" >&2; exit 2; }
work=$1 port=$2
vllm=$(program vllm vllm)
mkdir -p "$work"
work=$(cd "$work" && pwd)

export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export XDG_CACHE_HOME="$work/cache" XDG_CONFIG_HOME="$work/config"
export VLLM_CPU_KVCACHE_SPACE=1 OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind
cd "$work"
exec "$vllm" serve "$real_home/vllm/model" --served-model-name m --load-format dummy --enforce-eager \
    --max-model-len 2048 --max-num-seqs 16 --host 127.0.0.1 --port "$port" --enable-prompt-tokens-details
