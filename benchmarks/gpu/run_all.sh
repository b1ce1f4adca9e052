#!/usr/bin/env bash
# Checks and times on a GPU every result of a bundle (bundle.sh), and writes a table.
#
#   BUNDLE/run_all.sh OUT [--seconds N] [--only PATTERN] [--tune [--top N]] [--sanitize PATTERN] [--dry-run]
#
#   OUT                 folder for the numbers: results.json, results.md, logs/
#   --seconds N         stop starting new work after N seconds (default: 540)
#   --only PATTERN      results whose name matches
#   --tune              time all candidates of a result first and keep the best (OUT/tuned)
#   --top N             how many candidates (default: 8); correlate.py compares their times with the predictions
#   --sanitize PATTERN  run those also under compute-sanitizer, memcheck and racecheck
#   --dry-run           use the emulator: shows that the scripts work where there is no GPU
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

usage() { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[[ $# -ge 1 && $1 != -* ]] || usage
out=$1
shift
seconds=540 only=. tune=0 top=8 sanitize= dry=0
while (($#)); do
  case "$1" in
    --seconds) seconds=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --tune) tune=1; shift ;;
    --top) top=$2; shift 2 ;;
    --sanitize) sanitize=$2; shift 2 ;;
    --dry-run) dry=1; shift ;;
    *) usage ;;
  esac
done

sundog=$here/sundog
on=gpu
((dry)) && on=emulator
mkdir -p "$out/logs" "$out/runs" || exit 2
left() { echo $((seconds - SECONDS)); }

{
  "$sundog" version
  command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw --format=csv
} >"$out/machine.txt" 2>&1
cat "$out/machine.txt"

if ((!dry)) && ! "$sundog" version --json | grep -q '"gpu": "'; then
  echo "run_all.sh: no GPU is seen here (--dry-run uses the emulator)" >&2
  exit 2
fi

# sanitized NAME FOLDER TOOL: one word in OUT/runs/NAME.TOOL
sanitized() {
  local name=$1 folder=$2 tool=$3 code
  timeout "$(($(left) < 180 ? $(left) : 180))" compute-sanitizer --tool "$tool" --error-exitcode 86 \
    "$sundog" run "$folder" --on gpu --no-time >"$out/logs/$name.$tool.txt" 2>&1
  code=$?
  case $code in
    0) echo clean ;;
    86) echo errors ;;
    124) echo "timed out" ;;
    *) echo "failed ($code)" ;;
  esac >"$out/runs/$name.$tool"
}

for folder in "$here"/results/*/; do
  folder=${folder%/}
  name=$(basename "$folder")
  [[ $name =~ $only && -f $folder/result.pb ]] || continue
  if (($(left) < 15)); then
    echo "$name: not started, the time is up" | tee -a "$out/skipped.txt"
    continue
  fi
  if ((tune)); then
    if timeout "$(($(left) < 240 ? $(left) : 240))" "$sundog" optimize "$folder/program.sd" --from "$folder" \
      --target h200 --top "$top" --no-check --quiet --json --out "$out/tuned/$name" \
      >"$out/runs/$name.tune.json" 2>"$out/logs/$name.tune.txt"; then
      folder=$out/tuned/$name
    else
      echo "$name: tuning failed: $(tail -n 1 "$out/logs/$name.tune.txt")"
    fi
  fi
  timeout "$(($(left) < 120 ? $(left) : 120))" "$sundog" run "$folder" --on "$on" --json \
    >"$out/runs/$name.json" 2>"$out/logs/$name.txt"
  code=$?
  echo "$code" >"$out/runs/$name.code"
  echo "$name: exit $code $(grep -E '"(cold_us|failure)"' "$out/runs/$name.json" | head -n 2 | tr -d '\n')"
  if [[ -n $sanitize && $name =~ $sanitize && $dry == 0 ]] && command -v compute-sanitizer >/dev/null; then
    sanitized "$name" "$folder" memcheck
    sanitized "$name" "$folder" racecheck
    echo "$name: memcheck $(<"$out/runs/$name.memcheck"), racecheck $(<"$out/runs/$name.racecheck")"
  fi
done

python3 "$here/results.py" "$out"
if ((tune)); then python3 "$here/correlate.py" "$out"; fi
