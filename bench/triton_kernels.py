"""Triton's kernels on the cpu device and in Triton's interpreter: milliseconds of a launch.

Usage: build/torch/bin/python3 bench/triton_kernels.py [NAME...]

Needs `scripts/setup.sh soak`, and BRAID_LIBRARY as docs/python.md says. The kernels are those of
python/tests/triton.
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMES = ["matmul", "softmax", "layer_norm"]


def calls():
    import torch

    kernels = importlib.import_module("kernels")
    a, b = (torch.randn(512, 512).to(torch.float16) for _ in range(2))
    x = torch.randn(2048, 1024)
    weight, bias = torch.rand(1024), torch.rand(1024)
    out, means, scales = torch.empty_like(x), torch.empty(2048), torch.empty(2048)

    def matmul():
        c = torch.empty_like(a)
        kernels.matmul_kernel.fn.fn[(64,)](
            a, b, c, 512, 512, 512, 512, 512, 512, M=64, N=64, K=32, GROUP=4, EVEN=True, ACTIVATION="")

    def softmax():
        kernels.softmax_kernel[(2048,)](x, out, 1024, 1024, 2048, 1024, BLOCK=1024, STAGES=2)

    def layer_norm():
        kernels.norm_kernel[(2048,)](x, out, weight, bias, means, scales, 1024, 1e-5, BLOCK=1024)

    return {"matmul": matmul, "softmax": softmax, "layer_norm": layer_norm}


def measure(names, repeats):
    """The least milliseconds of several calls; the first one compiles."""
    times, known = {}, calls()
    for name in names:
        call = known[name]
        call()
        spent = []
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            spent.append((time.perf_counter() - start) * 1e3)
        times[name] = min(spent)
    return times


def main():
    names = sys.argv[1:] or NAMES
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/tests/triton")]
    if os.environ.get("TRITON_INTERPRET") == "1":
        print(json.dumps(measure(names, 2)))
        return
    interpreted = json.loads(subprocess.run(
        [sys.executable, __file__, *names], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True,
        capture_output=True, text=True).stdout)
    import braid.triton

    times = {}
    for label, options, repeats in (("plain", {}, 30), ("checked", {"sanitize": True}, 5),
                                    ("counted", {"count": "H100"}, 5)):
        braid.triton.use(**options)
        times[label] = measure(names, repeats)
    print("kernel      plain ms  checked ms  counted ms  interpreted ms  interpreted / plain")
    for name in names:
        plain, checked, counted = (times[label][name] for label in ("plain", "checked", "counted"))
        print(f"{name:10}{plain:10.1f}{checked:12.1f}{counted:12.1f}{interpreted[name]:16.0f}"
              f"{interpreted[name] / plain:21.0f}")


main()
