"""Times kernels on the GPU by events, beside what PyTorch runs there. A line for each, as it comes.

    torch_peers.py BRAID GRAPHS WORK

GRAPHS has the graphs of shapes.py. Of each shape `BRAID tune` times the default configuration and a
few others in a second; their database, WORK/tune.db, goes on with `--resume`. PyTorch's are torch.mm
(torch._scaled_mm in 8 bits), rms_norm, neg and scaled_dot_product_attention, by
triton.testing.do_bench. Both take the median of launches with a cold L2. Ends with 1 where a kernel
did not run.
"""

import json
import subprocess
import sys
from pathlib import Path

from shapes import SHAPES

try:
    import torch
    import torch.nn.functional as F
    from triton.testing import do_bench
except ImportError as missing:
    print(f"no PyTorch to compare with: {missing}")
    torch = None


def work_of(shape):
    """What is done in a launch, by what bounds it: (1e12 operations or 1e9 bytes, its unit)."""
    m, n, k = shape.m, shape.n, shape.k
    if shape.kind == "gated":
        return 4 * m * n * k / 1e12, "TFLOP/s"
    if shape.kind == "attention":
        return 2 * m * m * n * k / 1e12, "TFLOP/s"
    if shape.kind in ("product", "residual") and m >= 256:
        return 2 * m * n * k / 1e12, "TFLOP/s"
    if shape.kind == "product":
        return 2 * (n * k + m * k + m * n) / 1e9, "GB/s"
    return 2 * 2 * m * n / 1e9, "GB/s"


def braid_us(braid, graph, work):
    """Of the default configuration and of the best that was tried."""
    results = work / graph.name
    subprocess.run([braid, "tune", graph, "--device", "cuda", "--budget", "1s", "--tune-db",
                    work / "tune.db", "--export", results], check=True, timeout=60,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    (kernel,) = json.loads(results.read_text())["kernels"]
    return [kernel[which] and kernel[which]["ns"] / 1e3 for which in ("default", "best")]


def torch_us(shape):
    def random(*extents):
        return (torch.randn(extents, device="cuda") / 8).to(torch.bfloat16)

    if shape.kind == "copy":
        x = random(shape.m, shape.n)
        function = lambda: torch.neg(x)
    elif shape.kind == "residual":
        x, w, r = random(shape.m, shape.k), random(shape.k, shape.n), random(shape.m, shape.n)
        function = lambda: torch.addmm(r, x, w)
    elif shape.kind == "gated":
        x, g, u = random(shape.m, shape.k), random(shape.k, shape.n), random(shape.k, shape.n)
        function = lambda: F.silu(torch.mm(x, g)) * torch.mm(x, u)
    elif shape.kind == "attention":
        q, k, v = (random(1, shape.n, shape.m, shape.k) for _ in "qkv")
        function = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    elif shape.kind == "rows":
        x, g = random(shape.m, shape.n), random(shape.n)
        function = lambda: F.rms_norm(x, (shape.n,), g, 1e-5)
    else:
        x = random(shape.m, shape.k)
        w = random(shape.n, shape.k).t() if shape.transposed else random(shape.k, shape.n)
        function = lambda: torch.mm(x, w)
        if shape.dtype == "f8e4m3":
            x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
            one = torch.ones((), device="cuda")
            function = lambda: torch._scaled_mm(x8, w8, one, one, out_dtype=torch.bfloat16)
    return do_bench(function, return_mode="median") * 1e3


def attempt(name, function, *arguments):
    """Its result, or None and a line that says why not."""
    try:
        return function(*arguments)
    except subprocess.CalledProcessError as error:
        print(f"  {name}: {error.stderr.strip()}", flush=True)
    except Exception as error:  # whatever one fails with, the others go on
        print(f"  {name}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
    return None


def main():
    braid, graphs, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    failed = False
    print(f"{'kernel':<24}{'braid us':>10}{'best us':>10}{'torch us':>10}  rates", flush=True)
    for shape in SHAPES:
        default, best = attempt("braid", braid_us, braid, graphs / f"{shape.name}.json",
                                work) or (None, None)
        peer = attempt("torch", torch_us, shape) if torch else None
        failed |= default is None
        amount, unit = work_of(shape)
        times = [default, best, peer]
        cells = "".join(f"{us:10.1f}" if us else f"{'-':>10}" for us in times)
        rates = " ".join(f"{amount / us * 1e6:.0f}" if us else "-" for us in times)
        print(f"{shape.name:<24}{cells}  {rates} {unit}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
