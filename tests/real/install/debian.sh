# Sourced by install.sh: components that are Debian packages, unpacked without touching the
# machine. A program that the machine already has is taken as it is.

# Prints what decides the content of a component. A release's archive keeps one version of a
# package only, so none can be pinned: the version is written beside the program instead.
debian_recipe() {
    echo "unpacked 1 $(. /etc/os-release 2>/dev/null; echo "${ID:-unknown} ${VERSION_ID:-}")"
}

# Writes bin/PROGRAM, which execs the real one with the libraries unpacked beside it.
write_launcher() {
    local home=$1 program=$2 real=$3 libraries=$4
    mkdir -p "$home/bin"
    {
        echo '#!/bin/sh'
        if [ -n "$libraries" ]; then
            echo "LD_LIBRARY_PATH=\"$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}\""
            echo 'export LD_LIBRARY_PATH'
        fi
        echo "exec \"$real\" \"\$@\""
    } >"$home/bin/$program"
    chmod +x "$home/bin/$program"
}

# Prints the packages that are missing for PACKAGE, itself included.
missing_packages() {
    apt-get --simulate --no-install-recommends install "$1" | awk '$1 == "Inst" { print $2 }'
}

fetch_packages() {
    local home=$1 package=$2 wanted
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || {
        echo "no $package on PATH and no apt-get here: install $package with your package manager"
        return 1
    }
    if ! missing_packages "$package" >/dev/null 2>&1; then
        apt-get --quiet update || {
            echo "the package lists are missing or old: run apt-get update as root"
            return 1
        }
    fi
    wanted=$(missing_packages "$package") || return 1
    mkdir -p "$home/deb" "$home/root"
    # A stale list names files that the archive no longer has: one update cures it.
    (cd "$home/deb" && apt-get --quiet download $wanted) ||
        (apt-get --quiet update && cd "$home/deb" && apt-get --quiet download $wanted) || return 1
    local file
    for file in "$home"/deb/*.deb; do
        dpkg -x "$file" "$home/root" || return 1
    done
    (cd "$home/deb" && ls) >"$home/packages.txt"
    rm -rf "$home/deb"
}

install_debian() {
    local name=$1 package=$1 program=$1 home="$real_home/$1" own real libraries
    own=$(PATH="$PATH:/usr/sbin:/sbin" command -v "$program" || true)
    if [ -n "$own" ]; then
        write_launcher "$home" "$program" "$own" ""
        return
    fi
    fetch_packages "$home" "$package" || return 1
    real=$(find "$home/root" -type f -path "*bin/$program" | sed -n 1p)
    [ -n "$real" ] || {
        echo "the package $package holds no program $program"
        return 1
    }
    libraries=$(find "$home/root" -name '*.so*' -path '*/lib/*' -printf '%h\n' |
        sort -u | paste -sd:)
    write_launcher "$home" "$program" "$real" "$libraries"
}
