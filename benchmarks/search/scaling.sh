#!/usr/bin/env bash
# Time of the search by number of threads, as a table in Markdown: seconds until a program is exhausted, or
# until so many states are visited, and the speed-up over one thread.  States, prices and the pick must be
# those of one thread; the script fails if they are not.
#
#   benchmarks/search/scaling.sh --bundle DIR     packs the tool, its libraries, the programs and this script
#   DIR/scaling.sh [--threads "1 2 4 8 16"] [--repeat N] [--only PATTERN]
#
# Beside the script it takes the tool from $TOOL, or build/release/sundog of the tree that it lies in.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

threads="1 2 4 8 16" repeat=3 only=. bundle=
while (($#)); do
  case "$1" in
    --bundle) bundle=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --repeat) repeat=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

# NAME PROGRAM STATES (0: until nothing is left) [NAME=VALUE ...]
list="
gqa_safe_b8 gqa_safe 0 b=8
mha_safe mha_safe 0
gqa_prefill gqa_prefill 0
qk_norm_b8 qk_norm 1000000 b=8
attention_prefill attention_prefill 1000000
mla mla 1500000
qk_norm_safe_b8 qk_norm_safe 1000000 b=8
"

if [[ -n $bundle ]]; then
  "$here/../gpu/bundle.sh" --no-results --out "$bundle"
  mkdir -p "$bundle/programs"
  cp "$here"/../programs/*.sd "$bundle/programs/"
  cp "$here/scaling.sh" "$bundle/"
  exit
fi

tool=${TOOL:-$here/sundog} programs=$here/programs
if [[ ! -x $tool ]]; then tool=$here/../../build/release/sundog; fi
if [[ ! -d $programs ]]; then programs=$here/../programs; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

field() { awk -v key="\"$1\":" '$1 == key {gsub(/[",]/, "", $2); print $2; exit}' "$2"; }
# What the number of threads must not change.
found() {
  sed -n '/"search": {/,/^  }/p' "$1" | grep -Ev '"(seconds|seconds_to_best|resumed)":'
  cat "$folder/out/best.mu"
}

echo "$(nproc) cores, $(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo), $(date -u +%F), best of $repeat"
echo
echo "| program | states | stop | $(for t in $threads; do printf '%s thr. | ' "$t"; done)speed-up |"
echo "|---|---|---|$(for t in $threads; do printf -- '---|'; done)---|"
failed=0
while read -r name program states defines; do
  [[ -n $name && $name =~ $only ]] || continue
  limit=(--budget 600s)
  if ((states > 0)); then limit=(--states "$states"); fi
  arguments=()
  for define in $defines; do arguments+=(-D "$define"); done
  times=() first= one=
  for t in $threads; do
    best=
    for ((i = 0; i < repeat; ++i)); do
      "$tool" optimize "$programs/$program.sd" "${arguments[@]}" "${limit[@]}" --threads "$t" --target h200 \
        --top 1 --no-gpu --no-check --json --out "$folder/out" >"$folder/json"
      seconds=$(field seconds "$folder/json")
      best=$(awk -v a="${best:-1e9}" -v b="$seconds" 'BEGIN {print (a < b ? a : b)}')
    done
    if [[ -z $first ]]; then
      first=$(found "$folder/json")
      one=$best
    elif [[ $first != "$(found "$folder/json")" ]]; then
      echo "scaling.sh: $name finds something else with $t threads" >&2
      failed=1
    fi
    times+=("$(printf '%.2f s' "$best")")
  done
  echo "| $name | $(field states "$folder/json") | $(field stop_reason "$folder/json") |$(printf ' %s |' "${times[@]}") $(
    awk -v a="$one" -v b="$best" 'BEGIN {printf "%.1f", a / b}') |"
done <<<"$list"
exit $failed
