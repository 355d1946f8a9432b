#!/bin/sh
# Records in folder $1 which Debian packages its files are of, as scanners of images read it: one file for each package in
# var/lib/dpkg/status.d, and the distribution. The Dockerfile runs it, on Debian, after the files are copied.
set -eu
out=$1
records=$out/var/lib/dpkg/status.d

files() { # by each name that dpkg may know them by: a merged /usr has two
    find "$out" -path "$out/opt" -prune -o \( -type f -o -type l \) -print | while read -r file; do
        path=${file#"$out"}
        echo "$path"
        echo "${path#/usr}"
    done
}

mkdir -p "$records"
# Files without a package are no error: Python may be built from its sources, and the wheels are.
files | xargs -d "\n" dpkg-query --search 2>/dev/null | sed -n 's/^\([^ ]*\): .*/\1/p' | sort -u | while read -r package; do
    dpkg-query --status "$package" >"$records/${package%%:*}"
done
cp -L /etc/os-release "$out/usr/lib/os-release"
mkdir -p "$out/etc"
ln -sf ../usr/lib/os-release "$out/etc/os-release"
