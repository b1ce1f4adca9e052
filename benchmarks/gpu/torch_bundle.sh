#!/usr/bin/env bash
# Packs what a GPU machine with PyTorch but without a network needs to measure the Python side into
# build/python_gpu (or DIR): the package as a wheel holds it, the scripts, the contract tests, the C program
# that times launches, and the results of the blocks' subgraphs.
#
#   benchmarks/gpu/torch_bundle.sh [--out DIR] [--budget TIME|STATES] [--no-results]
#
# There: [DEVICE=cuda:1] [SKIP_TESTS=1] [SKIP_BENCH=1] ./run.sh [arguments of torch_bench.py]
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

bundle=build/python_gpu budget=20000 results=1
while (($#)); do
  case "$1" in
    --out) bundle=$2; shift 2 ;;
    --budget) budget=$2; shift 2 ;;
    --no-results) results=0; shift ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

build=build/wheel-release
cmake --preset release -B "$build" -DSUNDOG_TESTS=OFF -DSUNDOG_BENCHMARKS=OFF -DSUNDOG_WHEEL=ON >/dev/null
cmake --build "$build" --target sundog_shared -j "${SUNDOG_JOBS:-$(nproc)}" >&2
mkdir -p "$bundle/tests" "$bundle/results"
cmake --install "$build" --component python --prefix "$bundle" >/dev/null
cp -r python/sundog "$bundle/"
find "$bundle" -name __pycache__ -prune -exec rm -rf {} +
cp tests/python/*.py "$bundle/tests/"
cp benchmarks/gpu/torch_bench.py "$bundle/"
gcc -O2 -I. benchmarks/gpu/launch_overhead.c -o "$bundle/launch_overhead" -L"$bundle/sundog" -lsundog -ldl \
  -Wl,-rpath,'$ORIGIN/sundog',--disable-new-dtags,--allow-shlib-undefined

cat >"$bundle/run.sh" <<'TEXT'
#!/usr/bin/env bash
# Contract tests, then the benchmark, on $DEVICE (default: cuda); everything it writes goes to $OUT (default: out).
# Where there are two GPUs, those tests are run that want both.
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
out=${OUT:-out}
mkdir -p "$out"
export PYTHONPATH=$PWD SUNDOG_CACHE_DIR=${SUNDOG_CACHE_DIR:-$PWD/cache} PYTHONDONTWRITEBYTECODE=1
export SUNDOG_TEST_DEVICE=${DEVICE:-cuda}
tests() { # TIME LINES SUITE...
  (cd tests && timeout "$1" python3 -m unittest -v "${@:3}" 2>&1) | tee "$out/$3.log" | tail -n "$2"
}
if [[ ${SKIP_TESTS:-0} == 0 ]]; then
  tests 240 40 test_torch
  tests 240 20 test_devices
  tests 240 12 test_blocks
fi
if [[ ${SKIP_BENCH:-0} == 0 ]]; then
  python3 torch_bench.py --device "$SUNDOG_TEST_DEVICE" --out "$out/torch_bench.json" "$@" 2>&1 | tee "$out/torch_bench.log"
fi
[[ -d results ]] && tar czf "$out/results.tgz" results
TEXT
chmod +x "$bundle/run.sh"

if ((results)); then
  third_party/python_environment.sh
  (cd "$bundle" && PYTHONPATH=$PWD SUNDOG_CACHE_DIR=$PWD/cache-made nice \
    ../../build/venv/bin/python torch_bench.py --prepare --budget "$budget" --results results) >"$bundle/prepare.log" 2>&1 ||
    { tail -n 5 "$bundle/prepare.log" >&2; exit 1; }
  rm -rf "$bundle/cache-made"
fi
echo "$bundle: $(du -sm "$bundle" | cut -f1) MB, $(find "$bundle/results" -name '*.pb' | wc -l) results"
