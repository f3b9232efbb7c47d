#!/usr/bin/env bash
# LiteLLM's proxy in the foreground, one worker unless LITELLM_WORKERS says otherwise.
#
#   LITELLM_MASTER_KEY=sk-… litellm.sh WORK_DIR PORT INNER_TAP ENGINE      (each HOST:PORT)
#
# Model `m` goes to INNER_TAP, `m-untapped` straight to ENGINE: the same process serves the
# tapped chain and its control. Ready when GET http://127.0.0.1:PORT/health/liveliness answers
# 200, 15 to 40 s after the start. The first streamed call loads more code: warm up.
# Why these settings: forward_client_headers_to_llm_api lets the call id (x-*) through to the
# inner tap; retries are off on all three levels so that one call makes one exchange, and cooldowns, or
# one call's error would be the answer of the next ones.
set -euo pipefail
. "$(dirname "$0")/../place.sh"
[ $# -eq 4 ] || { echo "usage: litellm.sh WORK_DIR PORT INNER_TAP ENGINE" >&2; exit 2; }
: "${LITELLM_MASTER_KEY:?set it to sk- and at least 32 random hex digits: LiteLLM refuses to start without}"
work=$1 port=$2 inner_tap=$3 engine=$4
python=$(program litellm python)
mkdir -p "$work"

cat >"$work/litellm.yaml" <<YAML
model_list:
  - model_name: m
    litellm_params: {model: openai/m, api_base: "http://$inner_tap/v1", api_key: none, max_retries: 0, timeout: 600}
  - model_name: m-untapped
    litellm_params: {model: openai/m, api_base: "http://$engine/v1", api_key: none, max_retries: 0, timeout: 600}
router_settings: {num_retries: 0, disable_cooldowns: true}
litellm_settings: {num_retries: 0, request_timeout: 600, telemetry: false}
general_settings:
  forward_client_headers_to_llm_api: true
  background_health_checks: false
YAML

export LITELLM_MASTER_KEY LITELLM_TELEMETRY=False LITELLM_LOCAL_MODEL_COST_MAP=True DO_NOT_TRACK=1
cd "$work"
exec "$python" "$(dirname "$python")/litellm" --config "$work/litellm.yaml" \
    --host 127.0.0.1 --port "$port" --num_workers "${LITELLM_WORKERS:-1}"
