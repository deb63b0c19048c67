"""From ATen ops, as torch.export leaves them, to a graph of braid's.

A traced tensor has a batch dim of one, and its heads in front of its tokens. In the graph a `Value`
stands for it, which has the tensor's dims in the order of memory, mostly tokens first, and no dim that
has one element only because it was inserted. So transposes, squeezes and expansions cost no node until
an op needs the elements in another order.
"""

import dataclasses
import functools
import operator
import re
from typing import Any, Callable, Iterable, Sequence

import sympy
import torch

from ..errors import Error
from ..graph import Extent, Graph
from .plan import Cut

DTYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "bool",
}


class CannotExport(Error):
    """What a model has and a graph cannot: a line for each op, with module and source."""


@dataclasses.dataclass(frozen=True)
class Value:
    """A traced tensor in the graph. `axes` has the dim of the value `name` for each dim of the tensor,
    or None where all elements along it are equal: it has one, or was expanded."""

    name: str
    axes: tuple[int | None, ...]

    @property
    def rank(self) -> int:
        return len(self.axes)

    def order(self) -> list[int]:
        """The tensor's dims in the order of the value's."""
        return sorted((d for d, axis in enumerate(self.axes) if axis is not None), key=self._axis)

    def _axis(self, dim: int) -> int:
        return self.axes[dim]


class _Unsupported(Exception):
    pass


# Stands for a tensor without elements, such as what a rotary embedding of all of a head leaves alone.
_EMPTY = ""


_HANDLERS: dict[str, Callable[..., Any]] = {}


def _lowers(*names: str):
    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        _HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


# Ops that have braid's name and semantics, element by element, with all their operands in front.
_ELEMENTWISE = {
    f"aten::{name}": name
    for name in (
        "abs add bitwise_and bitwise_not bitwise_or bitwise_xor cos div eq erf exp floor fmod ge gt"
        " isfinite isinf isnan le log logaddexp logical_and logical_not logical_or logical_xor lt"
        " masked_fill maximum minimum mul ne neg pow relu remainder round rsqrt sigmoid sign silu sin"
        " sqrt sub tanh where"
    ).split()
}
# Ops of which a second one with the same operands is left out: what models repeat for each layer.
_PURE = {"cos", "mul", "permute", "sin", "to", "transpose", "view"}
# Ops that only hand on their operand, here.
_IDENTITIES = {
    "aten::alias", "aten::clone", "aten::contiguous", "aten::detach", "aten::dropout",
    "aten::lift_fresh_copy",
}  # fmt: skip


