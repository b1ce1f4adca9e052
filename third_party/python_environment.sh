#!/usr/bin/env bash
# Makes the Python environment of the tests in build/venv: numpy, and PyTorch for the CPU.  Silent and
# immediate when it is there.  Prints nothing but what went wrong; without PyTorch the environment is
# still good for everything else.
#
# PyPI has PyTorch for Linux only with CUDA.  Its wheel (0.5 GB) is used without the CUDA libraries that
# it asks for (2.5 GB more): third_party/cuda_stubs.py puts empty ones in their place, so that PyTorch
# finds no GPU, and loads.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

venv=build/venv
torch=torch==2.11.0
packages=(numpy sympy networkx jinja2 fsspec filelock "typing-extensions>=4.10" "setuptools<82" rich)
stamp="$torch ${packages[*]} $(sha256sum third_party/cuda_stubs.py | cut -c1-16)"
[[ -f $venv/stamp && $(<"$venv/stamp") == "$stamp" ]] && exit 0

python=${SUNDOG_PYTHON:-python3}
rm -rf "$venv"
mkdir -p build
log=build/venv.log
install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >>"$log" 2>&1; }

"$python" -m venv "$venv" >"$log" 2>&1 || { tail -n 3 "$log" >&2; exit 1; }
install "${packages[@]}" || { echo "pip cannot install ${packages[*]}: $(tail -n 1 "$log")" >&2; exit 1; }
if install --no-deps "$torch" && "$venv/bin/python" third_party/cuda_stubs.py >>"$log" 2>&1 &&
  "$venv/bin/python" -c "import torch" >>"$log" 2>&1; then
  printf '%s' "$stamp" >"$venv/stamp"
else
  echo "PyTorch cannot be had here: $(tail -n 1 "$log")" >&2
fi
