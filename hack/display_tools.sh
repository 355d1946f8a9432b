#!/bin/sh
# Installs what the tests of displays need where it is missing: Chromium, tmux, zsh and fish, on Debian as root.
set -eu

missing=''
for program in chromium tmux zsh fish; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "needed:$missing" >&2
    exit 1
fi
apt-get update -qq
# shellcheck disable=SC2086  # a list
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
