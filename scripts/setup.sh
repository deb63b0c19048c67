#!/usr/bin/env bash
# Installs what the build and the tests need, on Debian 12 or Ubuntu 24.04: system packages, a Python
# environment in build/venv for the tests, and NVRTC and NCCL in it where no CUDA toolkit is found.
# Quick and offline when everything is there already; safe to run again at any time.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kPackages=(
  build-essential cmake ninja-build ccache
  clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev
  llvm-19-dev libboost-context-dev libfmt-dev nlohmann-json3-dev libcli11-dev libxxhash-dev
  zlib1g-dev libzstd-dev libgtest-dev libgmock-dev libbenchmark-dev
  python3 python3-venv
)
readonly kPythonPackages=('numpy>=1.26' 'ml_dtypes>=0.4' 'safetensors>=0.5,<1')
readonly kCudaPackages=('nvidia-cuda-nvrtc==13.0.*' 'nvidia-nccl-cu13==2.28.*')
readonly kVenv=build/venv
readonly kStamp=build/setup.stamp

say() { echo "setup: $*"; }
die() {
  echo "setup: error: $*" >&2
  exit 3
}

# Runs a command whose output only matters when it fails.
quietly() {
  local log=build/setup.log
  "$@" >"$log" 2>&1 </dev/null || {
    tail -n 15 "$log" >&2
    die "'$*' failed; the whole log is in $log"
  }
}

missing_packages() {
  local package
  for package in "${kPackages[@]}"; do
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] ||
      echo "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null || die "this is not Debian or Ubuntu; install these by hand:" \
    "${kPackages[*]}"
  local missing
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    say "system packages: all there"
    return
  fi
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "not root and no sudo; install as root: ${missing[*]}"
    as_root=(sudo)
  fi
  say "system packages: installing ${missing[*]}"
  quietly "${as_root[@]}" apt-get update -q
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# The places braid looks in for a toolkit.
has_cuda_toolkit() {
  local directory
  for directory in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64; do
    compgen -G "$directory/libnvrtc.so.1[3-9]*" >/dev/null && return 0
  done
  return 1
}

install_python_packages() {
  local wanted=("${kPythonPackages[@]}")
  if has_cuda_toolkit; then
    say "NVRTC: found in the CUDA toolkit"
  else
    say "NVRTC: no CUDA 13 toolkit found, taking the wheels"
    wanted+=("${kCudaPackages[@]}")
  fi
  local stamp
  stamp="$(cat scripts/setup.sh <(python3 --version) <(printf '%s\n' "${wanted[@]}") | sha256sum)"
  if [[ -x "$kVenv/bin/python3" && "$(cat "$kStamp" 2>/dev/null)" == "$stamp" ]]; then
    say "Python packages: all there"
    return
  fi
  say "Python packages: installing ${wanted[*]} into $kVenv"
  rm -f "$kStamp"
  quietly python3 -m venv --clear "$kVenv"
  quietly "$kVenv/bin/python3" -m pip install --no-input --disable-pip-version-check "${wanted[@]}"
  echo "$stamp" >"$kStamp"
}

mkdir -p build
install_packages
install_python_packages
