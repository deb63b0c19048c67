#!/usr/bin/env python3
"""Default configurations of matmuls beside the best that the tuner finds: bench/defaults.py BRAID [--shapes N] [--minutes N].

Tunes (braid tune, a tenth of the candidates, times estimated by sampled counts: no GPU) a table of shapes: rows from 1
to 8192 times widths of Llama 7B and 70B, Mixtral and GPT-OSS, whole or a rank's of eight. Prints a table in Markdown of
both times, and the geometric mean and the worst of their ratios. Shapes for which no time is left are counted.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

ROWS = [1, 16, 128, 1024, 8192]
# (name, columns of the result, K): qkv, attention's output, gate and up, down.
WIDTHS = [
    ("Llama 7B qkv", 12288, 4096), ("Llama 7B o", 4096, 4096),
    ("Llama 7B gate", 11008, 4096), ("Llama 7B down", 4096, 11008),
    ("Llama 70B qkv", 10240, 8192), ("Llama 70B o", 8192, 8192),
    ("Llama 70B gate", 28672, 8192), ("Llama 70B down", 8192, 28672),
    ("Llama 70B/8 qkv", 1280, 8192), ("Llama 70B/8 o", 8192, 1024),
    ("Llama 70B/8 gate", 3584, 8192), ("Llama 70B/8 down", 8192, 3584),
    ("Mixtral qkv", 6144, 4096), ("Mixtral gate", 14336, 4096), ("Mixtral down", 4096, 14336),
    ("GPT-OSS qkv", 5120, 2880), ("GPT-OSS o", 2880, 4096),
    ("GPT-OSS gate and up", 5760, 2880), ("GPT-OSS down", 2880, 2880),
]
TYPES = [("bf16", "A100"), ("bf16", "H100"), ("f16", "H100"), ("f8e4m3", "H100")]


def shapes():
    """All, in an order in which each part of the list has every kind of them."""
    table = [(name, m, n, k, dtype, target) for dtype, target in TYPES for m in ROWS for name, n, k in WIDTHS]
    step = 83  # no divisor of their count
    return [table[i * step % len(table)] for i in range(len(table))]


def graph(m, n, k, dtype):
    def tensor(name, dtype, *shape):
        return {"name": name, "dtype": dtype, "shape": shape}

    inputs = [tensor("x", dtype, m, k), tensor("w", dtype, k, n)]
    nodes = [{"name": "y", "op": "mm", "inputs": ["x", "w"]}]
    if dtype.startswith("f8"):  # whose columns lie one after the other
        inputs = [inputs[0], tensor("c", dtype, n, k), tensor("sx", "f32", m, 1), tensor("sw", "f32", 1, n)]
        nodes = [{"name": "w", "op": "transpose", "inputs": ["c"], "attrs": {"dim0": 0, "dim1": 1}},
                 {"name": "y", "op": "scaled_mm", "inputs": ["x", "w", "sx", "sw"]}]
    return json.dumps({"braid": 1, "name": "mm", "inputs": inputs, "nodes": nodes, "outputs": ["y"]})


def tuned(braid, database, shape, exhaustive, seconds):
    _, m, n, k, dtype, target = shape
    command = [braid, "tune", "-", "--device", "cpu", "--target", target, "--budget", f"{seconds:.0f}s", "--tune-db",
               database, "--resume", "--json"] + (["--exhaustive"] if exhaustive else [])
    result = subprocess.run(command, input=graph(m, n, k, dtype), capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{shape}: exit code {result.returncode}: {result.stderr.strip()}")
    document = json.loads(result.stdout)
    return document["kernels"][0] if document["complete"] else None


def config_text(config):
    return (f"{config['BLOCK_M']}x{config['BLOCK_N']}x{config['BLOCK_K']}, {config['num_stages']} stages, "
            f"{config['num_warps']} warps, {config['GROUP_M']} rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("braid")
    parser.add_argument("--shapes", type=int, default=len(shapes()), help="so many of the table (default: all)")
    parser.add_argument("--minutes", type=float, default=60, help="no shape is begun later (default: 60)")
    parser.add_argument("--tune-db", help="a database to go on with (default: a new one)")
    parser.add_argument("--exhaustive", action="store_true", help="try every candidate")
    arguments = parser.parse_args()
    begin, ratios, left = time.monotonic(), [], 0
    print("| product | M x N x K | type | device | default | us | best | us | default / best |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        database = arguments.tune_db or os.path.join(folder, "tune.db")
        for shape in shapes()[:arguments.shapes]:
            seconds = arguments.minutes * 60 - (time.monotonic() - begin)
            kernel = tuned(arguments.braid, database, shape, arguments.exhaustive, seconds) if seconds >= 1 else None
            if kernel is None:
                left += 1
                continue
            if kernel["default"] is None:
                sys.exit(f"{shape}: the default does not run")
            name, m, n, k, dtype, target = shape
            default, best = kernel["default"], kernel["best"]
            ratios.append((default["ns"] / best["ns"], shape))
            print(f"| {name} | {m} x {n} x {k} | {dtype} | {target} | {config_text(default['config'])} | "
                  f"{default['ns'] / 1e3:.1f} | {config_text(best['config'])} | {best['ns'] / 1e3:.1f} | "
                  f"{ratios[-1][0]:.3f} |", flush=True)
    if not ratios:
        sys.exit("no time for any shape")
    mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
    worst, shape = max(ratios)
    print(f"\n{len(ratios)} shapes of {len(shapes())}, {left} without time: geometric mean {mean:.3f}, "
          f"worst {worst:.3f} ({' '.join(map(str, shape))})")


if __name__ == "__main__":
    main()
