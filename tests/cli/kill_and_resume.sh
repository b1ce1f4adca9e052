#!/usr/bin/env bash
# Kills a search with SIGKILL at random moments and resumes it: each time it must end with the answer of
# a search that nobody killed.  Prints one line a kill; exit code 1 if an answer differs.
#
#   tests/cli/kill_and_resume.sh TOOL PROGRAM STATES KILLS [SEED]
#
# EVERY is the time between two checkpoints (0s: after each round).
set -euo pipefail

tool=$1 program=$2 states=$3 kills=$4
RANDOM=${5:-1}
folder=$(mktemp -d)
# What a killed tool has started dies with it, but not at once, and may still write.
trap 'rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }' EXIT

search() {  # OUT [OPTION...]
  local out=$1
  shift
  "$tool" optimize "$program" --target h200 --states "$states" --top 2 --no-gpu --no-check --json \
    --out "$folder/$out" "$@"
}
# What of a result does not depend on time (a proof may run out of it): every count of the search, and
# each candidate with its price.
answer() {
  sed -n '/"search": {/,/^  }/p' "$1" | grep -Ev '"(seconds|seconds_to_best|resumed)":'
  grep -E '"(structure|predicted_us|answer)":' "$1"
}

search whole >"$folder/whole.json"
# The moments are spread over the search itself, not over what is done with its result.
whole_ms=$(awk '/"seconds":/ {print int($2 * 1100) + 50; exit}' "$folder/whole.json")
answer "$folder/whole.json" >"$folder/expected"

failed=0
for ((i = 1; i <= kills; ++i)); do
  rm -f "$folder/checkpoint"
  search broken --checkpoint "$folder/checkpoint" --checkpoint-every "${EVERY:-0s}" >/dev/null 2>&1 &
  pid=$!
  after=$((RANDOM % (whole_ms + 1)))
  sleep "$(printf '%d.%03d' $((after / 1000)) $((after % 1000)))"
  kill -9 $pid 2>/dev/null && how="killed after $after ms" || how="had ended after $after ms"
  wait $pid 2>/dev/null || true
  size=$(stat -c %s "$folder/checkpoint" 2>/dev/null || echo none)
  search resumed --checkpoint "$folder/checkpoint" >"$folder/resumed.json"
  if answer "$folder/resumed.json" | cmp -s - "$folder/expected" && cmp -s "$folder"/{whole,resumed}/best.mu; then
    echo "$i: $how, checkpoint of $size bytes: the same answer"
  else
    echo "$i: $how, checkpoint of $size bytes: ANOTHER ANSWER"
    diff <(answer "$folder/resumed.json") "$folder/expected" || true
    failed=1
  fi
done
exit $failed
