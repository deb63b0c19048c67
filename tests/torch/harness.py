"""Cases, runs of braid on the cpu device, and comparisons with what PyTorch computes in float64."""

import dataclasses
import json
import subprocess

import torch
from safetensors.torch import load_file, save_file

DTYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int8: "i8",
    torch.bool: "bool",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
}
LIMITS = {torch.float32: 1e-5, torch.float16: 2e-4, torch.bfloat16: 1e-3}
# Attention rounds its weights to the operands' dtype before they multiply the values.
LIMITS_OF_ATTENTION = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 8e-3}


@dataclasses.dataclass
class Node:
    name: str
    op: str
    inputs: list
    attrs: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Case:
    name: str
    inputs: dict  # name -> tensor
    nodes: list
    expected: dict  # output -> tensor: floats as float64, before they are rounded
    limits: dict = dataclasses.field(default_factory=lambda: LIMITS)
    world: int = 1
    # Inputs and outputs that are cut into a part for each rank, and the dim along which they are.
    cut: dict = dataclasses.field(default_factory=dict)


def run(braid, case, directory):
    """The outputs, of the first rank where it has all of one, or the report of a run that failed."""

    def parts(name, tensor):
        return tensor.chunk(case.world, case.cut[name]) if name in case.cut else [tensor] * case.world

    graph = {
        "braid": 1,
        "name": "torch",
        "groups": {"tp": {"size": case.world}},
        "inputs": [
            {
                "name": name,
                "dtype": DTYPES[tensor.dtype],
                "shape": list(parts(name, tensor)[0].shape),
                "per_rank": name in case.cut,
            }
            for name, tensor in case.inputs.items()
        ],
        "nodes": [
            {"name": n.name, "op": n.op, "inputs": n.inputs, **({"attrs": n.attrs} if n.attrs else {})}
            for n in case.nodes
        ],
        "outputs": list(case.expected),
    }
    path, inputs, outputs = directory / "g.json", directory / "in", directory / "out"
    path.write_text(json.dumps(graph))
    inputs.mkdir()
    for rank in range(case.world):
        own = {name: parts(name, tensor)[rank].contiguous() for name, tensor in case.inputs.items()}
        save_file(own, inputs / f"rank{rank}.safetensors")
    command = [braid, "run", path, "--device", "cpu", "--inputs", inputs, "--outputs", outputs]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1]
    ranks = [load_file(outputs / f"rank{rank}.safetensors") for rank in range(case.world)]
    return {
        name: torch.cat([rank[name] for rank in ranks], case.cut[name]) if name in case.cut else whole
        for name, whole in ranks[0].items()
    }, ""


def wrong_value(found, expected, limits):
    """What is wrong with a tensor; empty where nothing is."""
    if found.shape != expected.shape:
        return f"shape {list(found.shape)}; expected {list(expected.shape)}"
    if found.dtype.is_floating_point != expected.dtype.is_floating_point:
        return f"dtype {found.dtype}; expected {expected.dtype}"
    if found.dtype.itemsize == 1 and found.dtype != torch.bool:
        found, expected = found.view(torch.uint8), expected.view(torch.uint8)
    if not found.dtype.is_floating_point:
        differ = (found != expected).sum().item()
        return f"{differ} of {found.numel()} elements differ" if differ else ""
    limit = limits[found.dtype]
    found, expected = found.double(), expected.to(found.dtype).double()
    finite = expected.isfinite()
    if not torch.equal(found.nan_to_num(nan=1e300)[~finite], expected.nan_to_num(nan=1e300)[~finite]):
        return "a NaN or infinity is not where PyTorch has one"
    error = ((found - expected)[finite].norm() / expected[finite].norm().clamp(min=1e-300)).item()
    return "" if error <= limit else f"relative error {error:.2e}; expected at most {limit:.0e}"
