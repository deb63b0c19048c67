"""What PyTorch computes of the same operands in float64, beside what braid's kernels do on the cpu device.

Usage: run.py BRAID [WORD]

Only cases whose name has WORD run. Needs the environment that `scripts/setup.sh soak` makes for it.
"""

import os
import pathlib
import random
import sys
import tempfile

import torch

import attention
import ops
from harness import run, wrong_value


def main():
    braid, word = sys.argv[1], (sys.argv[2:] or [""])[0]
    seed = int(os.environ.get("BRAID_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed}")
    random.seed(seed)
    torch.manual_seed(seed)
    compared = failed = 0
    for case in ops.cases() + attention.cases():
        if word not in case.name:
            continue
        with tempfile.TemporaryDirectory() as directory:
            found, error = run(braid, case, pathlib.Path(directory))
        if found is None:
            print(f"{case.name}: {error}", flush=True)
            failed += 1
            continue
        for name, expected in case.expected.items():
            compared += 1
            if wrong := wrong_value(found[name], expected, case.limits):
                print(f"{case.name}: {name}: {wrong}", flush=True)
                failed += 1
    print(f"{compared} tensors compared, {failed} failed")
    sys.exit(1 if failed or not compared else 0)


main()
