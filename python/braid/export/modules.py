"""Any torch.nn.Module without a cache as a folder: its inputs are tensors, and its plan comes from
the caller."""

import json
import os
import pathlib
from typing import Any, Mapping

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..errors import CannotExport, InvalidArgument
from ..graph import Extent, Graph
from . import source, weights
from .lower import DTYPES, EMPTY, Lowering, outputs_of
from .patterns import Rewriting
from .plan import apply, chosen
from .trace import trace_module

FORMAT = 1


def export_module(
    module: nn.Module,
    out: str | os.PathLike[str],
    inputs: Mapping[str, torch.Tensor],
    dynamic_shapes: Mapping[str, Any] | None,
    plan: Mapping[str, str] | None,
    tp: int,
    progress: weights.Progress | None,
) -> None:
    """`export` of a module and its `inputs`."""
    found = source.of_model(module, None)
    graph = Graph(type(module).__name__)
    dims = _dims(inputs, dynamic_shapes or {})
    # A dim such as 2 * T is one of T's.
    roots = {
        name: {d: getattr(dim, "root", dim) for d, dim in of.items()} for name, of in dims.items()
    }
    for of in {id(dim): dim for each in roots.values() for dim in each.values()}.values():
        _add_symbol(graph, of)
    if tp > 1:
        graph.group("tp", tp)
    for name, tensor in inputs.items():
        if tensor.dtype not in DTYPES:
            known = ", ".join(str(each) for each in DTYPES)
            hint = "; x.float() makes f32 of it" if tensor.dtype == torch.float64 else ""
            raise InvalidArgument(f"{name}: found {tensor.dtype}; expected one of {known}{hint}")
        shape: list[Extent] = list(tensor.shape)
        for d, dim in dims[name].items():
            shape[d] = dim.__name__
        graph.input(name, DTYPES[tensor.dtype], shape)
    cuts = apply(found.model, chosen(found.model, plan, found.plan), tp)
    program = trace_module(found.model, inputs, dims)
    lowering = Lowering(graph, program, inputs, found.names(), found.buffers, cuts)
    results = lowering.run(
        {dim.__name__: (name, d) for name, of in roots.items() for d, dim in of.items()}
    )
    outputs = outputs_of(program)
    names = _output_names(program)
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"{name!r}: is the key of an output; expected a name")
        for each in graph.inputs:
            if name == each["name"]:
                of = "a parameter" if each["kind"] == "parameter" else "an input"
                raise InvalidArgument(f"{name}: is an output and {of}; expected two names")
    for name, value in zip(names, results):
        if value.name == EMPTY:
            raise CannotExport(f"{type(module).__name__}: the output {name} has no elements")
    wholes = map(lowering.whole, outputs, results)
    lowering.finish(dict(zip(names, wholes)))
    Rewriting(lowering).run()

    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.json").write_text(graph.to_json(indent=1) + "\n")
    manifest = {
        "braid_module": FORMAT,
        "architecture": type(module).__name__,
        "graph": "graph.json",
        "weights": weights.write(folder, graph, found, cuts, tp, progress),
        "ranks": tp,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def _dims(
    inputs: Mapping[str, torch.Tensor], dynamic_shapes: Mapping[str, Any]
) -> dict[str, dict[int, Any]]:
    """The symbolic dims of each input, as torch.export takes them."""
    result: dict[str, dict[int, Any]] = {name: {} for name in inputs}
    for name, given in dynamic_shapes.items():
        if name not in inputs:
            raise InvalidArgument(
                f"dynamic_shapes: found {name}; expected inputs, which are {', '.join(inputs)}"
            )
        entries = given.items() if isinstance(given, Mapping) else enumerate(given or ())
        for d, dim in entries:
            if dim is None:
                continue
            if not isinstance(dim, torch.export.Dim) or not hasattr(dim, "max"):
                raise InvalidArgument(
                    f"dynamic_shapes: dim {d} of {name} is {dim}; expected "
                    'torch.export.Dim("T", max=...)'
                )
            if not 0 <= d < inputs[name].ndim:
                raise InvalidArgument(
                    f"dynamic_shapes: {name} has no dim {d}; expected one below {inputs[name].ndim}"
                )
            result[name][d] = dim
    return result


def _add_symbol(graph: Graph, dim: Any) -> None:
    name = dim.__name__
    if not isinstance(dim.max, int) or dim.max >= 2**40:
        raise InvalidArgument(
            f'dynamic_shapes: {name} has no max; expected torch.export.Dim("{name}", max=...)'
        )
    if name in graph.symbols:
        raise InvalidArgument(f"dynamic_shapes: found two dims {name}; expected one for each name")
    graph.symbol(name, min=max(1, int(dim.min)), max=dim.max)


def _output_names(program: torch.export.ExportedProgram) -> list[str]:
    """`output`, the keys of a dict, or `output_0`, `output_1`, ..., of those that are tensors."""
    spec = program.call_spec.out_spec
    (node,) = [node for node in program.graph.nodes if node.op == "output"]
    leaves = [isinstance(each, torch.fx.Node) for each in node.args[0]]
    made = pytree.tree_unflatten(list(range(len(leaves))), spec)
    names = [f"output_{i}" for i in range(len(leaves))]
    if isinstance(made, int):
        names = ["output"]
    elif isinstance(made, Mapping) and list(made.values()) == list(range(len(leaves))):
        names = list(made)
    return [name for name, is_tensor in zip(names, leaves) if is_tensor]
