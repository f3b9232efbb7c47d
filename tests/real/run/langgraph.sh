#!/usr/bin/env bash
# The LangGraph agent of deploy/agent, in the foreground.
#   langgraph.sh <work dir> <port> <model address> <tool server address>
# Ready when GET /health is 200: it has then listed the tools. The key of the tools is that of TOOLS_KEY.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../place.sh"
python=$(program langgraph python)
mkdir -p "$1"
cd "$1"
export OPENAI_BASE_URL="http://$3/v1" OPENAI_API_KEY=none MODEL=m TOOLS_URL="http://$4/mcp" LISTEN="127.0.0.1:$2"
export LANGSMITH_TRACING=false NO_PROXY=127.0.0.1,localhost
exec "$python" "$repo_root/deploy/agent/agent.py"
