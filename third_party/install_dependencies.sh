#!/usr/bin/env bash
# Installs what is missing to build and test on Debian 12 or a relative.  Silent and immediate when
# nothing is.
#
#   third_party/install_dependencies.sh [--fuzz]     --fuzz: also clang++ and libFuzzer
set -euo pipefail

# package, and the command that shows that it is there (however it came); "-" asks dpkg.
wanted=(
  "g++ g++"
  "make make"
  "cmake cmake"
  "ninja-build ninja"
  "ccache ccache"
  "git git"
  "python3 python3"
  "python3-venv -"
  "clang-format-14 clang-format-14"
  "protobuf-compiler protoc"
  "libprotobuf-dev -"
  "libz3-dev -"
  "libgtest-dev -"
  "libbenchmark-dev -"
)
if [[ "${1:-}" == --fuzz ]]; then
  wanted+=("clang-19 clang++-19" "libclang-rt-19-dev -")  # clang 14 crashes on our sources
fi

missing=()
for row in "${wanted[@]}"; do
  read -r package command <<<"$row"
  if [[ $command == - ]]; then
    [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] && continue
  else
    command -v "$command" >/dev/null && continue
  fi
  missing+=("$package")
done
((${#missing[@]})) || exit 0

fail() {
  echo "cannot install ${missing[*]}: $1" >&2
  exit 1
}
command -v apt-get >/dev/null ||
  fail "there is no apt-get here; install the equivalents of these Debian packages by hand"
as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || fail "not root and no sudo; run 'apt-get install ${missing[*]}' as root"
  as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
fi

echo "installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
install() {
  "${as_root[@]}" apt-get -y -q -o DPkg::Lock::Timeout=300 --no-install-recommends \
    install "${missing[@]}" </dev/null >"$log" 2>&1
}
# The package lists of a fresh image are empty or old; they are fetched only when that matters.
if ! install; then
  "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update </dev/null >"$log" 2>&1 || true
  install || fail "apt-get failed (offline?): $(grep -m1 '^E:' "$log" || tail -n1 "$log")"
fi
