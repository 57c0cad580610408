# shellcheck shell=sh
# Functions for scripts/ensure-*, which unpack Debian packages into a folder of the checkout and
# install nothing. A script that sources this file sets three variables first:
#   into      the folder
#   subject   the names of the programs, for messages
#   programs  the files that must exist afterwards, relative to the folder
# The scripts never fail. Tests that need a missing program are skipped and show the reason.
# shellcheck disable=SC2154

# Print each program that is missing.
missing_programs() {
    for program in $programs; do
        [ -e "$into/$program" ] || echo "$program"
    done
}

skip() {
    echo "$subject: $1. Tests that need these programs are skipped." >&2
    exit 0
}

# Exit if every program exists. Otherwise start with an empty folder.
begin() {
    [ -n "$(missing_programs)" ] || exit 0
    command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 ||
        skip "this is not Debian"
    echo "Fetching $subject from Debian for the tests."
    rm -rf "$into"
    aside=$(mktemp -d)
    trap 'rm -rf "$aside"' EXIT
    mkdir -p "$into" "$aside/archives/partial"
}

# Download exactly these packages. Only root can update the package lists.
download() {
    (cd "$aside/archives" && apt-get -q download "$@") >/dev/null 2>&1 && return
    [ "$(id -u)" -eq 0 ] && apt-get -q update >/dev/null 2>&1
    (cd "$aside/archives" && apt-get -q download "$@") >/dev/null 2>&1 ||
        skip "apt-get could not fetch $*"
}

# Download the given packages, and ignore packages that this Debian release does not have.
download_known() {
    for package in "$@"; do
        (cd "$aside/archives" && apt-get -q download "$package") >/dev/null 2>&1
    done
}

# Download packages with all their dependencies, even if these are installed. Pass options of apt-get
# before the package names.
download_with_dependencies() {
    : >"$aside/status"
    apt-get -q -o Dir::State::status="$aside/status" -o Dir::Cache::archives="$aside/archives" \
        -o Debug::NoLocking=1 --yes --no-install-recommends --download-only install "$@" \
        >/dev/null 2>&1 || skip "apt-get could not fetch $*"
}

# Unpack the downloaded packages whose file names match one of the patterns, or all of them.
unpack() {
    [ $# -gt 0 ] || set -- '*'
    for archive in "$aside"/archives/*.deb; do
        for pattern in "$@"; do
            # shellcheck disable=SC2254 # a pattern
            case ${archive##*/} in
            $pattern)
                dpkg-deb --extract "$archive" "$into" ||
                    skip "dpkg-deb could not unpack ${archive##*/}"
                break
                ;;
            esac
        done
    done
}

# Report the programs that the packages did not contain.
finish() {
    missing=$(missing_programs | tr '\n' ' ')
    [ -z "$missing" ] || skip "the packages do not contain ${missing% }"
    exit 0
}
