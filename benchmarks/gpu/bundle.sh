#!/usr/bin/env bash
# Packs what a bare GPU machine needs into build/bundle (or DIR): the tool with its libraries (found through $ORIGIN,
# so that no variable must be set there), the scripts of this folder, and a result for each line of
# programs.txt, so that nothing is searched where GPU time is short.
#
#   benchmarks/gpu/bundle.sh [--out DIR] [--budget TIME] [--only PATTERN] [--top N] [--no-results]
#
#   --top N     candidates that a result holds (default: 8; more to compare prediction with the clock)
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

budget=20s only=. top=8 results=1 bundle=build/bundle
while (($#)); do
  case "$1" in
    --budget) budget=$2; shift 2 ;;
    --out) bundle=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --top) top=$2; shift 2 ;;
    --no-results) results=0; shift ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

build=build/bundle-release
cmake --preset release -B "$build" -DSUNDOG_TESTS=OFF -DSUNDOG_BENCHMARKS=OFF \
  -DCMAKE_BUILD_RPATH='$ORIGIN' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags,--as-needed >/dev/null
cmake --build "$build" --target sundog -j "${SUNDOG_JOBS:-$(nproc)}" >&2

mkdir -p "$bundle/results"
cp "$build/sundog" "$bundle/sundog"
strip "$bundle/sundog"
# All libraries but those that belong to the machine: the C and C++ runtimes and the driver.
ldd "$bundle/sundog" | awk '$3 ~ /^\// {print $3}' |
  grep -Ev '/(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux[^/]*)\.so' |
  while read -r library; do cp -L "$library" "$bundle/"; done
cp benchmarks/gpu/run_all.sh benchmarks/gpu/results.py benchmarks/gpu/correlate.py benchmarks/gpu/programs.txt "$bundle/"

failed=0
if ((results)); then
  while read -r name program defines; do
    [[ -n $name && $name != \#* && $name =~ $only ]] || continue
    arguments=()
    for define in $defines; do arguments+=(-D "$define"); done
    echo "optimizing $name" >&2
    if ! "$build/sundog" optimize "benchmarks/programs/$program.sd" "${arguments[@]}" --target h200 \
      --budget "$budget" --top "$top" --no-gpu --quiet --out "$bundle/results/$name" >"$bundle/$name.log" 2>&1; then
      echo "  failed: $(tail -n 1 "$bundle/$name.log")" >&2
      failed=$((failed + 1))
    fi
  done <benchmarks/gpu/programs.txt
fi

size=$(du -sm "$bundle" | cut -f1)
echo "$bundle: $size MB, $(find "$bundle/results" -name result.pb | wc -l) results, $failed failed"
if ((size >= 40)); then
  echo "bundle.sh: $bundle is larger than 40 MB" >&2
  exit 1
fi
