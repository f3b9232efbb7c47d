# Sourced by install.sh: components that come from PyPI, each a virtual environment of its own
# built by uv from a locked list in requirements/. A component that needs more than its list has a script
# of its name beside this one, with before_install, after_install or both.

uv_version=0.13.9

# Prints what decides the content of a component: when it changes, the component is built anew.
pypi_recipe() {
    python3 -c 'import sys; print("python", sys.version.split()[0])'
    echo "uv $uv_version"
    cat "$real_src/requirements/$1.txt"
    find "$real_src/install" -name "$1[.-]*" -print0 | sort -z | xargs -0r cat
}

install_uv() {
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "python3 is $(python3 --version 2>&1 | cut -d' ' -f2), the lists need 3.11 or later"
        return 1
    }
    if "$real_home/uv/bin/uv" --version 2>/dev/null | grep -q "^uv $uv_version"; then
        return 0
    fi
    rm -rf "$real_home/uv"
    python3 -m venv "$real_home/uv" || {
        echo "python3 has no working venv module (Debian and Ubuntu: apt-get install python3-venv)"
        return 1
    }
    "$real_home/uv/bin/pip" install --quiet --disable-pip-version-check "uv==$uv_version"
}

install_pypi() {
    local name=$1 uv="$real_home/uv/bin/uv"
    install_uv || return 1
    export UV_PYTHON_DOWNLOADS=never
    "$uv" venv --quiet --python "$(command -v python3)" "$real_home/$name" || return 1
    before_install() { :; }
    after_install() { :; }
    [ ! -f "$real_src/install/$name.sh" ] || . "$real_src/install/$name.sh"
    before_install || return 1
    # The list is whole: nothing beyond it is looked for.
    "$uv" pip install --quiet --no-deps --python "$real_home/$name/bin/python" \
        --requirements "$real_src/requirements/$name.txt" || return 1
    after_install
}
