"""Graphs (docs/graph.md): built by code, read and written as JSON."""

import ast
import json
import operator
import os
import pathlib
from typing import Any, Mapping, Sequence

Extent = int | str
Operand = str | float | int | bool


class Graph:
    """The program of one rank. Values are names: of an input, of a node, or "name:1" for a node's
    second result. What does not fit is found when the graph is compiled.

        g = Graph("sum")
        rows, tp = g.symbol("T", max=8), g.group("tp", 2)
        x = g.input("x", "f32", [rows, 8], per_rank=True)
        g.output(g.node("wait_tensor", [g.node("all_reduce", [x], reduce_op="sum", group=tp)]))
    """

    def __init__(self, name: str = "graph"):
        self.name = name
        self.symbols: dict[str, dict[str, Any]] = {}
        self.groups: dict[str, dict[str, Any]] = {}
        self.inputs: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.outputs: list[str] = []
        self._names: set[str] = set()

    def symbol(self, name: str, *, max: int, **limits: Any) -> str:
        """An extent that is known only at run time; `min`, `multiple_of`, `buckets` as in JSON."""
        self.symbols[name] = {**limits, "max": max}
        return name

    def group(self, name: str, size: int, **more: Any) -> str:
        """The ranks of a collective; `symmetric` and `ranks` as in JSON."""
        self.groups[name] = {"size": size, **more}
        return name

    def input(
        self,
        name: str,
        dtype: str,
        shape: Sequence[Extent],
        kind: str = "activation",
        per_rank: bool = False,
    ) -> str:
        """An input of kind activation, parameter or state."""
        entry: dict[str, Any] = {"name": name, "dtype": dtype, "shape": list(shape), "kind": kind}
        if per_rank:
            entry["per_rank"] = True
        self.inputs.append(entry)
        self._names.add(name)
        return name

    def node(self, op: str, inputs: Sequence[Operand] = (), name: str = "", /, **attrs: Any) -> str:
        """Adds an op and returns its name, by default one that is still free."""
        name = name or self._free(op)
        entry: dict[str, Any] = {"name": name, "op": op, "inputs": list(inputs)}
        if attrs:
            entry["attrs"] = attrs
        self.nodes.append(entry)
        self._names.add(name)
        return name

    def output(self, *names: str) -> None:
        self.outputs += names

    def _free(self, op: str) -> str:
        number = len(self.nodes)
        while f"{op}_{number}" in self._names:
            number += 1
        return f"{op}_{number}"

    def to_json(self, indent: int | None = None) -> str:
        keys = ("name", "symbols", "groups", "inputs", "nodes", "outputs")
        return json.dumps({"braid": 1, **{key: getattr(self, key) for key in keys}}, indent=indent)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Graph":
        """Reads a file; braid checks it when it is compiled."""
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        graph = cls(content.get("name", "graph"))
        for key in ("symbols", "groups", "inputs", "nodes", "outputs"):
            setattr(graph, key, content.get(key, getattr(graph, key)))
        graph._names = {entry["name"] for entry in graph.inputs + graph.nodes}
        return graph


GraphLike = Graph | str | os.PathLike[str]


def as_json(graph: GraphLike) -> str:
    """The JSON of a `Graph`, of a file, or what is JSON already."""
    if isinstance(graph, Graph):
        return graph.to_json()
    if isinstance(graph, str) and graph.lstrip().startswith("{"):
        return graph
    return pathlib.Path(graph).read_text(encoding="utf-8")


def world_size(graph: GraphLike) -> int:
    """The ranks that a graph's groups need."""
    groups = json.loads(as_json(graph)).get("groups", {}).values()
    members = [1 + max(map(max, group["ranks"])) for group in groups if "ranks" in group]
    return max([1, *members, *(group["size"] for group in groups)])


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
}


def extent(expression: Extent, values: Mapping[str, int]) -> int:
    """An extent as in a graph, "2*T+1", where its symbols have these values."""

    def value(tree: ast.AST) -> int:
        match tree:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return values[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
        raise ValueError(f"{expression}: expected an affine expression of symbols")

    return value(ast.parse(str(expression), mode="eval").body)