class Lowering:
    """Fills a graph with the nodes of a program. `inputs` has the names of the program's inputs that
    are no parameters; `group` and `cuts` say how parameters are split; `caches` makes a layer's."""

    def __init__(
        self,
        graph: Graph,
        program: torch.export.ExportedProgram,
        inputs: dict[str, str],
        parameter: Callable[[str], str],
        cuts: dict[str, Cut],
        caches: Callable[[int, str, list[Extent], str], str],
    ):
        self.graph = graph
        self.program = program
        self.cuts = cuts
        self.caches = caches
        self.dtypes: dict[str, str] = {}
        self.shapes: dict[str, list[Extent]] = {}
        self._inputs = inputs
        self._parameter = parameter
        self._values: dict[torch.fx.Node, Any] = {}
        self._symbols: dict[sympy.Symbol, sympy.Symbol] = {}
        self._module = ""
        self._names: dict[str, int] = {}
        self._emitted: dict[tuple[Any, ...], str] = {}

    def run(self, symbols: dict[str, tuple[str, int]]) -> Value:
        """Lowers what the output needs. `symbols` has an input and a dim whose extent, less what is
        added to it, each symbol is."""
        graph = self.program.graph
        for node in graph.nodes:
            if node.op == "placeholder":
                for symbol, (name, dim) in symbols.items():
                    if node.name == name:
                        self._define(symbol, node.meta["val"].shape[dim])
        (output,) = [node for node in graph.nodes if node.op == "output"]
        needed = _needed(output)
        problems: dict[str, None] = {}
        for node in graph.nodes:
            if node not in needed or node is output:
                continue
            self._values[node] = _Unsupported
            try:
                handler = self._handler(node)
                if all(self._values[each] is not _Unsupported for each in node.all_input_nodes):
                    self._values[node] = handler(node)
            except _Unsupported as problem:
                problems[f"{_module_of(node) or 'the model'}: {problem}; {_source_of(node)}"] = None
        if problems:
            raise CannotExport(
                f"{len(problems)} ops cannot be exported:\n  " + "\n  ".join(problems)
            )
        (result,) = output.args[0]
        return self._values[result]

    def finish(self, value: Value, name: str) -> None:
        """Makes a value an output of this name."""
        value = self.plain(value)
        (made,) = [node for node in self.graph.nodes if node["name"] == value.name]
        made["name"] = name
        self.dtypes[name], self.shapes[name] = self.dtypes[value.name], self.shapes[value.name]
        self.graph.outputs = [name]

    def _define(self, symbol: str, size: Any) -> None:
        expression = size.node.expr
        (free,) = expression.free_symbols
        self._symbols[free] = sympy.Symbol(symbol, integer=True, positive=True)

    def _handler(self, node: torch.fx.Node) -> Callable[[torch.fx.Node], Any]:
        """What lowers a node once its operands are."""
        if node.op == "placeholder":
            return self._placeholder
        value = node.meta.get("val")
        if isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
            return lambda _: value
        if node.target is operator.getitem:
            return lambda node: self._values[node.args[0]][node.args[1]]
        if not isinstance(node.target, torch._ops.OpOverload):
            raise _Unsupported(f"{node.op} {node.target}")
        op = node.target._schema.name
        if op in _ELEMENTWISE:
            handler = functools.partial(Lowering._elementwise, op=_ELEMENTWISE[op])
        elif op in _IDENTITIES:
            handler = _identity
        elif op in _HANDLERS:
            handler = _HANDLERS[op]
        else:
            raise _Unsupported(op.removeprefix("aten::"))

        def lower(node: torch.fx.Node) -> Any:
            self.enter(_module_of(node))
            return handler(self, node, **self._arguments(node))

        return lower

    def _placeholder(self, node: torch.fx.Node) -> Value:
        signature = self.program.graph_signature
        tensor = node.meta["val"]
        shape, dtype = self.extents(tensor.shape), DTYPES.get(tensor.dtype)
        if dtype is None:
            raise _Unsupported(f"{node.name} is {tensor.dtype}")
        name = self._inputs.get(node.name)
        if name is None:
            of = signature.inputs_to_parameters | signature.inputs_to_buffers
            if node.name not in of:
                raise _Unsupported(f"the constant {node.name}, which the model makes as it runs")
            name = self._parameter(of[node.name])
            if name not in self.shapes:
                self.graph.input(name, dtype, shape, "parameter", per_rank=name in self.cuts)
        self.dtypes[name], self.shapes[name] = dtype, shape
        return Value(name, tuple(range(len(shape))))

    def _arguments(self, node: torch.fx.Node) -> dict[str, Any]:
        """By the names of the schema, with tensors as values."""
        result = {}
        for i, argument in enumerate(node.target._schema.arguments):
            given = node.kwargs.get(argument.name, argument.default_value)
            if not argument.kwarg_only and i < len(node.args):
                given = node.args[i]
            result["self_" if argument.name == "self" else argument.name] = torch.fx.map_arg(
                given, self._values.__getitem__
            )
        return result

    # What handlers build with.

    def extent(self, size: Any) -> Extent:
        if not isinstance(size, torch.SymInt):
            return int(size)
        expression = size.node.expr.subs(self._symbols)
        return int(expression) if expression.is_number else str(expression).replace(" ", "")

    def extents(self, sizes: Iterable[Any]) -> list[Extent]:
        return [self.extent(size) for size in sizes]

    def emit(
        self, op: str, inputs: Sequence[Any], dtype: str, shape: list[Extent], /, **attrs: Any
    ) -> str:
        """A node named after the module that it comes from, or an equal one that there is."""
        key = (op, *inputs, str(attrs))
        if op in _PURE and key in self._emitted:
            return self._emitted[key]
        stem = f"{self._module}.{op}" if self._module else op
        number = self._names[stem] = self._names.get(stem, 0) + 1
        name = stem if number == 1 else f"{stem}_{number}"
        self.graph.node(op, inputs, name, **attrs)
        self._emitted[key] = name
        self.dtypes[name], self.shapes[name] = dtype, shape
        return name

    def emit_like(
        self, node: torch.fx.Node, op: str, inputs: Sequence[Any], value: Value, /, **attrs: Any
    ) -> Value:
        """A node with the dims of `value` and the dtype and extents of the traced one."""
        tensor = node.meta["val"]
        shape = [self.extent(tensor.shape[dim]) for dim in value.order()]
        return Value(self.emit(op, inputs, DTYPES[tensor.dtype], shape, **attrs), value.axes)

    def ordered(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its dims in this order."""
        found = value.order()
        if found == list(order):
            return value
        dims = [value.axes[dim] for dim in order]
        shape = self.shapes[value.name]
        name = self.emit(
            "permute", [value.name], self.dtypes[value.name], [shape[d] for d in dims], dims=dims
        )
        axes = [None if axis is None else order.index(dim) for dim, axis in enumerate(value.axes)]
        return Value(name, tuple(axes))

    def plain(self, value: Value) -> Value:
        """With its dims in the tensor's order."""
        return self.ordered(value, sorted(value.order()))

    def viewed(self, value: Value, shape: list[Extent], axes: Sequence[int | None]) -> Value:
        if self.shapes[value.name] == shape:
            return Value(value.name, tuple(axes))
        name = self.emit("view", [value.name], self.dtypes[value.name], shape, shape=shape)
        return Value(name, tuple(axes))

    def whole(self, node: torch.fx.Node, value: Value) -> Value:
        """With all its dims, also those that were only inserted or expanded, in the tensor's order:
        `node` is the traced tensor."""
        value = self.plain(value)
        wanted = self.extents(node.meta["val"].shape)
        every = tuple(range(len(wanted)))
        if value.axes == every:
            return value
        narrow = [1 if axis is None else wanted[d] for d, axis in enumerate(value.axes)]
        value = self.viewed(value, narrow, every)
        if narrow == wanted:
            return value
        name = self.emit("expand", [value.name], self.dtypes[value.name], wanted, shape=wanted)
        return Value(name, every)

    def aligned(self, values: Sequence[Value], rank: int) -> tuple[list[str], tuple[int | None, ...]]:
        """The names of operands that broadcast against each other, and the result's axes."""
        values = [Value(v.name, (None,) * (rank - v.rank) + v.axes) for v in values]
        order = max((value.order() for value in values), key=len)
        for value in values:
            for dim in set(value.order()) - set(order):
                later = [i for i, other in enumerate(order) if other > dim]
                order.insert(later[0] if later else len(order), dim)
        names = []
        for value in values:
            value = self.ordered(value, [dim for dim in order if value.axes[dim] is not None])
            has = [value.axes[dim] is not None for dim in order]
            if any(has):
                has = has[has.index(True) :]
            if has and not all(has):
                own = iter(self.shapes[value.name])
                shape = [next(own) if there else 1 for there in has]
                value = self.viewed(value, shape, (None,) * rank)
            names.append(value.name)
        axes: list[int | None] = [None] * rank
        for axis, dim in enumerate(order):
            axes[dim] = axis
        return names, tuple(axes)

    def _elementwise(self, node: torch.fx.Node, *, op: str, **arguments: Any) -> Value:
        operands = [
            arguments.pop(name)
            for name in ("condition", "self_", "mask", "other", "exponent", "value")
            if name in arguments
        ]
        if (alpha := arguments.pop("alpha", 1)) != 1:
            operands[1] = self._scaled(node, operands[1], alpha)
        attrs = {name: value for name, value in arguments.items() if value is not None}
        if attrs and op not in ("div",):
            raise _Unsupported(f"{op} with {', '.join(attrs)}")
        tensors = [v for v in operands if isinstance(v, Value)]
        identity = {"mul": 1, "div": 1, "add": 0, "sub": 0}.get(op)
        if len(operands) == 2 and operands[1] == identity and not isinstance(operands[1], Value):
            if self.dtypes[operands[0].name] == DTYPES[node.meta["val"].dtype]:
                return operands[0]
        names, axes = self.aligned(tensors, node.meta["val"].ndim)
        given = iter(names)
        inputs = [next(given) if isinstance(v, Value) else _number(v) for v in operands]
        return self.emit_like(node, op, inputs, Value("", axes), **attrs)

    def _scaled(self, node: torch.fx.Node, operand: Any, by: float) -> Any:
        if not isinstance(operand, Value):
            return operand * by
        name = operand.name
        return Value(
            self.emit("mul", [name, by], self.dtypes[name], self.shapes[name]), operand.axes
        )

    def cast_name(self, name: str, dtype: str) -> str:
        if self.dtypes[name] == dtype:
            return name
        return self.emit("to", [name], dtype, self.shapes[name], dtype=dtype)

    def cast(self, value: Value, dtype: str) -> Value:
        return Value(self.cast_name(value.name, dtype), value.axes)

    def forget(self) -> None:
        """Emits anew what it has emitted until now, which may have been changed."""
        self._emitted.clear()

    def enter(self, module: str) -> None:
        """Names nodes from now on after this module."""
        self._module = module

    def waited(self, op: str, value: Value, shape: list[Extent], /, **attrs: Any) -> Value:
        """A collective and its wait."""
        dtype = self.dtypes[value.name]
        handle = self.emit(op, [value.name], dtype, shape, group="tp", **attrs)
        return Value(self.emit("wait_tensor", [handle], dtype, shape), value.axes)

    def rows(self, value: Value) -> Value:
        """As a matrix, whose columns are the tensor's last dim."""
        last = value.rank - 1
        order = [dim for dim in value.order() if dim != last]
        value = self.ordered(value, [*order, last])
        shape = self.shapes[value.name]
        if len(shape) == 2:
            return Value(value.name, (0, 1))
        return self.viewed(value, [_product(shape[:-1]), shape[-1]], (0, 1))


def _needed(output: torch.fx.Node) -> set[torch.fx.Node]:
    needed, waiting = set(), [output]
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes
    return needed


def _module_of(node: torch.fx.Node) -> str:
    """The path of the innermost module, as in the model's own names."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    return re.sub(r"@\d+$", "", path).removeprefix("model").removeprefix(".")


def _source_of(node: torch.fx.Node) -> str:
    """The line of the model, not of torch or this package."""
    frames = re.findall(r'File "([^"]+)", line (\d+), in .*\n\s*(.*)', node.meta.get("stack_trace") or "")
    for file, line, text in reversed(frames):
        if "/site-packages/torch/" not in file and "/braid/export/" not in file:
            return f"{file}:{line}: {text}"
    return "no source line is known"


def _number(value: Any) -> Any:
    if isinstance(value, (int, float, bool)):
        return value
    raise _Unsupported(f"the operand {value}")


def _product(extents: Sequence[Extent]) -> Extent:
    if all(isinstance(extent, int) for extent in extents):
        result = 1
        for extent in extents:
            result *= extent
        return result
    product = sympy.Integer(1)
    for extent in extents:
        product *= sympy.sympify(extent, {name: sympy.Symbol(name) for name in ("S", "T")})
    return str(sympy.expand(product)).replace(" ", "")


def _dim(dim: int, rank: int) -> int:
    return dim + rank if dim < 0 else dim


def _identity(low: Lowering, node: torch.fx.Node, **arguments: Any) -> Any:
    return next(iter(arguments.values()))


# Shapes.


@_lowers("aten::transpose")
def _transpose(low: Lowering, node, self_: Value, dim0: int, dim1: int) -> Value:
    axes = list(self_.axes)
    a, b = _dim(dim0, len(axes)), _dim(dim1, len(axes))
    axes[a], axes[b] = axes[b], axes[a]
    return Value(self_.name, tuple(axes))


@_lowers("aten::t")
def _t(low: Lowering, node, self_: Value) -> Value:
    return Value(self_.name, self_.axes[::-1])


@_lowers("aten::permute")
def _permute(low: Lowering, node, self_: Value, dims: list[int]) -> Value:
    return Value(self_.name, tuple(self_.axes[dim] for dim in dims))


@_lowers("aten::unsqueeze")
def _unsqueeze(low: Lowering, node, self_: Value, dim: int) -> Value:
    dim = _dim(dim, self_.rank + 1)
    return Value(self_.name, self_.axes[:dim] + (None,) + self_.axes[dim:])


@_lowers("aten::squeeze")
def _squeeze(low: Lowering, node, self_: Value, dim: Any = None) -> Value:
    sizes = node.all_input_nodes[0].meta["val"].shape
    dims = range(self_.rank) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d % self_.rank for d in dims if sizes[d] == 1}
    kept = [d for d in range(self_.rank) if d not in gone]
    if any(self_.axes[d] is not None for d in gone):
        self_ = _without(low, self_, gone)
    return Value(self_.name, tuple(self_.axes[d] for d in kept))


def _without(low: Lowering, value: Value, gone: set[int]) -> Value:
    """The value without dims of one element."""
    kept = [dim for dim in value.order() if dim not in gone]
    shape = [low.shapes[value.name][value.axes[dim]] for dim in kept]
    axes = [kept.index(dim) if dim in kept else None for dim in range(value.rank)]
    return low.viewed(value, shape, axes)


@_lowers("aten::expand")
def _expand(low: Lowering, node, self_: Value, size: list[Any], implicit: bool = False) -> Value:
    value = Value(self_.name, (None,) * (len(size) - self_.rank) + self_.axes)
    wanted = low.extents(node.meta["val"].shape)
    grown = {
        dim
        for dim, axis in enumerate(value.axes)
        if axis is not None and low.shapes[value.name][axis] != wanted[dim]
    }
    return _without(low, value, grown) if grown else value


@_lowers("aten::view", "aten::reshape", "aten::_unsafe_view", "aten::flatten", "aten::unflatten")
def _view(low: Lowering, node, self_: Value, **_: Any) -> Value:
    source = node.all_input_nodes[0]
    before, after = low.extents(source.meta["val"].shape), low.extents(node.meta["val"].shape)
    expanded = [d for d, axis in enumerate(self_.axes) if axis is None and before[d] != 1]
    value = low.whole(source, self_) if expanded else low.plain(self_)
    kept = [dim for dim, extent in enumerate(after) if extent != 1]
    shape = [after[dim] for dim in kept]
    axes = [kept.index(dim) if dim in kept else None for dim in range(len(after))]
    return low.viewed(value, shape, axes)


@_lowers("aten::slice")
def _slice(low: Lowering, node, self_: Value, dim=0, start=None, end=None, step=1) -> Value:
    dim = _dim(dim, self_.rank)
    before = node.all_input_nodes[0].meta["val"].shape[dim]
    after = node.meta["val"].shape[dim]
    if low.extent(before) == low.extent(after):
        return self_
    if low.extent(after) == 0:
        return Value(_EMPTY, self_.axes)
    if self_.axes[dim] is None:
        return self_
    attrs = {"dim": self_.axes[dim], "start": low.extent(start or 0)}
    if end is not None and not (isinstance(end, int) and end >= 2**62):
        attrs["end"] = low.extent(end)
    if step != 1:
        attrs["step"] = step
    return low.emit_like(node, "slice", [self_.name], self_, **attrs)


@_lowers("aten::select")
def _select(low: Lowering, node, self_: Value, dim: int, index: int) -> Value:
    dim = _dim(dim, self_.rank)
    axis = self_.axes[dim]
    axes = self_.axes[:dim] + self_.axes[dim + 1 :]
    if axis is None:
        return Value(self_.name, axes)
    axes = tuple(a - 1 if a is not None and a > axis else a for a in axes)
    return low.emit_like(
        node, "select", [self_.name], Value("", axes), dim=axis, index=low.extent(index)
    )


@_lowers("aten::split", "aten::split_with_sizes")
def _split(low: Lowering, node, self_: Value, dim: int = 0, **sizes: Any) -> list[Value]:
    (size,) = sizes.values()
    size = low.extents(size) if isinstance(size, (list, tuple)) else low.extent(size)
    value, dim = self_, _dim(dim, self_.rank)
    if value.axes[dim] is None:
        value = low.whole(node.all_input_nodes[0], value)
    parts = node.meta["val"]
    shapes = [[low.extent(part.shape[d]) for d in value.order()] for part in parts]
    dtype = low.dtypes[value.name]
    axis = value.axes[dim]
    name = low.emit("split", [value.name], dtype, shapes[0], dim=axis, split_size=size)
    result = []
    for i, shape in enumerate(shapes):
        of = f"{name}:{i}" if len(parts) > 1 else name
        low.dtypes[of], low.shapes[of] = dtype, shape
        result.append(Value(of, value.axes))
    return result


@_lowers("aten::chunk")
def _chunk(low: Lowering, node, self_: Value, chunks: int, dim: int = 0) -> list[Value]:
    return _split(low, node, self_, dim, size=node.meta["val"][0].shape[dim])


@_lowers("aten::cat")
def _cat(low: Lowering, node, tensors: list[Value], dim: int = 0) -> Value:
    dim = _dim(dim, node.meta["val"].ndim)
    kept = [i for i, value in enumerate(tensors) if value.name != _EMPTY]
    tensors, sources = [tensors[i] for i in kept], [node.args[0][i] for i in kept]
    if len(tensors) == 1:
        return tensors[0]
    lead = max(tensors, key=lambda v: len(v.order()))
    same = [d for d, axis in enumerate(lead.axes) if axis is not None]
    alike = all([d for d, axis in enumerate(v.axes) if axis is not None] == same for v in tensors)
    if alike and dim in same:
        values = [low.ordered(value, lead.order()) for value in tensors]
    else:
        values = [low.whole(source, value) for source, value in zip(sources, tensors)]
        lead = values[0]
    return low.emit_like(
        node, "cat", [v.name for v in values], values[0], dim=values[0].axes[dim]
    )


# Elements.


@_lowers("aten::_to_copy", "aten::to")
def _to(low: Lowering, node, self_: Value, **_: Any) -> Value:
    return low.cast(self_, DTYPES[node.meta["val"].dtype])


@_lowers("aten::type_as")
def _type_as(low: Lowering, node, self_: Value, other: Value) -> Value:
    return low.cast(self_, low.dtypes[other.name])


@_lowers("aten::copy")
def _copy(low: Lowering, node, self_: Value, src: Value, **_: Any) -> Value:
    src = Value(src.name, (None,) * (self_.rank - src.rank) + src.axes)
    return low.cast(src, DTYPES[node.meta["val"].dtype])


@_lowers("aten::rsub")
def _rsub(low: Lowering, node, self_: Value, other: Any, alpha: float = 1) -> Value:
    return low._elementwise(node, op="sub", self_=other, other=low._scaled(node, self_, alpha))


@_lowers("aten::clamp", "aten::clamp_min", "aten::clamp_max")
def _clamp(low: Lowering, node, self_: Value, **limits: Any) -> Value:
    attrs = {name: _number(value) for name, value in limits.items() if value is not None}
    return low.emit_like(node, "clamp", [self_.name], self_, **attrs)


@_lowers("aten::gelu")
def _gelu(low: Lowering, node, self_: Value, approximate: str) -> Value:
    return low.emit_like(node, "gelu", [self_.name], self_, approximate=approximate)


@_lowers("aten::softplus")
def _softplus(low: Lowering, node, self_: Value, beta: float, threshold: float) -> Value:
    return low.emit_like(node, "softplus", [self_.name], self_, beta=beta, threshold=threshold)


def _filled(low: Lowering, node, value: float) -> Value:
    tensor = node.meta["val"]
    dtype = DTYPES[tensor.dtype]
    return Value(low.emit("full", [], dtype, [], value=value, dtype=dtype), (None,) * tensor.ndim)


@_lowers("aten::full", "aten::full_like", "aten::new_full")
def _full(low: Lowering, node, fill_value: Any, **_: Any) -> Value:
    return _filled(low, node, _number(fill_value))


@_lowers("aten::scalar_tensor")
def _scalar(low: Lowering, node, s: Any, **_: Any) -> Value:
    return _filled(low, node, _number(s))


@_lowers("aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::new_empty", "aten::empty")
def _zeros(low: Lowering, node, **_: Any) -> Value:
    return _filled(low, node, 0)


@_lowers("aten::ones", "aten::ones_like", "aten::new_ones")
def _ones(low: Lowering, node, **_: Any) -> Value:
    return _filled(low, node, 1)


@_lowers("aten::arange")
def _arange(low: Lowering, node, end: Any, start: Any = 0, step: Any = 1, **_: Any) -> Value:
    tensor = node.meta["val"]
    dtype, shape = DTYPES[tensor.dtype], low.extents(tensor.shape)
    attrs = {"start": low.extent(start), "end": low.extent(end), "step": low.extent(step)}
    return Value(low.emit("arange", [], dtype, shape, dtype=dtype, **attrs), (0,))


# Rows.


@_lowers("aten::mean", "aten::sum", "aten::amax", "aten::amin", "aten::prod", "aten::any", "aten::all")
def _reduction(low: Lowering, node, self_: Value, dim: Any = None, keepdim=False, dtype=None) -> Value:
    op = node.target._schema.name.removeprefix("aten::")
    if dtype is not None:
        self_ = low.cast(self_, DTYPES[dtype])
    dims = range(self_.rank) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
    dims = [_dim(d, self_.rank) for d in dims]
    if any(self_.axes[d] is None for d in dims):
        self_ = low.whole(node.all_input_nodes[0], self_)
    axes = [self_.axes[d] for d in dims]
    kept = [d for d in self_.order() if d not in dims]
    shape = [low.shapes[self_.name][self_.axes[d]] for d in kept]
    name = low.emit(op, [self_.name], DTYPES[node.meta["val"].dtype], shape, dim=sorted(axes))
    result = tuple(kept.index(d) if d in kept else None for d in range(self_.rank))
    return Value(name, result if keepdim else tuple(a for d, a in enumerate(result) if d not in dims))


def _last(low: Lowering, node, value: Value, dim: int) -> int:
    """The axis of a dim along which rows lie."""
    axis = value.axes[_dim(dim, value.rank)]
    if axis is None:
        raise _Unsupported(f"{node.target} along a dim that was inserted")
    return axis


@_lowers("aten::softmax", "aten::_softmax", "aten::_safe_softmax")
def _softmax(low: Lowering, node, self_: Value, dim: int, dtype=None, half_to_float=False) -> Value:
    self_ = low.cast(self_, DTYPES[node.meta["val"].dtype])
    return low.emit_like(node, "softmax", [self_.name], self_, dim=_last(low, node, self_, dim))


@_lowers("aten::cumsum")
def _cumsum(low: Lowering, node, self_: Value, dim: int, dtype=None) -> Value:
    if dtype is not None:
        self_ = low.cast(self_, DTYPES[dtype])
    return low.emit_like(node, "cumsum", [self_.name], self_, dim=_last(low, node, self_, dim))


@_lowers("aten::topk", "aten::sort")
def _topk(low: Lowering, node, self_: Value, dim: int = -1, **attrs: Any) -> list[Value]:
    op = node.target._schema.name.removeprefix("aten::")
    attrs.pop("stable", None)
    shape = [low.extent(node.meta["val"][0].shape[d]) for d in self_.order()]
    name = low.emit(
        op, [self_.name], low.dtypes[self_.name], shape, dim=_last(low, node, self_, dim), **attrs
    )
    for i, tensor in enumerate(node.meta["val"]):
        low.dtypes[f"{name}:{i}"], low.shapes[f"{name}:{i}"] = DTYPES[tensor.dtype], shape
    return [Value(f"{name}:{i}", self_.axes) for i in range(2)]


@_lowers("aten::rms_norm")
def _rms_norm(low: Lowering, node, input: Value, normalized_shape, weight=None, eps=None) -> Value:
    if len(normalized_shape) != 1 or eps is None:
        raise _Unsupported("rms_norm over several dims or without eps")
    value = low.ordered(input, [d for d in input.order() if d != input.rank - 1] + [input.rank - 1])
    operands = [value.name] + ([weight.name] if weight else [])
    return low.emit_like(node, "rms_norm", operands, value, eps=eps)


@_lowers("aten::layer_norm")
def _layer_norm(low: Lowering, node, input: Value, normalized_shape, weight, bias, eps, **_) -> Value:
    if len(normalized_shape) != 1:
        raise _Unsupported("layer_norm over several dims")
    value = low.ordered(input, [d for d in input.order() if d != input.rank - 1] + [input.rank - 1])
    operands = [value.name] + [each.name for each in (weight, bias) if each]
    return low.emit_like(node, "layer_norm", operands, value, eps=eps)


@_lowers("aten::embedding")
def _embedding(low: Lowering, node, weight: Value, indices: Value, **_: Any) -> Value:
    axes = indices.axes + (len(indices.order()),)
    attrs = {"group": "tp"} if weight.name in low.cuts else {}
    rows = low.emit_like(node, "embedding", [weight.name, indices.name], Value("", axes), **attrs)
    if not attrs:
        return rows
    return low.waited("all_reduce", rows, low.shapes[rows.name], reduce_op="sum")


@_lowers("aten::index")
def _index(low: Lowering, node, self_: Value, indices: list[Value | None]) -> Value:
    """One index of one dim."""
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if len(given) != 1 or len(given[0][1].order()) != 1 or given[0][1].rank != 1:
        raise _Unsupported("index with several tensors, or one of several dims")
    ((dim, index),) = given
    return low.emit_like(
        node, "index_select", [self_.name, index.name], self_, dim=_last(low, node, self_, dim)
    )


@_lowers("aten::index_select")
def _index_select(low: Lowering, node, self_: Value, dim: int, index: Value) -> Value:
    return low.emit_like(
        node, "index_select", [self_.name, index.name], self_, dim=_last(low, node, self_, dim)
    )


@_lowers("aten::gather")
def _gather(low: Lowering, node, self_: Value, dim: int, index: Value, **_: Any) -> Value:
    index = low.ordered(index, self_.order())
    return low.emit_like(
        node, "gather", [self_.name, index.name], self_, dim=_last(low, node, self_, dim)
    )


@_lowers("aten::scatter")
def _scatter(low: Lowering, node, self_: Value, dim: int, index: Value, **of: Any) -> Value:
    given = dict(zip(("self", "index", "src"), node.all_input_nodes))
    if "value" not in of or of.get("reduce"):
        raise _Unsupported("scatter of a tensor, or one that reduces")
    self_, index = low.whole(given["self"], self_), low.whole(given["index"], index)
    return low.emit_like(
        node, "scatter", [self_.name, index.name], self_, dim=dim, value=_number(of["value"])
    )


@_lowers("aten::slice_scatter")
def _slice_scatter(low: Lowering, node, self_: Value, src: Value, dim=0, start=None, end=None, step=1):
    whole, part = (low.whole(n, v) for n, v in zip(node.all_input_nodes, (self_, src)))
    attrs = {"dim": dim, "start": low.extent(start or 0), "step": step}
    if end is not None and not (isinstance(end, int) and end >= 2**62):
        attrs["end"] = low.extent(end)
    return low.emit_like(node, "slice_scatter", [whole.name, part.name], whole, **attrs)


# Matmuls.


@_lowers("aten::linear")
def _linear(low: Lowering, node, input: Value, weight: Value, bias: Value | None = None) -> Value:
    rows = low.rows(input)
    dtype = low.dtypes[rows.name]
    outs, ins = low.shapes[weight.name]
    turned = low.emit("transpose", [weight.name], dtype, [ins, outs], dim0=0, dim1=1)
    count = low.shapes[rows.name][0]
    name = low.emit("mm", [rows.name, turned], dtype, [count, outs])
    if bias is not None:
        name = low.emit("add", [name, bias.name], dtype, [count, outs])
    lead = [dim for dim in input.order() if dim != input.rank - 1]
    shape = [low.extent(node.meta["val"].shape[dim]) for dim in [*lead, input.rank - 1]]
    axes = [lead.index(dim) if dim in lead else None for dim in range(input.rank - 1)]
    return low.viewed(Value(name, (0, 1)), shape, [*axes, len(lead)])


@_lowers("aten::mm", "aten::bmm")
def _mm(low: Lowering, node, self_: Value, mat2: Value) -> Value:
    op = node.target._schema.name.removeprefix("aten::")
    operands = [low.whole(s, v) for s, v in zip(node.all_input_nodes, (self_, mat2))]
    return low.emit_like(node, op, [v.name for v in operands], operands[0])


# Ops of ops.py.


@_lowers("braid::all_reduce")
def _all_reduce(low: Lowering, node, x: Value) -> Value:
    return low.waited("all_reduce", x, low.shapes[x.name], reduce_op="sum")


@_lowers("braid::all_gather")
def _all_gather(low: Lowering, node, x: Value, ranks: int) -> Value:
    shape = [low.extent(node.meta["val"].shape[dim]) for dim in x.order()]
    return low.waited("all_gather_into_tensor", x, shape, dim=_last(low, node, x, -1))


@_lowers("braid::shard")
def _shard(low: Lowering, node, x: Value, ranks: int) -> Value:
    return low.emit_like(node, "shard", [x.name], x, dim=_last(low, node, x, -1), group="tp")


@_lowers("braid::attention")
def _attention(
    low: Lowering, node, query: Value, key: Value, value: Value, sinks, layer, scale, window, softcap, problem
) -> Value:
    if problem:
        raise _Unsupported(f"attention with {problem}")
    tensors = node.all_input_nodes[:3]
    flat = []
    for tensor, each in zip(tensors, (query, key, value)):
        shape = low.extents(tensor.meta["val"].shape)
        each = low.ordered(each, [dim for dim in (0, 2, 1, 3) if each.axes[dim] is not None])
        flat.append(low.viewed(each, [shape[2], shape[1], shape[3]], (None, 1, 0, 2)))
    caches = [
        low.caches(layer, kind, low.shapes[each.name][1:], low.dtypes[each.name])
        for kind, each in (("keys", flat[1]), ("values", flat[2]))
    ]
    operands = [*caches, flat[1].name, flat[2].name, "slots"]
    low.emit("append_kv", operands, low.dtypes[flat[1].name], [])
    operands = [flat[0].name, *caches, "page_table", "lengths", "starts"]
    if sinks is not None:
        operands.append(low.cast(sinks, low.dtypes[flat[0].name]).name)
    attrs = {"scale": scale, "window": window, "softcap": softcap}
    return low.emit_like(
        node, "paged_attention", operands, flat[0], **{k: v for k, v in attrs.items() if v}
    )


@_lowers("braid::experts")
def _experts(
    low: Lowering,
    node,
    x: Value,
    choices: Value,
    weights: Value,
    gate_up: Value,
    down: Value,
    gate_up_bias,
    down_bias,
    activation,
    interleaved,
    transposed,
) -> Value:
    if activation not in ("swiglu", "clamped_swiglu"):
        raise _Unsupported(f"experts with the activation {activation}")
    operands = [x.name, choices.name, weights.name]
    for matrix in (gate_up, down):
        name = matrix.name
        if not transposed:
            experts, outs, ins = low.shapes[name]
            shape = [experts, ins, outs]
            name = low.emit("transpose", [name], low.dtypes[name], shape, dim0=1, dim1=2)
        operands.append(name)
    if gate_up_bias is not None:
        operands += [gate_up_bias.name, down_bias.name]
    attrs = {"activation": activation, "interleaved": interleaved}
    return low.emit_like(node, "moe_experts", operands, x, **attrs)
