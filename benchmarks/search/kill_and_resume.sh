#!/usr/bin/env bash
# Searches that are killed (SIGKILL) at random moments and resumed from their checkpoints: each must end with the answer
# of an unbroken one, file for file.
#
#   benchmarks/search/kill_and_resume.sh [TIMES [PROGRAM.sd [OPTION ...]]]     from the root, after a release build
#
# TIMES (50) of PROGRAM (qk_norm_safe at b = 1) with `--states 60000` or what the OPTIONs say. Exit code 1 if any differed.
set -u
times=${1:-50} program=${2:-benchmarks/programs/qk_norm_safe.sd}
shift $(($# < 2 ? $# : 2))
(($#)) || set -- -D b=1 --states 60000
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

search() { # OUT [OPTION ...]
  local out=$1
  shift
  exec build/release/sundog optimize "$program" "$@" --threads 1 --no-gpu --no-check --prove-time 0 --quiet --out "$out" >/dev/null
}
(search "$folder/whole" "$@") || exit 2

same=0 killed=0
for ((i = 0; i < times; ++i)); do
  rm -rf "$folder/out" "$folder/checkpoint"
  broken=("$@" --checkpoint "$folder/checkpoint" --checkpoint-every 0.05s)
  search "$folder/out" "${broken[@]}" &
  sleep "0.$((RANDOM % 900 + 50))"
  kill -KILL $! 2>/dev/null && ((++killed))
  wait $! 2>/dev/null
  rm -rf "$folder/out"
  (search "$folder/out" "${broken[@]}") || echo "run $i: the resumed search failed"
  if cmp -s "$folder/whole/best.mu" "$folder/out/best.mu" && cmp -s "$folder/whole/best.cu" "$folder/out/best.cu"; then
    ((++same))
  else
    echo "run $i: another answer"
  fi
done 2>/dev/null
echo "$killed of $times killed, $same with the answer of the unbroken search"
((same == times))
