#!/usr/bin/env bash
# On a machine with a GPU: builds, runs the gpu tests, runs the examples with virtual ranks on the
# GPU against the reference, then times kernels beside PyTorch (cuBLAS) where it is installed.
# JSON goes to $OUT, else to bench/results/. Made to end within nine minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly out="${OUT:-bench/results}"
readonly build=build/release
mkdir -p "$out"

command -v nvidia-smi >/dev/null || {
  echo "bench/gpu: error: no GPU found (nvidia-smi is missing)" >&2
  exit 3
}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee "$out/gpu.txt"

if [[ ! -x $build/bin/braid ]]; then
  cpu_device=ON
  [[ -d /usr/lib/llvm-19 ]] || cpu_device=OFF
  cmake --preset release -DBRAID_CPU_DEVICE=$cpu_device
  cmake --build --preset release
fi

failed=0
timeout 150 ctest --test-dir $build -L gpu --output-on-failure | tee "$out/tests.txt" || failed=1

for example in examples/*.json; do
  symbol=$(sed -n 's/.*"symbols": *{ *"\([A-Za-z_]*\)".*/\1/p' "$example" | head -n 1)
  for world in 2 4; do
    timeout 60 $build/bin/braid run "$example" --device cuda --world $world \
      ${symbol:+--bind "$symbol=8"} --check --json \
      >"$out/$(basename "$example" .json).$world.json" || failed=1
  done
done

for size in 512 4096; do
  timeout 30 $build/bin/bench_device cuda $size >"$out/bench_device.$size.json" || failed=1
done
if python3 -c 'import torch' 2>/dev/null; then
  timeout 60 python3 bench/gpu/torch_peers.py >"$out/torch.json" || failed=1
else
  echo "bench/gpu: no PyTorch here, nothing to compare with"
fi
exit $failed
