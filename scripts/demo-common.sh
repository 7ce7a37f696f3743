# What the acts of `make demo` have in common; sourced by them, which set
# `crater`, the program, and `server`, its process.

# Waits until the server whose log this is listens, and prints where; fails if
# it ends before.
listening() {
    local url
    for _ in $(seq 600); do
        url="$(sed -n 's/^crater: listening on \([^ ]*\).*/\1/p' "$1")"
        if [ -n "$url" ]; then
            echo "$url"
            return
        fi
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}

# Runs a command as a person would have typed it.
show() {
    printf '\n$ crater'
    for word in "$@"; do
        case $word in
            *\ *) printf ' "%s"' "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$crater" "$@"
}
