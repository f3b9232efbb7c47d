#!/usr/bin/env bash
# Envoy in the foreground: cleartext HTTP/1 on both sides (HTTP2=1: HTTP/2 by prior knowledge, while
# HTTP/1 clients are served too), one worker thread, round robin.
#
#   [HTTP2=1] [ADMIN_PORT=n] [UNTAPPED_PORT=n ENGINE=HOST:PORT] envoy.sh WORK_DIR PORT UPSTREAM…
#
# (UPSTREAM is HOST:PORT.) Ready when GET http://127.0.0.1:PORT/-/ready answers 200. With
# ADMIN_PORT, /stats/prometheus is served there. With UNTAPPED_PORT the same process also passes
# that port straight to ENGINE: the control beside a tapped UPSTREAM. A client's x-request-id is
# kept, no timeout cuts a stream, nothing is retried.
set -euo pipefail
. "$(dirname "$0")/../place.sh"
[ $# -ge 3 ] || { echo "usage: envoy.sh WORK_DIR PORT UPSTREAM…" >&2; exit 2; }
work=$1 port=$2
shift 2
envoy=$(program envoy envoy)
mkdir -p "$work"

listener() {
    local name=$1 port=$2
    cat <<YAML
    - name: $name
      address: {socket_address: {address: 127.0.0.1, port_value: $port}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: $name
                codec_type: $([ -n "${HTTP2:-}" ] && echo AUTO || echo HTTP1)
                preserve_external_request_id: true
                stream_idle_timeout: 0s
                request_timeout: 0s
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes:
                        - match: {path: "/-/ready"}
                          direct_response: {status: 200}
                        - match: {prefix: "/"}
                          route: {cluster: $name, timeout: 0s, idle_timeout: 0s}
YAML
}

cluster() {
    local name=$1 upstream
    shift
    cat <<YAML
    - name: $name
      type: STATIC
      connect_timeout: 5s
      lb_policy: ROUND_ROBIN
$([ -z "${HTTP2:-}" ] || cat <<'HTTP2'
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {http2_protocol_options: {}}
HTTP2
)
      circuit_breakers:
        thresholds: [{max_connections: 100000, max_pending_requests: 100000, max_requests: 100000}]
      load_assignment:
        cluster_name: $name
        endpoints:
          - lb_endpoints:
YAML
    for upstream in "$@"; do
        echo "              - endpoint: {address: {socket_address: {address: ${upstream%:*}, port_value: ${upstream##*:}}}}"
    done
}

untapped=${UNTAPPED_PORT:-}
if [ -n "$untapped" ]; then
    : "${ENGINE:?UNTAPPED_PORT needs ENGINE=HOST:PORT}"
fi
{
    if [ -n "${ADMIN_PORT:-}" ]; then
        echo "admin: {address: {socket_address: {address: 127.0.0.1, port_value: $ADMIN_PORT}}}"
    fi
    echo 'static_resources:'
    echo '  listeners:'
    listener front "$port"
    [ -z "$untapped" ] || listener untapped "$untapped"
    echo '  clusters:'
    cluster front "$@"
    [ -z "$untapped" ] || cluster untapped "$ENGINE"
} >"$work/envoy.yaml"

exec "$envoy" --config-path "$work/envoy.yaml" --concurrency 1 --disable-hot-restart --log-level warn
