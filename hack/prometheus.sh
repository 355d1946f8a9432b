#!/bin/sh
# Unpacks Debian's Prometheus into the user's cache, once, and links its programs into .venv/bin, where the machine has none.
# Nothing is installed or started.
set -eu
cd "$(dirname "$0")/.."

command -v prometheus >/dev/null && command -v promtool >/dev/null && exit 0
folder=${XDG_CACHE_HOME:-$HOME/.cache}/harvester-upgrade-manager/prometheus-$(uname -m)
if [ ! -d "$folder" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "this machine has no apt-get: install Prometheus, so that prometheus and promtool are on the PATH" >&2
        exit 1
    fi
    mkdir -p "${folder%/*}"
    new=$(mktemp -d "${folder%/*}/.prometheus-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    download() { (cd "$new" && apt-get -qq download prometheus); }
    # The lists of apt may be missing or old.
    download 2>/dev/null || { apt-get -qq update && download; }
    dpkg-deb --extract "$new"/*.deb "$new/unpacked"
    mv -T "$new/unpacked" "$folder"
fi
ln -sf "$folder/usr/bin/prometheus" "$folder/usr/bin/promtool" .venv/bin/
