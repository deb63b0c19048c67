"""The Python package `safetensors` writes what `braid run` reads and reads what it writes, bit for bit.

Usage: safetensors_python.py BRAID
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
FILE_DTYPES = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
SHAPES = {"f32": (3, 5), "f16": (2, 3, 4), "bf16": (7, 64)}
WORLD = 2


def make_graph():
    return {
        "braid": 1,
        "name": "negate",
        "groups": {"tp": {"size": WORLD}},
        "inputs": [
            {"name": f"x {d}", "dtype": d, "shape": list(SHAPES[d]), "per_rank": True} for d in DTYPES
        ],
        "nodes": [{"name": f"y {d}", "op": "neg", "inputs": [f"x {d}"]} for d in DTYPES],
        "outputs": [f"y {d}" for d in DTYPES],
    }


def main(braid):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "graph.json").write_text(json.dumps(make_graph()))
        (directory / "in").mkdir()
        random = np.random.default_rng(1)
        inputs = []
        for rank in range(WORLD):
            tensors = {
                f"x {d}": random.standard_normal(SHAPES[d]).astype(np.float32).astype(DTYPES[d])
                for d in DTYPES
            }
            safetensors.numpy.save_file(
                tensors, directory / "in" / f"rank{rank}.safetensors", metadata={"format": "np"}
            )
            inputs.append(tensors)
        subprocess.run(
            [braid, "run", directory / "graph.json", "--device", "cpu", "--check",
             "--inputs", directory / "in", "--outputs", directory / "out"],
            check=True,
        )
        for rank in range(WORLD):
            data = (directory / "out" / f"rank{rank}.safetensors").read_bytes()
            outputs = dict(safetensors.deserialize(data))
            assert set(outputs) == {f"y {d}" for d in DTYPES}, outputs.keys()
            for d in DTYPES:
                out = outputs[f"y {d}"]
                expected = -inputs[rank][f"x {d}"]
                assert out["dtype"] == FILE_DTYPES[d], out["dtype"]
                assert tuple(out["shape"]) == SHAPES[d], out["shape"]
                assert bytes(out["data"]) == expected.tobytes(), f"rank {rank}: {d} differs"


if __name__ == "__main__":
    main(sys.argv[1])
