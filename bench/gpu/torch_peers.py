"""The kernels of bench_device as PyTorch runs them (matmul is cuBLAS). Prints JSON."""

import json

import torch


def milliseconds(work, runs=50, samples=15):
    times = []
    for sample in range(samples + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(runs):
            work()
        end.record()
        end.synchronize()
        if sample >= 3:
            times.append(start.elapsed_time(end) / runs)
    return sorted(times)[len(times) // 2]


def main():
    results = []
    for n in (512, 4096):
        a, b = (torch.randn(n, n, dtype=torch.bfloat16, device="cuda") for _ in range(2))
        ms = milliseconds(lambda: torch.mm(a, b))
        results.append({"name": "gemm", "n": n, "torch_ms": ms, "gflop_per_s": 2 * n**3 / ms / 1e6})
    x = torch.randn(1024, 2048, dtype=torch.bfloat16, device="cuda")
    g = torch.ones(2048, dtype=torch.bfloat16, device="cuda")
    norms = {"eager": torch.nn.functional.rms_norm}
    norms["compiled"] = torch.compile(torch.nn.functional.rms_norm)  # a Triton kernel
    for name, norm in norms.items():
        ms = milliseconds(lambda: norm(x, (2048,), g, 1e-5))
        results.append({"name": f"rms_norm {name}", "rows": 1024, "width": 2048, "torch_ms": ms})
    print(json.dumps({"torch": torch.__version__, "results": results}, indent=2))


if __name__ == "__main__":
    main()
