#!/usr/bin/env bash
# What a decision of the scheduler costs from ten thousand to ten million servers: wall time and
# memory as they are, instructions as valgrind counts them (repeatable). Needs 16 GiB for the last.
#
#     bench/scheduler.sh [SERVERS...]       (10000 100000 1000000 10000000 by default)
set -euo pipefail
cd "$(dirname "$0")/.."
sizes=("$@")
[ $# -gt 0 ] || sizes=(10000 100000 1000000 10000000)
counted=10000
command -v valgrind >/dev/null || { echo "bench: valgrind is missing: apt-get install valgrind" >&2; exit 1; }
program=$(cargo bench --locked --bench scheduler --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*scheduler[^"]*\)".*/\1/p' | tail -1)
work=$(mktemp -d)
out=$work/callgrind
trap 'rm -rf "$work"' EXIT

# Only the decisions are counted; until the servers are there the program runs uncounted, or ten
# million of them would take an hour.
instructions() { # POLICY SERVERS
    mkfifo "$out.in" "$out.err"
    BENCH_WAIT=1 valgrind --tool=callgrind --callgrind-out-file="$out" --instr-atstart=no \
        --toggle-collect='scheduler::decide' "$program" "$1" "$2" $counted \
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
    echo "{\"policy\":\"$1\",\"servers\":$2,\"decide_instructions\":$((count / counted))}"
}

for servers in "${sizes[@]}"; do
    "$program" engine "$servers"
    for policy in bfs performance quality capability; do
        "$program" $policy "$servers" 1000000
        instructions $policy "$servers"
    done
done
