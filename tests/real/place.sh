# Sourced by the scripts of this folder: where the real components live.
# One folder a component, <target>/real/<name>, with its programs under bin/.
real_src=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo_root=$(cd "$real_src/../.." && pwd)
case "${CARGO_TARGET_DIR:-target}" in
    /*) real_home="$CARGO_TARGET_DIR/real" ;;
    *) real_home="$repo_root/${CARGO_TARGET_DIR:-target}/real" ;;
esac

# program COMPONENT PROGRAM: prints its path, or says how to install it and fails.
program() {
    local path="$real_home/$1/bin/$2"
    if [ ! -x "$path" ] || [ ! -f "$real_home/$1/.stamp" ]; then
        echo "$1 is not installed under $real_home; run tests/real/install.sh $1" >&2
        return 1
    fi
    echo "$path"
}
