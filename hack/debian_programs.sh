#!/bin/sh
# Installs the programs of a host, and the shell, that some tests run where they are missing, on Debian as root. Elsewhere
# these tests are skipped, each with its reason.
set -eu

missing=''
need() { # PACKAGE and one of its programs
    PATH=$PATH:/usr/sbin:/sbin command -v "$2" >/dev/null || missing="$missing $1"
}
need attr getfattr
need containerd containerd
need e2fsprogs mke2fs
need grub-common grub-editenv
need rsync rsync
need squashfs-tools mksquashfs
need systemd /lib/systemd/systemd
need zsh zsh
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed, so that tests are skipped:$missing"
    exit 0
fi
apt-get update -qq
# shellcheck disable=SC2086  # a list
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
