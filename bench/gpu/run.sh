#!/usr/bin/env bash
# On a machine with a GPU, in a copy of the repository with build/gpu (bench/README.md says how it
# is made): what braid's kernels do there, in nine minutes at most. Nothing is built or installed;
# CUDA with NVRTC and python3 are enough, and what PyTorch, ncu and compute-sanitizer have to say
# comes with them. Each part has a limit of its own, and a file of that name in $OUT (default
# bench/results), written as it goes. The exit code is the number of parts that failed.
# `run.sh tests:300 doctor:15` runs these parts alone, with limits of so many seconds.
set -uo pipefail
cd "$(dirname "$0")/../.."

parts=("$@")
(($#)) || parts=(doctor:15 kernels:85 steps:35 counters:60 sanitizer:45
  ranks:50 tests:140 tune:55)
export carried=$PWD/build/gpu results=${OUT:-$PWD/bench/results}
export braid=$carried/bin/braid graphs=$carried/graphs
export BRAID_CACHE_DIR=$carried/cache BRAID_SOURCE_DIR=$PWD BRAID_TEST_DEVICE=cuda
work=$(mktemp -d) || exit
export work
trap 'rm -rf "$work"' EXIT
mkdir -p "$results"

# Where NVRTC may be: a Python environment, or the toolkit whose compiler is in the path.
VIRTUAL_ENV=$(python3 -c 'import sys; print(sys.prefix)') && export VIRTUAL_ENV
if compiler=$(command -v nvcc); then
  compiler=$(readlink -f "$compiler")
  export BRAID_CUDA_HOME=${BRAID_CUDA_HOME:-${compiler%/bin/*}}
fi

# attempt LIMIT COMMAND...: for so many seconds, then it ends with all that it started; so it does
# where the part ends before. `bad` is whether anything failed so far.
attempt() {
  local code=0
  timeout -k 5 "$@" <&0 &
  running=$!
  wait $running || code=$?
  running=
  ((code == 0)) && return
  echo "failed ($code): ${*:2}"
  bad=1
  return $code
}

part_doctor() {
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader || true
  attempt 15 "$braid" doctor
}

part_kernels() {
  attempt 85 python3 -u bench/gpu/torch_peers.py "$braid" "$graphs" "$work"
}

part_steps() {
  local nvrtc
  nvrtc=$("$braid" doctor | awk '$1 == "NVRTC" { print $NF }')
  attempt 60 python3 -u bench/gpu/steps.py "$carried/estimates.json" "$nvrtc"
}

# The hardware's counters of single kernels, whole, and beside what the cpu device counts of them.
part_counters() {
  local metrics=gpu__time_duration.sum,launch__registers_per_thread,sm__inst_executed.sum
  metrics+=,l1tex__data_pipe_lsu_wavefronts_mem_shared.sum,lts__t_sectors.sum,dram__bytes.sum
  metrics+=,sm__cycles_active.avg
  local name
  for name in $(python3 bench/gpu/shapes.py --counted); do
    attempt 20 ncu --clock-control none --csv --print-units base --metrics $metrics \
      "$braid" run "$graphs/$name.json" --device cuda >"$work/$name.csv"
    attempt 5 python3 bench/gpu/compare_counts.py "$carried/counts.json" "$name" <"$work/$name.csv" ||
      cat "$work/$name.csv"
  done
}

part_sanitizer() {
  local tool name
  for name in small_product all_reduce; do
    for tool in memcheck racecheck; do
      echo "== $tool of $name"
      # What the driver refuses (a kind of handle, say) braid asks in another way.
      attempt 20 compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9 \
        "$braid" run "$graphs/$name.json" --device cuda --check
    done
  done
}

# Ranks that share the GPU, against the reference.
part_ranks() {
  local graph world
  for graph in "$graphs"/{all_reduce,gather_product,product_scatter}.json examples/*.json; do
    for world in 2 4 8; do
      attempt 20 "$braid" run "$graph" --device cuda --world $world --check
    done
  done
}

# The run tier, in as many processes as there are cores for; each says which test it is at.
part_tests() {
  local shards shard processes=() process line
  shards=$(nproc)
  ((shards <= 12)) || shards=12
  for ((shard = 0; shard < shards; ++shard)); do
    (
      set -o pipefail
      GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$carried/bin/run_test" 2>&1 |
        while IFS= read -r line; do echo "$shard $line"; done
    ) &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process" || bad=1; done
}

part_tune() {
  local name
  for name in product_4096 decode_1x4096x4096; do
    attempt 30 "$braid" tune "$graphs/$name.json" --device cuda --budget 15s --resume \
      --tune-db "$work/tune.db"
  done
  attempt 25 "$braid" tune examples/llama_mlp.json --device cuda --budget 15s --tune-db "$work/tune.db"
}

# run_part NAME LIMIT: in a process group of its own.
run_part() {
  local code=0 start=$SECONDS how=good
  timeout -k 5 "$2" bash -c "bad=0 running=; trap 'kill \$running; wait; exit 1' TERM; part_$1; exit \$bad" \
    >"$results/$1.txt" 2>&1 </dev/null || code=$?
  case $code in
  0) ;;
  124 | 137) how="cut off at its limit of $2 s" ;;
  *) how=failed ;;
  esac
  printf '%-10s %4d s  %s\n' "$1" $((SECONDS - start)) "$how" | tee -a "$results/summary.txt"
  ((code == 0))
}

export -f attempt
failed=0
: >"$results/summary.txt"
for part in "${parts[@]}"; do
  export -f "part_${part%:*}"
  run_part "${part%:*}" "${part#*:}" || failed=$((failed + 1))
done
exit $failed
