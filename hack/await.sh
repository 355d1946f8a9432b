# Sourced by scripts that start programs.

#: Tenths of a second until a program has started.
timeout=600

await() { # process $1 writes $2 to log $3
    left=$timeout
    until grep -qs "$2" "$3"; do
        left=$((left - 1))
        if [ "$left" = 0 ] || ! kill -0 "$1" 2>/dev/null; then
            echo "missing in the log: $2" >&2
            cat "$3" >&2
            exit 1
        fi
        sleep 0.1
    done
}
