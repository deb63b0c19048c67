#!/usr/bin/env bash
# carry.sh BIN BRAID INTO: puts together what bench/gpu/run.sh wants on a machine with a GPU: the
# programs in BIN, graphs, and what BRAID, which has a cpu device, counts of some of them. All of it
# together stays small enough to be sent along.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly bin=$1 braid=$2 into=$3 most_mib=40
if [[ ! -x $braid ]]; then
  echo "carry: error: $braid is not there; expected a braid with the cpu device, for the counts" \
    "(cmake --build --preset release)" >&2
  exit 1
fi
mkdir -p "$into/bin"
cp "$bin/braid" "$bin/run_test" "$into/bin"
python3 bench/gpu/shapes.py "$into/graphs"
python3 bench/gpu/shapes.py --count "$into/graphs" "$braid" >"$into/counts.json"
python3 bench/gpu/steps.py --count "$braid" >"$into/estimates.json"
size=$(du -sm "$into" | cut -f 1)
if ((size >= most_mib)); then
  echo "carry: error: $into has $size MiB; expected less than $most_mib" >&2
  exit 1
fi
echo "carry: $size MiB in $into"
