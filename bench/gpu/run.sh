#!/usr/bin/env bash
# On a machine with a GPU: builds, runs the gpu tests, runs the examples with virtual ranks on the
# GPU against the reference, tunes their kernels, and times these beside PyTorch (cuBLAS, Triton)
# where it is installed. Needs neither LLVM nor the cpu device. What comes of it goes to
# bench/results/, and in few files to $OUT where that is set. Ends within nine minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly results=bench/results build=build/release
readonly braid=$build/bin/braid
readonly last=$((SECONDS + 525))
mkdir -p $results

command -v nvidia-smi >/dev/null || {
  echo "bench/gpu: error: no GPU found (nvidia-smi is missing)" >&2
  exit 3
}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee $results/gpu.txt

# within LIMIT COMMAND...: for so many seconds, or until the script has to end.
within() {
  local limit=$1 left=$((last - SECONDS))
  ((left > 0)) || return 124
  timeout $((limit < left ? limit : left)) "${@:2}"
}

if [[ ! -x $braid ]]; then
  cpu_device=ON
  [[ -d /usr/lib/llvm-19 ]] || cpu_device=OFF
  cmake --preset release -DBRAID_CPU_DEVICE=$cpu_device
  within 400 cmake --build --preset release
fi

failed=0
within 120 ctest --test-dir $build -L gpu --output-on-failure | tee $results/tests.txt || failed=1

for example in examples/*.json; do
  symbol=$(sed -n 's/.*"symbols": *{ *"\([A-Za-z_]*\)".*/\1/p' "$example" | head -n 1)
  for world in 2 4; do
    within 30 $braid run "$example" --device cuda --world $world \
      ${symbol:+--bind "$symbol=8"} --check --json \
      >"$results/$(basename "$example" .json).$world.json" || failed=1
  done
done

for size in 512 4096; do
  within 30 $build/bin/bench_device cuda $size >"$results/bench_device.$size.json" || failed=1
done

compared=()
for example in examples/*.json; do
  into=$results/$(basename "$example" .json)
  mkdir -p "$into"
  within 40 $braid tune "$example" --device cuda --budget 20s --resume --db $results/tune.db \
    --export "$into/tuned.json" >"$into/tuned.txt" || { failed=1 && continue; }
  target=$(sed -n 's/^  "target": "\(.*\)",$/\1/p' "$into/tuned.json")
  within 20 $braid compile "$example" --target "$target" -o "$into/plan" >/dev/null ||
    { failed=1 && continue; }
  compared+=("$into")
done
if python3 -c 'import torch' 2>/dev/null; then
  left=$((last - SECONDS - 60))
  within 200 python3 bench/gpu/torch_peers.py $((left < 140 ? left : 140)) "${compared[@]}" \
    >$results/torch.json || failed=1
else
  echo "bench/gpu: no PyTorch here, nothing to compare with"
fi
if [[ -n ${OUT:-} ]]; then
  cp $results/gpu.txt $results/tests.txt "$OUT"
  [[ ! -e $results/torch.json ]] || cp $results/torch.json "$OUT"
  tar -czf "$OUT/results.tar.gz" $results
fi
exit $failed
