"""From ATen ops, as torch.export leaves them, to a graph of braid's. The modules aten_* have what
lowers each op.

A traced tensor has a batch dim of one, and its heads in front of its tokens. In the graph a `Value`
stands for it, which has the tensor's dims in the order of memory, mostly tokens first, and no dim that
has one element only because it was inserted. So transposes, squeezes and expansions cost no node until
an op needs the elements in another order.
"""

import dataclasses
import functools
import itertools
import operator
import re
from typing import Any, Callable, Iterable, Mapping, Sequence

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv

from ..errors import CannotExport
from ..graph import Extent, Graph
from .parts import Followed
from .plan import Cut
from .traced import Unsupported, arguments_of, dim_of

FLOATS = ("f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i8", "u8")


class _Dtypes(dict[torch.dtype, str]):
    """Refuses what is not there, for `CannotExport` to name."""

    def __missing__(self, dtype: torch.dtype) -> str:
        raise Unsupported(f"a tensor of {dtype}")


DTYPES = _Dtypes(
    {
        torch.float32: "f32",
        torch.float16: "f16",
        torch.bfloat16: "bf16",
        torch.int32: "i32",
        torch.int64: "i64",
        torch.int8: "i8",
        torch.uint8: "u8",
        torch.bool: "bool",
        torch.float8_e4m3fn: "f8e4m3",
        torch.float8_e5m2: "f8e5m2",
    }
)


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
        dims = (dim for dim, axis in enumerate(self.axes) if axis is not None)
        return sorted(dims, key=self.axes.__getitem__)


@dataclasses.dataclass(frozen=True)
class Complex:
    """A traced tensor of complex numbers."""

    real: Value
    imag: Value


# Stands for a tensor without elements, such as what a rotary embedding of all of a head leaves alone.
EMPTY = ""


_HANDLERS: dict[str, Callable[..., Any]] = {}
_HANDLERS_OF_COMPLEX: dict[str, Callable[..., Any]] = {}


def lowers(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers what lowers ops of these names. It gets the lowering, the traced node, and the op's
    arguments by their names in its schema, `self` as `self_`, with tensors as values."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        _HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def lowers_complex(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same for ops of these names with a complex operand."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        _HANDLERS_OF_COMPLEX.update(dict.fromkeys(names, handler))
        return handler

    return register


# Ops that have braid's name and semantics, element by element, with all their operands in front.
_ELEMENTWISE = {
    f"aten::{name}": name
    for name in (
        "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not"
        " bitwise_or bitwise_right_shift bitwise_xor copysign cos cosh eq erf erfc exp expm1 floor"
        " ge gt hypot isfinite isinf isnan le log log1p logaddexp logical_and logical_not logical_or"
        " logical_xor lt masked_fill maximum minimum mul ne neg relu round rsqrt sigmoid sign silu sin"
        " sinh sqrt sub tan tanh where"
    ).split()
} | {"aten::__lshift__": "bitwise_left_shift", "aten::__rshift__": "bitwise_right_shift"}
# What some of these are of two bools, whose sum, as a number, is no bool; others compare numbers.
_OF_BOOLS = {
    "add": "bitwise_or", "maximum": "bitwise_or", "minimum": "bitwise_and", "mul": "bitwise_and",
}  # fmt: skip
_COMPARISONS = {"ge", "gt", "le", "lt"}
# Ops of which a second one with the same operands is left out: what models repeat for each layer.
_PURE = {"cos", "mul", "permute", "sin", "to", "transpose", "view"}
# Ops that have a mask beside what they choose from.
_WITH_MASKS = {"masked_fill", "where"}
# What computes the expressions of dims that torch.export has as numbers.
_OF_EXPRESSIONS = {
    "Add": "add", "Mul": "mul", "ToFloat": "to", "FloatTrueDiv": "div", "IntTrueDiv": "div",
    "FloatPow": "pow", "FloorDiv": "floor_divide", "Mod": "remainder", "PythonMod": "remainder",
    "Max": "maximum", "Min": "minimum",
}  # fmt: skip
# Ops that go on with what else they have where a tensor has no elements.
_TAKE_EMPTY = {"aten::cat", "aten::slice_scatter"}
# Ops that make a tensor of a number.
_OF_NUMBERS = {"aten::full", "aten::ones", "aten::scalar_tensor", "aten::zeros"}
# Ops that make a number of a tensor of one element.
_OF_ELEMENTS = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.item.default}
# Ops along a dim that hand on a tensor without dims, or have its element as often as they have indices.
_HAND_ON_ONE = {
    "aten::flip", "aten::gather", "aten::index_select", "aten::roll", "aten::squeeze",
    "aten::transpose", "aten::unfold",
}  # fmt: skip
# Ops that only hand on their operand, here.
_IDENTITIES = {
    "aten::alias", "aten::clone", "aten::contiguous", "aten::detach", "aten::dropout",
    "aten::lift_fresh_copy",
}  # fmt: skip


