#!/usr/bin/env bash
# HAProxy in the foreground: HTTP mode, one thread, round robin, `option http-no-delay`, without
# which it holds small chunks back (HOLD=default leaves it out, for contrast).
#
#   [HOLD=default] haproxy.sh WORK_DIR PORT UPSTREAM…      (each HOST:PORT)
#
# Ready when GET http://127.0.0.1:PORT/-/ready answers 200.
set -euo pipefail
. "$(dirname "$0")/../place.sh"
[ $# -ge 3 ] || { echo "usage: haproxy.sh WORK_DIR PORT UPSTREAM…" >&2; exit 2; }
work=$1 port=$2
shift 2
haproxy=$(program haproxy haproxy)
mkdir -p "$work"

no_delay='option http-no-delay'
if [ "${HOLD:-off}" = default ]; then
    no_delay=''
fi
servers="" number=0
for upstream in "$@"; do
    number=$((number + 1))
    servers="$servers
    server engine$number $upstream"
done
cat >"$work/haproxy.cfg" <<CFG
global
    nbthread 1
    maxconn 8000
defaults
    mode http
    $no_delay
    retries 0
    timeout connect 5s
    timeout client 600s
    timeout server 600s
    timeout http-keep-alive 600s
frontend front
    bind 127.0.0.1:$port backlog 4096
    monitor-uri /-/ready
    default_backend engines
backend engines
    balance roundrobin$servers
CFG

exec "$haproxy" -db -f "$work/haproxy.cfg"
