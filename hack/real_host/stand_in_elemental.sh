#!/bin/sh
# Stands in for elemental where that is missing: ELEMENTAL=hack/real_host/stand_in_elemental.sh. It does what was seen of
# elemental 1.1.7 (hack/host/elemental.py has the sources), with the guest's real programs and kernel. What a run with it
# shows is the tests' own machinery and the toolkit against the kernel, and nothing about elemental.
set -eu
state=/run/initramfs/cos-state
images=$state/cOS
tree=$images/transition.imgTree
mounted=/run/stand-in-elemental

case " $* " in
    *" --help "*)
        echo '      --system string    system image source'
        exit 0
        ;;
esac
while [ $# -gt 0 ]; do
    case $1 in
        --system) source=${2#dir:} ;;
        --config-dir) config=$2 ;;
    esac
    shift
done
size=$(sed -n 's/^ *size: //p' "$config/config.yaml")

failed() {
    printf '\033[31mERRO\033[0m[2026-01-01T00:00:00Z] %s\n' "$1"
    umount "$mounted" 2>/dev/null || true
    rm -rf "$tree" "$images/transition.img"
    mount -o remount,ro "$state" || true
    exit 1
}

copy() { # as elemental: without --delete
    rsync --archive --partial --exclude='/mnt/*' --exclude='/proc/*' --exclude='/sys/*' --exclude='/dev/*' \
        --exclude='/tmp/*' --exclude='/host/*' --exclude='/run/*' "$1/" "$2/" >/dev/null
}

mount -o remount,rw "$state"
mkdir -p "$tree" "$mounted"
copy "$source" "$tree" || failed 'rsync finished with errors'
truncate -s "${size}M" "$images/transition.img"
mke2fs -q -F -t ext2 -L COS_ACTIVE "$images/transition.img" || failed 'mke2fs failed'
mount -o loop "$images/transition.img" "$mounted" || failed 'mount of the image failed'
copy "$tree" "$mounted" || failed 'failed syncing data to the target loop image'
umount "$mounted" || failed 'unmount of the image failed'
rm -rf "$tree"
grub2-editenv /oem/grubenv set enable_boot_assessment=yes
mv -f "$images/active.img" "$images/passive.img"
e2label "$images/passive.img" COS_PASSIVE || true
mv -f "$images/transition.img" "$images/active.img"
mount -o remount,ro "$state" || {
    printf '\033[31mERRO\033[0m[2026-01-01T00:00:00Z] %s\n' 'Failed mounting device with label COS_STATE'
    exit 1
}