def is_known(op: str) -> bool:
    """Whether an op of this name, such as `aten::add`, is lowered as it is."""
    return any(op in t for t in (_ELEMENTWISE, _IDENTITIES, _HANDLERS, _HANDLERS_OF_COMPLEX))


def _counted(buffer: torch.Tensor | None) -> dict[str, int] | None:
    """The attributes of an `arange` that has the buffer's numbers, where these are at most 64 integers
    at equal distances, such as the shifts of packed weights."""
    if buffer is None or buffer.dtype not in (torch.int32, torch.int64):
        return None
    numbers = buffer.flatten().tolist() if 1 < buffer.numel() <= 64 else []
    steps = {after - before for before, after in zip(numbers, numbers[1:])}
    if len(steps) != 1 or 0 in steps:
        return None
    (step,) = steps
    return {"start": numbers[0], "end": numbers[-1] + step, "step": step}


class Lowering:
    """Fills a graph with the nodes of a program. `inputs` has the names of the program's inputs that
    are no parameters, in its order, as torch.export may change them; `parameter` gives the others
    theirs, `buffers` has the values of some of these, `cuts` says which are split, and `caches`
    makes a cache of a name, of what a token has and a dtype. What lies along the symbol `apart`
    belongs to several sequences; the input `positions` has their places in these."""

    def __init__(
        self,
        graph: Graph,
        program: torch.export.ExportedProgram,
        inputs: Iterable[str],
        parameter: Callable[[str], str],
        buffers: Mapping[str, torch.Tensor],
        cuts: dict[str, Cut],
        caches: Callable[[str, list[Extent], str], str] | None = None,
        apart: str = "",
    ):
        self.graph = graph
        self.program = program
        self.cuts = cuts
        self.caches = caches
        self._apart = apart
        self.dtypes: dict[str, str] = {each["name"]: each["dtype"] for each in graph.inputs}
        self.shapes: dict[str, list[Extent]] = {each["name"]: each["shape"] for each in graph.inputs}
        self.cut: set[torch.fx.Node] = set()  # of whose results only the first ones are there
        self.places: set[str] = set()  # what says where in its sequence each token is
        signature = program.graph_signature
        self._inputs = dict(zip(signature.user_inputs, inputs))
        self._parameters = {
            name: parameter(path)
            for name, path in (signature.inputs_to_parameters | signature.inputs_to_buffers).items()
        }
        self.parts = Followed(
            {
                node: (cuts[name].dim, cuts[name].blocks)
                for node, name in self._parameters.items()
                if name in cuts
            }
        )
        self._buffers = buffers
        self._values: dict[torch.fx.Node, Any] = {}
        self._symbols: dict[sympy.Symbol, sympy.Symbol] = {}
        self._elements: dict[sympy.Symbol, Value] = {}  # the tensor whose element a symbol is
        self._module = ""
        self._names: dict[str, int] = {}
        self._taken = {*self.shapes, *self._parameters.values()}
        self._emitted: dict[tuple[Any, ...], str] = {}
        self._folded: dict[torch.fx.Node, torch.Tensor] = {}
        self._users: dict[str, list[torch.fx.Node]] = {}

    def run(self, symbols: dict[str, tuple[str, int]]) -> list[Value]:
        """Lowers what the outputs need. `symbols` has an input and a dim whose extent, less what is
        added to it, each symbol is."""
        graph = self.program.graph
        for node in graph.nodes:
            if node.op == "placeholder":
                for symbol, (name, dim) in symbols.items():
                    if self._inputs.get(node.name) == name:
                        self._define(symbol, node.meta["val"].shape[dim])
        (output,) = [node for node in graph.nodes if node.op == "output"]
        needed, outputs = _needed(output), outputs_of(self.program)
        problems: dict[str, None] = {}
        for node in graph.nodes:
            if node not in needed or node is output:
                continue
            self._values[node] = Unsupported
            try:
                handler = self._handler(node)
                if all(self._values[each] is not Unsupported for each in node.all_input_nodes):
                    self.parts.visit(node)
                    self._values[node] = handler(node)
                    if node in outputs:
                        self.parts.check_output(node)
            except Unsupported as problem:
                text = f"{_module_of(node) or 'the model'}: {self._renamed(str(problem))}"
                problems[f"{text}; {source_of(node.meta.get('stack_trace') or '')}"] = None
        if problems:
            raise CannotExport(
                f"{len(problems)} ops cannot be exported:\n  " + "\n  ".join(problems)
            )
        return [self._values[node] for node in outputs]

    def finish(self, results: dict[str, Value]) -> None:
        """Makes values outputs of these names."""
        names: dict[str, str] = {}
        for name, value in results.items():
            value = self.plain(value)
            is_node = any(node["name"] == value.name for node in self.graph.nodes)
            if not is_node or value.name in names:  # an input, a part, or an output already
                shape = self.shapes[value.name]
                self.forget()
                made = self.emit("view", [value.name], self.dtypes[value.name], shape, shape=shape)
                value = Value(made, value.axes)
            names[value.name] = name
        # A node that has the name of an output gives it up.
        taken = {node["name"] for node in self.graph.nodes} | set(results) | self._taken
        for node in self.graph.nodes:
            if node["name"] in results and node["name"] not in names:
                number = next(i for i in itertools.count(1) if f"{node['name']}_{i}" not in taken)
                names[node["name"]] = f"{node['name']}_{number}"
                taken.add(names[node["name"]])

        def renamed(value: Any) -> Any:
            if not isinstance(value, str):
                return value
            name, colon, part = value.partition(":")
            return names.get(name, name) + colon + part

        for table in (self.dtypes, self.shapes):
            table.update({renamed(name): entry for name, entry in list(table.items())})
        for node in self.graph.nodes:
            node["name"] = renamed(node["name"])
            node["inputs"] = [renamed(each) for each in node["inputs"]]
        self.graph.outputs = list(results)

    def _define(self, symbol: str, size: Any) -> None:
        expression = size.node.expr
        if expression.is_number:
            raise CannotExport(f"what PyTorch makes of an op of the model takes {symbol} for {size}")
        (free,) = expression.free_symbols
        self._symbols[free] = sympy.Symbol(symbol, integer=True, positive=True)

    def _renamed(self, text: str) -> str:
        """With the caller's names of dims in place of torch.export's."""
        names = {str(found): str(own) for found, own in self._symbols.items()}
        return re.sub(r"\bs\d+\b", lambda found: names.get(found[0], found[0]), text)

    def _handler(self, node: torch.fx.Node) -> Callable[[torch.fx.Node], Any]:
        """What lowers a node once its operands are."""
        if node.op == "placeholder":
            return self._placeholder
        if "problem" in node.meta:
            raise Unsupported(node.meta["problem"])
        value = node.meta.get("val")
        if isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self._number
        if isinstance(value, torch.Tensor) and any(n == 0 for n in value.shape if isinstance(n, int)):
            return lambda _: Value(EMPTY, (None,) * value.ndim)
        if node.target is operator.getitem:
            return self._result
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Unsupported(f"{node.op} {node.target}")
        if self._fold(node):
            return self._constant
        op = node.target._schema.name
        handler = self.handler_of(op)
        if handler is None and op not in _HANDLERS_OF_COMPLEX:
            raise Unsupported(op.removeprefix("aten::"))

        def lower(node: torch.fx.Node) -> Any:
            self.enter(_module_of(node))
            arguments = self._arguments(node)
            own = handler
            if any(map(_has_complex, arguments.values())):
                own = _HANDLERS_OF_COMPLEX.get(op)
                if own is None:
                    raise Unsupported(f"{op.removeprefix('aten::')} of complex numbers")
            if own is None:
                raise Unsupported(op.removeprefix("aten::"))
            if op not in _TAKE_EMPTY and any(map(_is_empty, arguments.values())):
                raise Unsupported(f"{op.removeprefix('aten::')} of a tensor without elements")
            given = arguments.get("self_")
            if op in _HAND_ON_ONE and isinstance(given, Value) and given.rank == 0:
                return Value(given.name, (None,) * node.meta["val"].ndim)
            return own(self, node, **arguments)

        return lower

    def handler_of(self, op: str) -> Callable[..., Any] | None:
        """What lowers ops of this name where no operand is complex."""
        if op in _ELEMENTWISE:
            return functools.partial(Lowering.elementwise, op=_ELEMENTWISE[op])
        return _identity if op in _IDENTITIES else _HANDLERS.get(op)

    def _result(self, node: torch.fx.Node) -> Any:
        """One of several, of which some are not computed."""
        result = self._values[node.args[0]][node.args[1]]
        if result is None:
            name = node.args[0].target._schema.name.removeprefix("aten::")
            raise Unsupported(f"the result {node.args[1]} of {name}, which inference has no use for")
        return result

    def _number(self, node: torch.fx.Node) -> Any:
        """A number that the program computes, perhaps the element of a tensor."""
        value = node.meta["val"]
        if node.target in _OF_ELEMENTS and isinstance(value, (torch.SymInt, torch.SymFloat)):
            self._elements[value.node.expr] = self.viewed(self._values[node.args[0]], [], ())
        return value

    def _fold(self, node: torch.fx.Node) -> bool:
        """Whether it is one number that PyTorch computes from numbers alone."""
        value, inputs = node.meta.get("val"), node.all_input_nodes
        given = [*node.args, *node.kwargs.values()]
        if (
            node.target.namespace != "aten"
            or not isinstance(value, torch.Tensor)
            or value.dtype not in DTYPES
            or any(extent != 1 for extent in value.shape if isinstance(extent, int))
            or any(isinstance(each, torch.SymInt) for each in [*value.shape, *given])
            or any(each not in self._folded for each in inputs)
            or (not inputs and node.target._schema.name not in _OF_NUMBERS)
        ):
            return False
        args, named = torch.fx.map_arg((node.args, node.kwargs), self._folded.__getitem__)
        named = {name: "cpu" if name == "device" else each for name, each in named.items()}
        self._folded[node] = node.target(*args, **named)
        return True

    def _constant(self, node: torch.fx.Node) -> Value:
        tensor = self._folded[node]
        dtype = DTYPES[tensor.dtype]
        name = self.emit("full", [], dtype, [], value=tensor.item(), dtype=dtype)
        return Value(name, (None,) * tensor.ndim)

    def _placeholder(self, node: torch.fx.Node) -> Value:
        signature = self.program.graph_signature
        tensor = node.meta["val"]
        shape, dtype = self.extents(tensor.shape), DTYPES.get(tensor.dtype)
        if dtype is None:
            own = self._parameters.get(node.name, node.name)
            hint = {
                torch.float64: "; .float() of the module makes f32 of it",
                torch.complex64: "; keep torch.view_as_real of it, and view_as_complex as it runs",
            }.get(tensor.dtype, "")
            raise Unsupported(f"{own} is {tensor.dtype}{hint}")
        name = self._inputs.get(node.name)
        if name is None:
            constants = signature.inputs_to_lifted_tensor_constants
            made = self.program.constants.get(constants.get(node.name, ""))
            if made is not None and made.device.type == "cpu" and made.numel() == 1:
                self._folded[node] = made
                return self._constant(node)
            name = self._parameters.get(node.name)
            if name is None:
                raise Unsupported(f"the constant {node.name}, which the model makes as it runs")
            counted = _counted(self._buffers.get(name))
            if counted is not None:
                elements = tensor.numel()
                name = self.emit("arange", [], dtype, [elements], **counted, dtype=dtype)
                return self.viewed(Value(name, (0,)), shape, range(len(shape)))
            if name in self._inputs.values():
                raise Unsupported(f"the parameter {name}, which has the name of an input")
            if name not in self.shapes:
                self.graph.input(name, dtype, shape, "parameter", per_rank=name in self.cuts)
        self.dtypes[name], self.shapes[name] = dtype, shape
        return Value(name, tuple(range(len(shape))))

    def run_of(self, node: torch.fx.Node) -> int | None:
        """How many elements in a row are equal in a buffer that counts 0, 0, 0, 1, 1, 1, 2, ..."""
        buffer = self._buffer_of(node)
        if buffer is None or buffer.ndim != 1 or buffer.is_floating_point() or not buffer.numel():
            return None
        run = int((buffer == buffer[0]).sum())
        counted = torch.arange(buffer.numel(), device=buffer.device) // run
        return run if torch.equal(buffer.to(counted.dtype), counted) else None

    def may_count_from_the_end(self, node: torch.fx.Node) -> bool:
        """Whether indices may be negative."""
        buffer = self._buffer_of(node)
        if buffer is not None:
            return bool((buffer < 0).any())
        if node.target == torch.ops.aten.clamp.default:
            least = arguments_of(node)["min"]
            return not isinstance(least, int) or least < 0
        return True

    def _buffer_of(self, node: torch.fx.Node) -> torch.Tensor | None:
        """The buffer that it is, perhaps in another dtype."""
        while node.op == "call_function" and node.target == torch.ops.aten._to_copy.default:
            node = node.args[0]
        return self._buffers.get(self._parameters.get(node.name, ""))

    def _arguments(self, node: torch.fx.Node) -> dict[str, Any]:
        """By the names of the schema, with tensors as values."""
        return {
            name: torch.fx.map_arg(given, self._values.__getitem__)
            for name, given in arguments_of(node).items()
        }

    # What handlers build with.

    def wholes(self, node: torch.fx.Node, **values: Value | None) -> list[Any]:
        """Operands as `whole` gives them, by their names in the op's schema; None stays so."""
        given = arguments_of(node)
        return [value and self.whole(given[name], value) for name, value in values.items()]

    def extent(self, size: Any) -> Extent:
        if not isinstance(size, torch.SymInt):
            return int(size)
        expression = size.node.expr.subs(self._symbols)
        if expression.free_symbols - set(self._symbols.values()):
            raise Unsupported("an extent or index, which is data")
        return self._affine(_divided(expression))

    def is_data(self, size: Any) -> bool:
        """Whether it depends on the elements of tensors."""
        if not isinstance(size, torch.SymInt):
            return False
        return any(each in self._elements for each in size.node.expr.free_symbols)

    def extents(self, sizes: Iterable[Any]) -> list[Extent]:
        return [self.extent(size) for size in sizes]

    def emit(
        self, op: str, inputs: Sequence[Any], dtype: str, shape: list[Extent], /, **attrs: Any
    ) -> str:
        """A node named after the module that it comes from, or an equal one that there is."""
        key = (op, dtype, repr(inputs), repr(attrs))  # 2 is not 2.0, nor 0.0 -0.0
        if op in _PURE and key in self._emitted:
            return self._emitted[key]
        stem = f"{self._module}.{op}" if self._module else op
        for number in itertools.count(self._names.get(stem, 0) + 1):
            name = stem if number == 1 else f"{stem}_{number}"
            if name not in self._taken:  # a parameter may have the name of an op
                break
        self._names[stem] = number
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

    def number_of(self, extent: Extent, dtype: str) -> Any:
        """An extent as an operand of ops on integers."""
        if isinstance(extent, int):
            return extent
        end = self.sum([extent, 1])
        name = self.emit("arange", [], dtype, [1], start=extent, end=end, dtype=dtype)
        return self.viewed(Value(name, (0,)), [], ()).name

    def scalar(self, given: Any) -> Any:
        """A number as an operand: what only a run knows is a tensor without dims, i64 or f32."""
        if isinstance(given, (torch.SymInt, torch.SymFloat)):
            given = self._computed(given.node.expr)
        return Value(given, ()) if isinstance(given, str) else given

    def _computed(self, of: sympy.Expr) -> Any:
        """A number, or the name of what computes it from dims and elements of tensors."""
        if of.is_number:
            return int(of) if of.is_integer else float(of)
        if of in self._elements:
            value = self._elements[of]
            return self.cast(value, "f32" if self.dtypes[value.name] in FLOATS else "i64").name
        if of in self._symbols:
            if self._apart:
                raise Unsupported("a number of tokens, which belong to several sequences")
            return self.number_of(str(self._symbols[of]), "i64")
        op = _OF_EXPRESSIONS.get(type(of).__name__)
        if op is None:
            raise Unsupported(f"the number {of}")
        operands = [self._computed(each) for each in of.args]
        if op == "to":
            return self.cast_name(operands[0], "f32")
        is_float = op in ("div", "pow") or any(
            isinstance(each, float) or self.dtypes.get(each) == "f32" for each in operands
        )
        dtype, kind = ("f32", float) if is_float else ("i64", int)
        operands = [
            self.cast_name(each, dtype) if isinstance(each, str) else kind(each)
            for each in operands
        ]
        return functools.reduce(lambda a, b: self.emit(op, [a, b], dtype, []), operands)

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

    def inserted(self, value: Value, dim: int) -> Value:
        """With another dim of one element in memory, behind the one in front of it."""
        before = [axis for axis in value.axes[:dim] if axis is not None]
        at = before[-1] + 1 if before else 0
        shape = self.shapes[value.name]
        axes = [axis + 1 if axis is not None and axis >= at else axis for axis in value.axes]
        return self.viewed(value, [*shape[:at], 1, *shape[at:]], [*axes[:dim], at, *axes[dim:]])

    def repeated(self, value: Value, dim: int, repeats: int) -> Value:
        """Each element along the dim, which is there in memory, so many times in a row."""
        wider = self.inserted(value, dim + 1)
        axis, shape = value.axes[dim], self.shapes[value.name]
        wide = [*shape[: axis + 1], repeats, *shape[axis + 1 :]]
        name = self.emit("expand", [wider.name], self.dtypes[wider.name], wide, shape=wide)
        joined = [*shape[:axis], self.product([shape[axis], repeats]), *shape[axis + 1 :]]
        return self.viewed(Value(name, wider.axes), joined, value.axes)

    def without(self, value: Value, gone: set[int]) -> Value:
        """The value without dims of one element."""
        kept = [dim for dim in value.order() if dim not in gone]
        shape = [self.shapes[value.name][value.axes[dim]] for dim in kept]
        axes = [kept.index(dim) if dim in kept else None for dim in range(value.rank)]
        return self.viewed(value, shape, axes)

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

    def spread(self, values: Sequence[Value], shape: Sequence[Extent]) -> list[Value]:
        """As they broadcast to this shape: a dim is not there in memory where all elements along it
        are equal."""
        values = [Value(v.name, (None,) * (len(shape) - v.rank) + v.axes) for v in values]

        def is_alike(dim: int) -> bool:
            there = [v for v in values if v.axes[dim] is not None]
            return all(self.shapes[v.name][v.axes[dim]] == 1 for v in there)

        gone = {dim for dim, extent in enumerate(shape) if extent != 1 and is_alike(dim)}
        return [self.without(value, gone & set(value.order())) for value in values]

    def aligned(
        self, values: Sequence[Value], shape: Sequence[Extent]
    ) -> tuple[list[str], tuple[int | None, ...]]:
        """The names of operands that broadcast to this shape, and the result's axes."""
        rank = len(shape)
        values = self.spread(values, shape)
        order = max((value.order() for value in values), key=len)
        for value in values:
            for dim in set(value.order()) - set(order):
                later = [i for i, other in enumerate(order) if other > dim]
                order.insert(later[0] if later else len(order), dim)
        names = []
        for value in values:
            value = self.ordered(value, [dim for dim in order if value.axes[dim] is not None])
            has = [value.axes[dim] is not None for dim in order]
            has = has[has.index(True) :] if any(has) else []
            if not all(has):
                own = iter(self.shapes[value.name])
                shape = [next(own) if there else 1 for there in has]
                value = self.viewed(value, shape, (None,) * rank)
            names.append(value.name)
        axes: list[int | None] = [None] * rank
        for axis, dim in enumerate(order):
            axes[dim] = axis
        return names, tuple(axes)

    def elementwise(self, node: torch.fx.Node, *, op: str, **arguments: Any) -> Value:
        if isinstance(node.meta["val"], (list, tuple)):
            raise Unsupported(f"{op} whose results have as many elements as the data says")
        operands = [
            arguments.pop(name)
            for name in ("condition", "self_", "mask", "other", "exponent", "value")
            if name in arguments
        ]
        if (alpha := arguments.pop("alpha", 1)) != 1:
            operands[1] = self.scaled(node, self.scalar(operands[1]), alpha)
        if any(isinstance(each, (torch.SymInt, torch.SymFloat)) for each in operands):
            return self._with_lengths(node, op, operands, **arguments)
        attrs = {name: value for name, value in arguments.items() if value is not None}
        dtype = DTYPES[node.meta["val"].dtype]
        if attrs and (op != "div" or dtype in FLOATS):
            raise Unsupported(f"{op} with {', '.join(attrs)} in {dtype}")
        operands = self.promoted(operands)
        tensors = [v for v in operands if isinstance(v, Value)]
        if dtype == "bool":
            op = _OF_BOOLS.get(op, op)
        if op in _COMPARISONS and all(self.dtypes[v.name] == "bool" for v in tensors):
            operands = [self.cast(v, "i64") if isinstance(v, Value) else int(v) for v in operands]
            tensors = [v for v in operands if isinstance(v, Value)]
        if (op in ("floor", "round") and dtype in INTEGERS) or (op == "sign" and dtype == "bool"):
            return operands[0]
        shape = self.extents(node.meta["val"].shape)
        # Of floats 0 is none to add: -0.0 + 0 is 0.0.
        identity = {"mul": 1, "div": 1, "sub": 0, "add": None if dtype in FLOATS else 0}.get(op)
        if len(operands) == 2 and operands[1] == identity and not isinstance(operands[1], Value):
            if self.dtypes[operands[0].name] == dtype:
                return self.spread(operands[:1], shape)[0]
        names, axes = self.aligned(tensors, shape)
        given = iter(names)
        kinds = [dtype, *(self.dtypes[name] for name in names)]
        own = next((kind for kind in kinds if kind != "bool"), dtype)  # that of what is compared
        inputs = [next(given) if isinstance(v, Value) else number(v, own) for v in operands]
        return self.emit_like(node, op, inputs, Value("", axes), **attrs)

    def _with_lengths(
        self, node: torch.fx.Node, op: str, operands: list[Any], **given: Any
    ) -> Value:
        """Of numbers that only a run knows, too. Beside narrow floats they are not rounded, but the
        result is, as in PyTorch."""
        result = DTYPES[node.meta["val"].dtype]
        attrs = {name: value for name, value in given.items() if value is not None}
        if attrs and result in FLOATS:
            raise Unsupported(f"{op} with {', '.join(attrs)} in {result}")
        operands = list(map(self.scalar, operands))
        dtypes = [self.dtypes[v.name] for v in operands if isinstance(v, Value)]
        is_float = result in FLOATS or any(dtype in FLOATS for dtype in dtypes)
        wide = "f32" if is_float else result if result in INTEGERS else "i64"

        def widened(each: Any) -> Any:
            is_value = isinstance(each, Value)
            if not is_value or (op in _WITH_MASKS and self.dtypes[each.name] == "bool"):
                return each
            return self.cast(each, wide)

        operands = list(map(widened, operands))
        whole = self.extents(node.meta["val"].shape)
        names, axes = self.aligned([v for v in operands if isinstance(v, Value)], whole)
        found = iter(names)
        inputs = [next(found) if isinstance(v, Value) else number(v) for v in operands]
        shape = [whole[dim] for dim in Value("", axes).order()]
        made = self.emit(op, inputs, "bool" if result == "bool" else wide, shape, **attrs)
        return self.cast(Value(made, axes), result)

    def promoted(self, operands: list[Any]) -> list[Any]:
        """As ATen promotes: beside tensors with dims of floats, or else of integers, the dtype of
        one without has no say. In the graph one whose elements are equal may lack its dims."""
        for kind in (FLOATS, INTEGERS):
            own = [v for v in operands if isinstance(v, Value) and self.dtypes[v.name] in kind]
            wide = {self.dtypes[v.name] for v in own if v.rank > 0}
            if wide:
                mixed = {("bf16", "f16"): "f32", ("i8", "u8"): "i32"}  # what holds both
                dtype = mixed.get(tuple(sorted(wide)), min(wide, key=kind.index))
                bare = dtype not in wide or any(not self.shapes[v.name] for v in own)
                return [
                    self.cast(v, dtype) if v in own and (bare or v.rank == 0) else v
                    for v in operands
                ]
            if own:
                break
        return operands

    def scaled(self, node: torch.fx.Node, operand: Any, by: float) -> Any:
        """In the dtype of the result, which a product in a narrower one may not fit."""
        if not isinstance(operand, Value):
            return operand * by
        dtype = DTYPES[node.meta["val"].dtype]
        name = self.cast_name(operand.name, dtype)
        made = self.emit("mul", [name, number(by, dtype)], dtype, self.shapes[name])
        return Value(made, operand.axes)

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

    def name_of_cache(self, node: torch.fx.Node, layer: int, kind: str) -> str:
        """Of a layer that a model goes through several times each has its own."""
        users = self._users.setdefault(f"l{layer}", [])
        if node not in users:
            users.append(node)
        time = users.index(node)
        return f"l{layer}_{kind}" if time == 0 else f"l{layer}_{time + 1}_{kind}"

    def cached_rows(self, node: torch.fx.Node, rows: Value) -> str:
        """The cache of what a traced node keeps of each token, [pages, page size, ...], once it has the
        rows of this run, [T, ...]."""
        number = self._users.setdefault("rows", [])
        number.append(node)
        dtype, shape = self.dtypes[rows.name], self.shapes[rows.name]
        cache = self.caches(f"rows{len(number) - 1}", shape[1:], dtype)
        size = self.shapes[cache][1]
        places = [
            self.emit(op, ["slots", size], "i32", shape[:1]) for op in ("floor_divide", "remainder")
        ]
        return self.emit("index_put_", [cache, *places, rows.name], dtype, self.shapes[cache])

    def waited(self, op: str, value: Value, shape: list[Extent], /, **attrs: Any) -> Value:
        """A collective and its wait."""
        dtype = self.dtypes[value.name]
        handle = self.emit(op, [value.name], dtype, shape, group="tp", **attrs)
        return Value(self.emit("wait_tensor", [handle], dtype, shape), value.axes)

    def is_apart(self, extent: Extent) -> bool:
        """Whether what lies along a dim belongs to several sequences, and earlier ones are in the
        cache alone."""
        return bool(self._apart) and isinstance(extent, str) and self._apart in extent

    def check_apart(self, node: torch.fx.Node, value: Value, dim: int) -> None:
        """Refuses what would mix tokens of several sequences, and a tensor without the dim."""
        op = node.target._schema.name.removeprefix("aten::")
        if value.rank == 0:
            raise Unsupported(f"{op} of a tensor without dims")
        axis = value.axes[dim_of(dim, value.rank)]
        if axis is not None and self.is_apart(self.shapes[value.name][axis]):
            raise Unsupported(f"{op} along the tokens, which belong to several sequences")

    def last_behind(self, node: torch.fx.Node, value: Value) -> Value:
        """With the tensor's last dim, also one that was only inserted or expanded, behind all
        others: `node` is the traced tensor."""
        last = value.rank - 1
        if value.axes[last] is None:
            value = self.whole(node, value)
        return self.ordered(value, [*(dim for dim in value.order() if dim != last), last])

    def rows(self, value: Value) -> Value:
        """As a matrix, whose columns are the last dim, which is behind all others."""
        shape = self.shapes[value.name]
        if len(shape) == 2:
            return Value(value.name, (0, 1))
        return self.viewed(value, [self.product(shape[:-1]), shape[-1]], (0, 1))

    def sum(self, extents: Sequence[Extent]) -> Extent:
        names = {name: sympy.Symbol(name) for name in self.graph.symbols}
        return self._affine(sum((sympy.sympify(each, names) for each in extents), sympy.Integer(0)))

    def product(self, extents: Sequence[Extent]) -> Extent:
        names = {name: sympy.Symbol(name) for name in self.graph.symbols}
        result = sympy.Integer(1)
        for extent in extents:
            result *= sympy.sympify(extent, names)
        return self._affine(sympy.expand(result))

    def is_product(self, extents: Sequence[Extent]) -> bool:
        """Whether no dim can have all of these."""
        return sum(isinstance(each, str) for each in extents) > 1

    def _affine(self, expression: sympy.Expr) -> Extent:
        """As the text of an extent."""
        if expression.is_number:
            return int(expression)
        text = str(expression).replace(" ", "")
        if is_product(expression):
            raise Unsupported(f"the extent {text}, a product of symbols")
        if re.search(r"\w\(", text):  # a function, such as what rounds
            raise Unsupported(f"the extent {text}, which is not affine")
        return text


