#!/usr/bin/env bash
# What bench/gpu/run.sh does with what its parts do, with stand-ins for all programs that it starts:
# the exit code counts the parts that failed, each part ends at its limit with all that it started,
# and all that was said is in the files.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place"/{bench,examples,build/gpu/bin,stand-ins}
cp -r "$root"/bench/{gpu,estimates} "$place/bench"
echo '[]' >"$place/build/gpu/estimates.json"
echo '{}' >"$place/examples/one.json"
export OUT=$place/out PATH=$place/stand-ins:$PATH

# stand_in FILE: a program that does what standard input says.
stand_in() {
  cat <(echo '#!/usr/bin/env bash') - >"$place/$1"
  chmod +x "$place/$1"
}

# Tunes to a file, and runs all else; `doctor` fails where a test wants that.
stand_in build/gpu/bin/braid <<'END'
[[ "$1" != doctor || ! -e ${OUT%/*}/ill ]] || { echo "no GPU"; exit 3; }
while (($# > 1)); do
  [[ "$1" != --export ]] || echo '{"kernels": [{"default": {"ns": 2e3}, "best": null}]}' >"$2"
  shift
done
END
stand_in build/gpu/bin/run_test <<'END'
echo "shard $GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS on $BRAID_TEST_DEVICE in $BRAID_SOURCE_DIR"
[[ "$GTEST_SHARD_INDEX" != 0 || ! -e ${OUT%/*}/hangs ]] || { echo $$ >"${OUT%/*}/hangs"; sleep 600; }
END
stand_in stand-ins/ncu <<'END'
echo '==PROF== Connected'
echo '"ID","Kernel Name","Metric Name","Metric Value"'
echo '"0","k(int)","dram__bytes.sum","4,096"'
END
stand_in stand-ins/compute-sanitizer <<<'echo "ERROR SUMMARY: 0 errors"'
stand_in stand-ins/nvidia-smi <<<'echo "A GPU"'
python3 "$place/bench/gpu/shapes.py" "$place/build/gpu/graphs"
python3 - "$place" <<'END'
import json, subprocess, sys
place = sys.argv[1]
names = subprocess.run([sys.executable, f"{place}/bench/gpu/shapes.py", "--counted"],
                       check=True, capture_output=True, text=True).stdout.split()
kernel = {"kernel": "k", "counts": {"instructions": {"move": 1}, "issued_shared_wavefronts": 0,
          "global_sectors": 8}, "estimate": {"ns": 2.0, "registers": 8, "memory_bytes": 2048}}
open(f"{place}/build/gpu/counts.json", "w").write(json.dumps({n: [kernel] for n in names}))
END

# expect CODE TEXT FILE ARGUMENT...: runs the script, and looks for the text in that file of it.
expect() {
  local code=0
  rm -rf "$OUT"
  (cd / && bash "$place/bench/gpu/run.sh" "${@:4}") >"$place/said" 2>&1 || code=$?
  ((code == $1)) && grep -q -- "$2" "$OUT/$3" && return
  echo "exit code $code, expected $1 and '$2' in $3:" >&2
  tail -n 30 "$place/said" "$OUT"/* >&2
  exit 1
}

expect 0 'tune .* good' summary.txt
[[ $(ls "$OUT") == $'counters.txt\ndoctor.txt\nkernels.txt\nranks.txt\nsanitizer.txt\nsteps.txt\nsummary.txt\ntests.txt\ntune.txt' ]]
grep -q 'bytes of memory  *2048  *4096  *2.000' "$OUT/counters.txt"
grep -q '^product_4096  *2.0  *-' "$OUT/kernels.txt"
(($(grep -c 'failed' "$OUT/summary.txt") == 0))
grep -q "^0 shard 0 of [0-9]* on cuda in $place\$" "$OUT/tests.txt"

# What fails is said and counted; the other parts run all the same.
touch "$place/ill"
expect 1 'failed (3): .*braid doctor' doctor.txt
stand_in stand-ins/ncu <<<'echo "==ERROR== no counters"; exit 1'
expect 2 'no counters' counters.txt doctor:5 ranks:5 counters:20
rm "$place/ill"

# A part that hangs ends at its limit, with what it started, and what came until then is there.
expect_ended() {
  grep -qs 'State:.*[RSD] ' "/proc/$(<"$1")/status" || return 0  # gone, or a zombie
  echo "what hangs in $1 still runs" >&2
  exit 1
}
touch "$place/hangs"
expect 1 'tests .* cut off at its limit of 2 s' summary.txt tests:2 doctor:5
grep -q "^0 shard 0" "$OUT/tests.txt"
expect_ended "$place/hangs"
stand_in stand-ins/compute-sanitizer <<'END'
(echo $BASHPID >"${OUT%/*}/checked"; sleep 600)
echo "and went on"
END
expect 1 'sanitizer .* cut off at its limit of 2 s' summary.txt sanitizer:2
expect_ended "$place/checked"
