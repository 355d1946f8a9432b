#!/bin/sh
# The first process of a container: sandbox.sh ROOT HOSTNAME UID GID [SOURCE:TARGET]… -- COMMAND…, in new namespaces. Binds
# each source over its target in the root file system, which becomes read-only, and starts the command there as the user,
# who gains no privilege.
set -eu

root=$1 name=$2 user=$3 group=$4
shift 4

echo "$name" >/proc/sys/kernel/hostname
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero random urandom; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
while [ "$1" != -- ]; do
    mount --bind "${1%%:*}" "$root${1#*:}"
    shift
done
shift
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs chroot --userspec="$user:$group" --groups= "$root" "$@"
