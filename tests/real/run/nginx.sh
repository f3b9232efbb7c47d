#!/usr/bin/env bash
# nginx in the foreground, set up to pass streams through: no buffering, pooled upstream
# connections, one worker. With BUFFERING=default it is nginx as it comes, for contrast: it speaks
# HTTP/1.0 upstream, one connection a call, and a body without chunks is held until it ends.
#
#   [BUFFERING=default] nginx.sh WORK_DIR PORT UPSTREAM…      (each HOST:PORT)
#
# Ready when GET http://127.0.0.1:PORT/-/ready answers 200.
set -euo pipefail
. "$(dirname "$0")/../place.sh"
[ $# -ge 3 ] || { echo "usage: nginx.sh WORK_DIR PORT UPSTREAM…" >&2; exit 2; }
work=$1 port=$2
shift 2
nginx=$(program nginx nginx)
mkdir -p "$work/tmp"

streaming='proxy_buffering off;
            proxy_request_buffering off;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_read_timeout 600s;'
pool='keepalive 1024;'
if [ "${BUFFERING:-off}" = default ]; then
    streaming='' pool=''
fi
cat >"$work/nginx.conf" <<CONF
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid $work/nginx.pid;
error_log stderr warn;
events { worker_connections 8192; }
http {
    access_log off;
    client_body_temp_path $work/tmp/body;
    proxy_temp_path $work/tmp/proxy;
    fastcgi_temp_path $work/tmp/fastcgi;
    uwsgi_temp_path $work/tmp/uwsgi;
    scgi_temp_path $work/tmp/scgi;
    keepalive_requests 1000000;
    client_max_body_size 0;
    upstream engines {
$(printf '        server %s max_fails=0;\n' "$@")
        $pool
    }
    server {
        listen 127.0.0.1:$port backlog=4096;
        location = /-/ready { return 200 "ready\n"; }
        location / {
            proxy_pass http://engines;
            $streaming
        }
    }
}
CONF

exec "$nginx" -e stderr -p "$work" -c "$work/nginx.conf"
