#!/usr/bin/env bash
# setup.sh [demo|test|develop|soak]: installs what scripts/demo, scripts/test, (the default) all of the
# Makefile, or scripts/soak needs, on Debian 12 or Ubuntu 24.04: system packages, and a Python
# environment in build/venv that holds NVRTC where no CUDA toolkit is found, and what the tests use; for
# soak PyTorch, Triton and transformers in build/torch, too.
# Quick and offline when everything is there already; safe to run again at any time. Needs bash and apt.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kLevel=${1:-develop}
case "$kLevel" in demo | test | develop | soak) ;;
*)
  echo "setup: error: found '$kLevel'; expected demo, test, develop or soak" >&2
  exit 2
  ;;
esac

# LLVM's CMake files ask for zlib and zstd.
kPackages=(
  g++ cmake ninja-build llvm-19-dev libboost-context-dev libfmt-dev nlohmann-json3-dev libcli11-dev
  libxxhash-dev libsqlite3-dev libdlpack-dev zlib1g-dev libzstd-dev python3 python3-venv
)
kPythonPackages=()
if [[ "$kLevel" != demo ]]; then
  # llvm-14 has the symbolizer, without which no name in tests/lsan.supp is ever met.
  kPackages+=(git doxygen clang-14 clang-format-14 libclang-rt-14-dev lld-14 llvm-14
              libgtest-dev libgmock-dev libbenchmark-dev libcpp-httplib-dev libsentencepiece-dev
              libpcre2-dev libutf8proc-dev pkg-config)
  kPythonPackages+=('numpy>=1.26' 'ml_dtypes>=0.4' 'safetensors>=0.5,<1')
fi
[[ "$kLevel" == soak ]] && kPythonPackages+=('triton>=3.9,<3.10')
[[ "$kLevel" == develop ]] && kPackages+=(make ccache clang-tidy-14)

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

# What apt says that these packages take: to fetch, and on the disk.
apt_sizes() {
  "${as_root[@]}" env LC_ALL=C apt-get install --assume-no --no-install-recommends "$@" 2>/dev/null |
    grep -E '^(Need to get|After this operation)' | tr '\n' ' ' || true
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
  say "$(apt_sizes "${missing[@]}")"
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# The CUDA version of the driver, as 13000; nothing without one.
driver_version() {
  python3 - <<'END' 2>/dev/null || true
import ctypes
version = ctypes.c_int()
if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) == 0:
    print(version.value)
END
}

# has_nvrtc MAJOR...: one of them in a toolkit, in the places where braid looks (nvrtc_api.cpp).
has_nvrtc() {
  local home folder major
  for home in "${BRAID_CUDA_HOME:-}" "${CUDA_HOME:-}" /usr/local/cuda; do
    [[ -n "$home" ]] || continue
    for folder in lib64 lib; do
      for major in "$@"; do
        [[ -e "$home/$folder/libnvrtc.so.$major" ]] && return 0
      done
    done
  done
  return 1
}

# The wheel with NVRTC, where no toolkit has one that the driver can load: a driver loads what was
# compiled for its own major version of CUDA or an older one.
nvrtc_wheel() {
  local driver
  driver=$(driver_version)
  if [[ -n "$driver" && "$driver" -lt 13000 ]]; then
    has_nvrtc 12 || echo 'nvidia-cuda-nvrtc-cu12>=12.8,<13'
  else
    has_nvrtc 13 12 || echo 'nvidia-cuda-nvrtc==13.0.*'
  fi
}

# install_wheels VENV PACKAGE...: adds to what is there.
install_wheels() {
  local venv=$1 wanted=("${@:2}") stamp
  stamp="$(cat <(python3 --version) <(printf '%s\n' "${wanted[@]}") | sha256sum)"
  if [[ -x "$venv/bin/python3" ]] && grep -qsxF "$stamp" "$venv/setup.stamp"; then
    say "Python packages: all there in $venv"
    return
  fi
  say "Python packages: installing ${wanted[*]} into $venv"
  if ! "$venv/bin/python3" -m pip --version >/dev/null 2>&1; then
    quietly python3 -m venv --clear "$venv"
  fi
  quietly "$venv/bin/python3" -m pip install --no-input --disable-pip-version-check "${wanted[@]}"
  say "Python packages: $(du -sm "$venv" | cut -f 1) MB in $venv"
  echo "$stamp" >>"$venv/setup.stamp"
}

install_python_packages() {
  local wanted=("${kPythonPackages[@]}") wheel
  wheel=$(nvrtc_wheel)
  if [[ -z "$wheel" ]]; then
    say "NVRTC: found in the CUDA toolkit"
  else
    say "NVRTC: no CUDA toolkit that fits, taking the wheel $wheel"
    wanted+=("$wheel")
  fi
  if ((${#wanted[@]} == 0)); then
    say "Python packages: none needed"
  else
    install_wheels build/venv "${wanted[@]}"
  fi
  # Apart, so that its CUDA does not decide which NVRTC braid takes.
  if [[ "$kLevel" == soak ]]; then
    [[ -d build/torch ]] || say "PyTorch brings CUDA: about 3 GB to fetch, 5.5 GB on the disk"
    install_wheels build/torch 'torch>=2.9,<3' 'triton>=3.9,<3.10' 'transformers>=5,<6' \
      'numpy>=1.26' 'safetensors>=0.5,<1' 'pytest>=8,<10'
  fi
}

mkdir -p build
install_packages
install_python_packages
