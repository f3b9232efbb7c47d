# Sourced by pypi.sh: Chromium, from PATH or from Debian's packages, unpacked beside the environment.

after_install() {
    local home="$real_home/browser" own real libraries
    own=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
    if [ -n "$own" ]; then
        write_launcher "$home" chromium "$own" ""
        return
    fi
    fetch_packages "$home" chromium || return 1
    # The package's own program is a script that looks under /usr.
    real=$(find "$home/root" -type f -path '*lib/chromium/chromium' | sed -n 1p)
    [ -n "$real" ] || {
        echo "the package chromium holds no program lib/chromium/chromium"
        return 1
    }
    libraries=$(find "$home/root" -name '*.so*' -path '*/lib/*' -printf '%h\n' | sort -u | paste -sd:)
    write_launcher "$home" chromium "$real" "$libraries"
}
