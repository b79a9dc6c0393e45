#!/usr/bin/env bash
# What a touch of the URL cache costs in instructions, as valgrind counts them (repeatable): the
# scatter table as it is, asking for memory ahead, with random replacement, and sets of eight.
#
#     bench/cache.sh [ENTRIES_LOG2...]      (10 18 22 by default)
set -euo pipefail
cd "$(dirname "$0")/.."
sizes=("$@")
[ $# -gt 0 ] || sizes=(10 18 22)
batch=4096
batches=50
command -v valgrind >/dev/null || { echo "bench: valgrind is missing: apt-get install valgrind" >&2; exit 1; }
program=$(cargo bench --locked --bench cache --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*cache[^"]*\)".*/\1/p' | tail -1)
work=$(mktemp -d)
out=$work/callgrind
trap 'rm -rf "$work"' EXIT

# Only touches are counted; until the cache is full the program runs uncounted.
instructions() { # LAYOUT ENTRIES_LOG2 NEW
    mkfifo "$out.in" "$out.err"
    BENCH_WAIT=1 valgrind --tool=callgrind --callgrind-out-file="$out" --instr-atstart=no \
        --toggle-collect='cache::touch' "$program" "$1" "$2" "$3" $((batch * batches)) \
        <"$out.in" >/dev/null 2>"$out.err" &
    local child=$! line count
    exec 8>"$out.in" 9<"$out.err"
    while read -r line <&9 && [ "$line" != ready ]; do :; done
    callgrind_control -i on $child >/dev/null 2>&1
    echo >&8
    count=$(sed -n 's/.*Collected : *//p' <&9)
    exec 8>&- 9<&-
    wait $child
    rm "$out.in" "$out.err"
    echo "{\"layout\":\"$1\",\"entries_log2\":$2,\"new\":$3,\"touch_instructions\":$((count / batch / batches))}"
}

for size in "${sizes[@]}"; do
    for new in 5 20 50; do
        for layout in table ahead random sets; do
            instructions $layout "$size" $new
        done
    done
done