def outputs_of(program: torch.export.ExportedProgram) -> list[torch.fx.Node]:
    """The outputs that are tensors."""
    (output,) = [node for node in program.graph.nodes if node.op == "output"]
    return [each for each in output.args[0] if isinstance(each, torch.fx.Node)]


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


def source_of(trace: str) -> str:
    """The line of the model, not of torch or this package."""
    frames = re.findall(r'File "([^"]+)", line (\d+), in .*\n\s*(.*)', trace)
    for file, line, text in reversed(frames):
        if "/site-packages/torch/" not in file and "/braid/export/" not in file:
            return f"{file}:{line}: {text}"
    return "no source line is known"


def _divided(extent: sympy.Expr) -> sympy.Expr:
    """With the quotients that divide, such as (B**2)//B."""

    def quotient(whole: sympy.Expr) -> sympy.Expr:
        exact = sympy.cancel(whole.args[0] / whole.args[1])
        return exact if exact.is_integer else whole

    return extent.replace(lambda part: isinstance(part, FloorDiv), quotient)


def _has_complex(argument: Any) -> bool:
    if isinstance(argument, (list, tuple)):
        return any(isinstance(each, Complex) for each in argument)
    return isinstance(argument, Complex)


def _is_empty(given: Any) -> bool:
    return isinstance(given, Value) and given.name == EMPTY


def is_product(extent: sympy.Expr) -> bool:
    """Whether a term of it is a product of symbols."""
    for term in sympy.Add.make_args(sympy.expand(extent)):
        powers = term.as_powers_dict().items()
        if sum(power for of, power in powers if of.free_symbols) > 1:
            return True
    return False


def number(value: Any, dtype: str = "") -> Any:
    """A number that a graph may have as an operand. Beside integers of this dtype it has the last bits of
    one that they do not hold, as in PyTorch."""
    if not isinstance(value, (int, float, bool)):
        raise Unsupported(f"the operand {value}")
    if dtype not in INTEGERS or not isinstance(value, int) or isinstance(value, bool):
        return value
    count = 2 ** int(dtype[1:])
    below = 0 if dtype == "u8" else count // 2
    return (value + below) % count - below


def broadcast(a: list[Extent], b: list[Extent]) -> list[Extent]:
    """The extents of what has these and those."""
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    return [y if x == 1 else x for x, y in zip(a, b)]


def _identity(low: Lowering, node: torch.fx.Node, **arguments: Any) -> Any:
    return next(iter(arguments.values()))
