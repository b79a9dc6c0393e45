#!/usr/bin/env bash
# What a URL costs in instructions, as valgrind counts them (repeatable), from one URL a server, all
# in memory, to a hundred, most of them on disk: one in a hundred of the servers and bytes of
# `make frontier-study`. What the system does for a read or a write is not in it. More than twice
# the first of a policy fails.
#
#     [BURST=server] bench/frontier.sh [URLS...]    (10000 30000 100000 300000 1000000 by default)
#
# BURST is what a visit takes at most: 1, as on the open web, unless told otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
sizes=("$@")
[ $# -gt 0 ] || sizes=(10000 30000 100000 300000 1000000)
servers=10000
mib=7
burst=${BURST:-1}
command -v valgrind >/dev/null || { echo "bench: valgrind is missing: apt-get install valgrind" >&2; exit 1; }
program=$(cargo bench --locked --bench frontier --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*frontier[^"]*\)".*/\1/p' | tail -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

instructions() { # POLICY URLS
    local line total disk
    line=$(valgrind --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect=frontier::push \
        --toggle-collect=frontier::pop "$program" "$1" $servers "$2" $mib "$burst" 2>"$work/err")
    total=$(sed -n 's/.*Collected : *//p' "$work/err")
    [ "${total:-0}" -gt 0 ] || { echo "bench: valgrind has counted nothing" >&2; exit 1; }
    disk=$(sed -n 's/.*"disk_bytes_per_url":\([0-9.]*\).*/\1/p' <<<"$line")
    count=$((total / $2))
    echo "{\"policy\":\"$1\",\"burst\":\"$burst\",\"servers\":$servers,\"urls\":$2,\"disk_bytes_per_url\":$disk,\"instructions_per_url\":$count}"
}

faults=0
for policy in bfs performance quality capability; do
    first=0
    for urls in "${sizes[@]}"; do
        instructions $policy "$urls"
        [ $first -gt 0 ] || first=$count
        if [ "$count" -gt $((2 * first)) ]; then
            echo "bench: $policy: $count instructions a URL with $urls, $first with ${sizes[0]}" >&2
            faults=1
        fi
    done
done
exit $faults
