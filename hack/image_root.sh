#!/bin/sh
# Copies into folder $1 what an image of Python programs needs at run time: Python, /opt/venv, the libraries that both are
# linked against, the public authorities, a shell and chroot. The Dockerfile runs it, on Debian, beside image_programs.sh and
# image_packages.sh.
set -eu
out=$1
python=$(readlink -f "$(command -v python3)")
stdlib=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')

copy() { # files and folders, symbolic links as they are, each to its own path
    for path; do
        [ -e "$path" ] || continue
        folder=$out$(realpath "$(dirname "$path")")
        mkdir -p "$folder"
        cp -a "$path" "$folder/"
    done
}

mkdir -p "$out/usr/bin" "$out/usr/lib" "$out/proc" "$out/sys" "$out/dev" "$out/run" "$out/tmp" "$out/root" "$out/var"
chmod 1777 "$out/tmp"
ln -s /run "$out/var/run"
for link in /bin /sbin /lib /lib64; do
    if [ -L "$link" ]; then
        mkdir -p "$out/usr$link"
        cp -d "$link" "$out/"
    fi
done

copy "$python" "$stdlib" /opt/venv
for program in /usr/bin/python3 /usr/local/bin/python /usr/local/bin/python3; do
    [ ! -L "$program" ] || copy "$program"
done
# Without the parts of the standard library that need further libraries, or only serve development.
(
    cd "$out$(realpath "$stdlib")"
    rm -rf config-* dist-packages site-packages curses dbm distutils ensurepip idlelib lib2to3 pydoc_data sqlite3 test tkinter turtledemo
    rm -f lib-dynload/_bz2.* lib-dynload/_curses* lib-dynload/_dbm.* lib-dynload/_sqlite3.* lib-dynload/_tkinter.* lib-dynload/readline.*
)
# Loaded by name, when a thread ends.
copy "$(ldconfig -p | awk '/libgcc_s/ {print $NF; exit}')"
"$(dirname "$0")/image_programs.sh" "$out" env sh dash chroot
copy /etc/ld.so.cache /etc/nsswitch.conf /etc/passwd /etc/group /etc/ssl /usr/lib/ssl /usr/share/ca-certificates
touch "$out/etc/hosts" "$out/etc/resolv.conf"
"$(dirname "$0")/image_packages.sh" "$out"

# The root file system is read-only, and the official base image has no bytecode.
python3 -m compileall -q -j 0 "$out$stdlib" "$out/opt/venv" -s "$out" >/dev/null
