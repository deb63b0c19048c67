#!/usr/bin/env python3
"""Runs the benchmarks and prints one JSON document with the machine they ran on.

Usage: bench/run.py [--build DIR] [--target sm_80] [-o FILE]
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.json"))


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def run_json(name, command, **environment):
    print(f"bench: {name}", file=sys.stderr)
    result = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, env={**os.environ, **environment}
    )
    if result.returncode != 0:
        sys.exit(f"bench: {name} failed: {result.stderr.strip()}")
    return json.loads(result.stdout)


def lowering(binary):
    rows = run_json("json to program", [binary, "--benchmark_format=json"])["benchmarks"]

    def of(name):
        return [row for row in rows if row["name"].startswith(name)]

    return {
        "json_to_program": [
            {
                "shape": row["name"].split("/")[1],
                "nodes": int(row["nodes"]),
                "steps": int(row["steps"]),
                "total_ms": row["real_time"],
                "parse_ms": row["parse_s"] * 1e3,
                "lower_ms": row["lower_s"] * 1e3,
            }
            for row in of("json_to_program")
        ],
        "passes_ms": [
            {
                "nodes": int(row["nodes"]),
                **{key[:-2]: row[key] * 1e3 for key in row if key.endswith("_s")},
            }
            for row in of("each_pass")
        ],
    }


def planner(binary):
    return {
        "planner": [
            {
                "instance": row["name"].removesuffix("/iterations:1"),
                "ms": row["real_time"],
                **{
                    key: row[key]
                    for key in ("buffers", "quickly", "searched", "nodes", "met")
                    if key in row
                },
            }
            for row in run_json("planner", [binary, "--benchmark_format=json"])["benchmarks"]
        ]
    }


def start(binary, graphs):
    """The same start in two processes on one fresh cache."""
    with tempfile.TemporaryDirectory() as cache:
        return {
            name: run_json(f"{name} start", [binary, *graphs], BRAID_CACHE_DIR=cache)
            for name in ("cold", "warm")
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    binaries = options.build / "bin"
    layers = options.build / "llama_32.json"
    with layers.open("w") as out:
        subprocess.run([sys.executable, ROOT / "examples" / "llama.py"], stdout=out, check=True)
    graphs = [*EXAMPLES, layers]
    document = {
        "machine": {"cpu": cpu_name(), "cores": os.cpu_count(), "system": platform.platform()},
        "cold_compile": run_json(
            "cold compile", [binaries / "bench_compile", options.target, *graphs]
        ),
        "start": start(binaries / "bench_start", graphs),
        "serving": run_json("serving", [binaries / "bench_serving"]),
        "cpu_device": run_json("cpu device", [binaries / "bench_device", "cpu"]),
        "communication": run_json("communication", [binaries / "bench_layer"]),
        "schedules": run_json("schedules", [binaries / "bench_schedule"]),
        **lowering(binaries / "bench_lowering"),
        **planner(binaries / "bench_planner"),
    }
    text = json.dumps(document, indent=2) + "\n"
    if options.output:
        options.output.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
