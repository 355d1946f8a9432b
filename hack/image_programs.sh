#!/bin/sh
# Copies programs, given by name, into folder $1, and the libraries against which everything in it is linked. The Dockerfile
# runs it, on Debian.
set -eu
out=$1
shift

linked() {
    find "$out" -type f \( -perm -100 -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
        awk '$2 == "=>" && $3 ~ "^/" {print $3} $1 ~ "^/.*ld-linux" {print $1}' | sort -u
}

for program; do
    path=$(which "$program")
    folder=$out$(realpath "$(dirname "$path")")
    mkdir -p "$folder"
    cp -d "$path" "$folder/"
    # Without mount's set-user-ID bit.
    [ -L "$path" ] || chmod 755 "$folder/$program"
done
linked | while read -r library; do
    folder=$out$(realpath "$(dirname "$library")")
    mkdir -p "$folder"
    cp -L "$library" "$folder/"
done
