"""braid compiles tensor programs that contain collectives, and runs them.

    import braid, numpy as np

    g = braid.Graph("sum")
    rows, tp = g.symbol("T", max=8), g.group("tp", 2)
    x = g.input("x", "f32", [rows, 8], per_rank=True)
    total = g.node("wait_tensor", [g.node("all_reduce", [x], reduce_op="sum", group=tp)])
    g.output(total)
    ones = np.ones((3, 8), np.float32)
    print(braid.run(g, {"x": [ones, 2 * ones]}, device="cpu")[total][0])

`braid.export` turns a model of transformers into a folder that `braid.Model` runs, and any other
module of PyTorch into one that `braid.load_exported` opens.
"""

import importlib
from typing import Any, Mapping

import numpy as np

from .errors import (
    Cancelled,
    CannotExport,
    Error,
    InternalError,
    InvalidArgument,
    MissingEnvironment,
    OutOfMemory,
    WaitTimeout,
)
from .executable import Executable, Plan, SymbolInfo, TensorInfo
from .graph import Graph, GraphLike, world_size
from .library import version
from .model import Model, load_exported
from .world import Stream, World

__all__ = [
    "Cancelled",
    "CannotExport",
    "Error",
    "Executable",
    "Graph",
    "InternalError",
    "InvalidArgument",
    "MissingEnvironment",
    "Model",
    "OutOfMemory",
    "Plan",
    "Stream",
    "SymbolInfo",
    "TensorInfo",
    "WaitTimeout",
    "World",
    "compile",
    "load_exported",
    "run",
    "version",
]


def compile(graph: GraphLike, **options: Any) -> Executable:
    """Compiles a graph for a world of its own; the options are those of `World`. `ranks` is by
    default what the graph's groups need."""
    if "ranks" not in options:
        options["ranks"] = world_size(graph)
    return World(**options).compile(graph)


def run(
    graph: GraphLike, inputs: Mapping[str, Any], *, symbols: Mapping[str, int] = {}, **options: Any
) -> dict[str, list[np.ndarray]]:
    """Compiles a graph and runs it once: see `compile` and `Executable.run`. All inputs must be
    given, but for states, which begin with zeros."""
    executable = compile(graph, **options)
    for info in executable.inputs:
        if info.kind != "state" and info.name not in inputs:
            raise InvalidArgument(f"{info.name}: found no value; expected one for each input")
    return executable.run(inputs, **symbols)


def __getattr__(name: str) -> Any:
    # PyTorch is needed for exports alone.
    if name == "export":
        return importlib.import_module(".export", __name__)
    raise AttributeError(f"module {__name__} has no attribute {name}")
