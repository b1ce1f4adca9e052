#!/usr/bin/env bash
# Keeps the timed candidates of results as µGraphs with their times, which the test of the cost model reads:
# calibration/DEVICE/NAME/NN.mu for each line NAME of benchmarks/gpu/programs.txt.
#
#   benchmarks/calibration/record.sh DEVICE FOLDER
#
#   FOLDER   results that were timed on that device: OUT/tuned of benchmarks/gpu/run_all.sh --tune --top N
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
[[ $# == 2 ]] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
device=$1 folder=$2
tool=${TOOL:-$here/../../build/release/sundog}

while read -r name program defines; do
  [[ -n $name && $name != \#* && -f $folder/$name/result.pb ]] || continue
  rm -rf "${here:?}/$device/$name"
  mkdir -p "$here/$device/$name"
  for ((i = 0, kept = 0; ; ++i)); do
    text=$("$tool" show "$folder/$name" --candidate "$i" 2>/dev/null) || break
    [[ $text == "# measured_us:"* ]] || continue
    printf '# program: ../../../programs/%s.sd%s\n%s\n' "$program" "${defines:+ $defines}" "$text" \
      >"$here/$device/$name/$(printf '%02d' "$i").mu"
    kept=$((kept + 1))
  done
  echo "$name: $kept of $i candidates"
done <"$here/../gpu/programs.txt"
