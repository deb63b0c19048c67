"""How ATen's ops on rows, matmuls and the ops of ops.py are lowered."""

import functools
import math
from typing import Any

import torch

from ..graph import Extent
from .aten_updates import expanded, flat_place, from_the_front, indexed_dims
from .lower import (
    DTYPES,
    FLOATS,
    Lowering,
    Unsupported,
    Value,
    arguments_of,
    broadcast,
    dim_of,
    lowers,
)


@lowers(
    "aten::mean", "aten::sum", "aten::amax", "aten::amin", "aten::prod", "aten::any", "aten::all"
)
def _reduction(
    low: Lowering, node, self_: Value, dim: Any = None, keepdim=False, dtype=None
) -> Value:
    if dtype is not None:
        self_ = low.cast(self_, DTYPES[dtype])
    return _reduced(low, node, node.target._schema.name.removeprefix("aten::"), self_, dim, keepdim)


def _reduced(
    low: Lowering, node, op: str, self_: Value, dim: Any, keepdim: bool, part: int | None = None
) -> Value:
    """`part` says which of the traced op's results it is, where there are several."""
    tensor = node.meta["val"] if part is None else node.meta["val"][part]
    if low.dtypes[self_.name] == "bool":  # which has no order in a graph
        op = {"amax": "any", "amin": "all"}.get(op, op)
        if op in ("argmax", "argmin", "prod"):
            self_ = low.cast(self_, "u8" if op != "prod" else "i64")
    is_of_all = dim is None or dim == [] or self_.rank == 0
    dims = range(self_.rank) if is_of_all else [dim] if isinstance(dim, int) else dim
    dims = [dim_of(d, self_.rank) for d in dims]
    for each in dims:
        low.check_apart(node, self_, each)
    if any(self_.axes[d] is None for d in dims):
        self_ = low.whole(node.all_input_nodes[0], self_)
    axes = [self_.axes[d] for d in dims]
    kept = [d for d in self_.order() if d not in dims]
    shape = [low.shapes[self_.name][self_.axes[d]] for d in kept]
    dtype = DTYPES[tensor.dtype]
    name = low.emit(op, [self_.name], _dtype_of(low, op, self_, dtype), shape, dim=sorted(axes))
    name = low.cast_name(name, dtype)
    result = tuple(kept.index(d) if d in kept else None for d in range(self_.rank))
    return Value(
        name, result if keepdim else tuple(a for d, a in enumerate(result) if d not in dims)
    )


def _dtype_of(low: Lowering, op: str, self_: Value, dtype: str) -> str:
    """Sums of integers are i64, also where the traced op makes them narrow again."""
    is_wide = op in ("sum", "prod", "cumsum") and low.dtypes[self_.name] not in FLOATS
    return "i64" if is_wide else dtype


def _without(low: Lowering, value: Value, gone: set[int]) -> Value:
    """Without these dims, which have one element."""
    value = low.without(value, gone)
    return Value(value.name, tuple(a for d, a in enumerate(value.axes) if d not in gone))


def _along(low: Lowering, node, value: Value, dim: int) -> tuple[Value, int]:
    """The first operand, and its axis for a dim along which rows lie."""
    low.check_apart(node, value, dim)
    dim = dim_of(dim, value.rank)
    if value.axes[dim] is None:
        value = low.whole(node.all_input_nodes[0], value)
    return value, value.axes[dim]


@lowers("aten::argmax", "aten::argmin")
def _argmax(low: Lowering, node, self_: Value, dim: Any = None, keepdim=False) -> Value:
    if dim is None:  # the place among all elements, in the tensor's order
        whole = low.whole(node.all_input_nodes[0], self_)
        extents = low.shapes[whole.name]
        self_, dim = low.viewed(whole, [low.product(extents)], (0,)), 0
        if keepdim:
            raise Unsupported("argmax of all elements with keepdim")
    return _reduction(low, node, self_, dim, keepdim)


@lowers("aten::max", "aten::min")
def _max(
    low: Lowering, node, self_: Value, dim: Any = None, keepdim=False, other: Value | None = None
) -> Any:
    """Of all elements; along a dim, with where it is; or of two tensors."""
    name = node.target._schema.name.removeprefix("aten::")
    if other is not None:
        return low.elementwise(node, op=f"{name}imum", self_=self_, other=other)
    if dim is None:
        return _reduced(low, node, f"a{name}", self_, None, False)
    ops = (f"a{name}", f"arg{name}")
    return [_reduced(low, node, op, self_, dim, keepdim, i) for i, op in enumerate(ops)]


@lowers("aten::var", "aten::var_mean")
def _var(low: Lowering, node, self_: Value, dim: Any = None, keepdim=False, **of: Any) -> Any:
    """The mean of the squares of what the mean leaves, times n / (n - correction)."""
    correction = of.get("correction", 1 if of.get("unbiased", True) else 0)
    whole = low.cast(low.whole(node.all_input_nodes[0], self_), "f32")
    is_of_all = self_.rank == 0 or dim is None or dim == []
    dims = range(self_.rank) if is_of_all else [dim] if isinstance(dim, int) else dim
    axes = sorted(dim_of(d, self_.rank) for d in dims)
    for each in axes:
        low.check_apart(node, whole, each)
    shape = [1 if d in axes else n for d, n in enumerate(low.shapes[whole.name])]
    of_all = {"dim": axes, "keepdim": True}
    mean = low.emit("mean", [whole.name], "f32", shape, **of_all)
    rest = low.emit("sub", [whole.name, mean], "f32", low.shapes[whole.name])
    squares = low.emit("mul", [rest, rest], "f32", low.shapes[whole.name])
    total = low.emit("sum", [squares], "f32", shape, **of_all)
    least = _count_less(low, [low.shapes[whole.name][d] for d in axes], correction)
    made = low.emit("div", [total, least], "f32", shape)
    results = [
        low.cast(Value(each, whole.axes), low.dtypes[self_.name]) for each in (made, mean)
    ]
    if not keepdim:
        results = [_without(low, each, set(axes)) for each in results]
    return results if isinstance(node.meta["val"], (list, tuple)) else results[0]


def _count_less(low: Lowering, extents: list[Extent], correction: float | None) -> Any:
    """The number of elements of these extents, less a correction, but 0 at least, in f32."""
    less = 1 if correction is None else correction
    count, known = None, 1
    for extent in extents:
        if isinstance(extent, int):
            known *= extent
        else:
            name = low.number_of(extent, "i64")
            count = name if count is None else low.emit("mul", [count, name], "i64", [])
    if count is None:
        return float(max(known - less, 0))
    if known != 1:
        count = low.emit("mul", [count, known], "i64", [])
    count = low.emit("sub", [low.cast_name(count, "f32"), float(less)], "f32", [])
    return low.emit("clamp", [count], "f32", [], min=0.0)


@lowers("aten::softmax", "aten::_softmax", "aten::log_softmax", "aten::_log_softmax")
def _softmax(low: Lowering, node, self_: Value, dim: int, dtype=None, half_to_float=False) -> Value:
    op = "log_softmax" if "log" in node.target._schema.name else "softmax"
    self_, axis = _along(low, node, low.cast(self_, DTYPES[node.meta["val"].dtype]), dim)
    return low.emit_like(node, op, [self_.name], self_, dim=axis)


@lowers("aten::cumsum")
def _cumsum(low: Lowering, node, self_: Value, dim: int, dtype=None) -> Value:
    if dtype is not None:
        self_ = low.cast(self_, DTYPES[dtype])
    self_, axis = _along(low, node, self_, dim)
    dtype, shape = DTYPES[node.meta["val"].dtype], low.shapes[self_.name]
    made = _dtype_of(low, "cumsum", self_, dtype)
    name = low.emit("cumsum", [self_.name], made, shape, dim=axis)
    return low.cast(Value(name, self_.axes), dtype)


@lowers("aten::topk", "aten::sort")
def _topk(low: Lowering, node, self_: Value, dim: int = -1, **attrs: Any) -> list[Value]:
    op = node.target._schema.name.removeprefix("aten::")
    attrs.pop("stable", None)
    is_bool = low.dtypes[self_.name] == "bool"  # which has no order in a graph
    self_, axis = _along(low, node, low.cast(self_, "u8") if is_bool else self_, dim)
    shape = [low.extent(node.meta["val"][0].shape[d]) for d in self_.order()]
    name = low.emit(op, [self_.name], low.dtypes[self_.name], shape, dim=axis, **attrs)
    for i, dtype in enumerate((low.dtypes[self_.name], "i64")):
        low.dtypes[f"{name}:{i}"], low.shapes[f"{name}:{i}"] = dtype, shape
    values, places = (Value(f"{name}:{i}", self_.axes) for i in range(2))
    return [low.cast(values, "bool") if is_bool else values, places]


@lowers("aten::rms_norm")
def _rms_norm(low: Lowering, node, input: Value, normalized_shape, weight=None, eps=None) -> Value:
    if eps is None:
        eps = torch.finfo(torch.float32).eps  # of narrow floats, too: PyTorch computes in f32
    (weight,) = low.wholes(node, weight=weight)
    weights = [weight] if weight else []
    return _normed(low, node, "rms_norm", input, weights, eps, len(normalized_shape))


@lowers("aten::layer_norm")
def _layer_norm(
    low: Lowering, node, input: Value, normalized_shape, weight, bias, eps, **_
) -> Value:
    wholes = low.wholes(node, weight=weight, bias=bias)
    operands = [each for each in wholes if each is not None]
    if weight is None and bias is not None:  # which is the third operand
        dtype, shape = low.dtypes[bias.name], low.shapes[operands[0].name]
        ones = low.emit("full", [], dtype, shape, value=1, dtype=dtype, shape=shape)
        operands.insert(0, Value(ones, operands[0].axes))
    return _normed(low, node, "layer_norm", input, operands, eps, len(normalized_shape))


def _normed(
    low: Lowering, node, op: str, input: Value, weights: list[Value], eps: float, dims: int
) -> Value:
    """Over the last dims. Weights that are wider than what they weight are not rounded; the result
    is."""
    if dims > 1:
        whole = low.whole(node.args[0], input)
        shape = low.shapes[whole.name]
        row = low.product(shape[-dims:])
        x = low.viewed(whole, [*shape[:-dims], row], range(len(shape) - dims + 1))
        weights = [low.viewed(each, [row], (0,)) for each in weights]
        rows = _rows_normed(low, node, op, x, weights, eps)
        return low.viewed(rows, shape, whole.axes)
    return _rows_normed(low, node, op, low.last_behind(node.args[0], input), weights, eps)


def _rows_normed(low: Lowering, node, op: str, x: Value, weights: list[Value], eps: float) -> Value:
    dtype = DTYPES[node.meta["val"].dtype]
    operands = [x, *weights]
    made = dtype if all(low.dtypes[each.name] == dtype for each in operands) else "f32"
    names = [low.cast(each, made).name for each in operands]
    result = Value(low.emit(op, names, made, low.shapes[names[0]], eps=eps), x.axes)
    return low.cast(result, dtype)


@lowers("aten::native_group_norm")
def _group_norm(
    low: Lowering, node, input: Value, weight: Value | None, bias: Value | None, group, eps, **_
) -> list[Any]:
    """A layer norm of each group's channels and places, then weights of the channels. What narrow
    floats give is computed in f32 and rounded once."""
    whole = low.cast(low.whole(node.args[0], input), "f32")
    weight, bias = low.wholes(node, weight=weight, bias=bias)
    shape = low.shapes[whole.name]
    row = low.product([shape[1] // group, *shape[2:]])
    rows = low.viewed(whole, [shape[0], group, row], (0, 1, 2))
    name = low.emit("layer_norm", [rows.name], "f32", [shape[0], group, row], eps=eps)
    normed = low.viewed(Value(name, (0, 1, 2)), shape, whole.axes)
    made = _of_channels(low, normed, weight, bias)
    return [low.cast(made, low.dtypes[input.name]), None, None]


@lowers("aten::_native_batch_norm_legit_no_training")
def _batch_norm(
    low: Lowering,
    node,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    eps: float,
    **_: Any,
) -> list[Any]:
    """With the mean and variance of each channel that the module keeps, in f32 as well."""
    stats = low.wholes(node, running_mean=running_mean, running_var=running_var)
    mean, var = (low.cast(each, "f32").name for each in stats)
    shape = low.shapes[var]
    var = low.emit("add", [var, eps], "f32", shape)
    scale = Value(low.emit("rsqrt", [var], "f32", shape), (0,))
    minus = Value(low.emit("neg", [mean], "f32", shape), (0,))
    whole = low.cast(low.whole(node.args[0], input), "f32")
    weight, bias = low.wholes(node, weight=weight, bias=bias)
    made = _of_channels(low, _of_channels(low, whole, None, minus), scale, None)
    made = _of_channels(low, made, weight, bias)
    return [low.cast(made, low.dtypes[input.name]), None, None]


def _of_channels(low: Lowering, x: Value, weight: Value | None, bias: Value | None) -> Value:
    """An f32 tensor multiplied by, and added to, a number for each channel, which is dim 1."""
    shape = low.shapes[x.name]
    for op, each in (("mul", weight), ("add", bias)):
        if each is not None:
            tall = [low.shapes[each.name][0], *[1] * (len(shape) - 2)]
            column = low.viewed(low.cast(each, "f32"), tall, ()).name
            x = Value(low.emit(op, [x.name, column], "f32", shape), x.axes)
    return x


@lowers("aten::embedding")
def _embedding(low: Lowering, node, weight: Value, indices: Value, **_: Any) -> Value:
    (weight,) = low.wholes(node, weight=weight)
    axes = indices.axes + (len(indices.order()),)
    cut = low.cuts.get(weight.name)
    attrs = {"group": "tp"} if cut is not None and cut.dim == 0 else {}
    rows = low.emit_like(node, "embedding", [weight.name, indices.name], Value("", axes), **attrs)
    if not attrs:
        return rows
    return low.waited("all_reduce", rows, low.shapes[rows.name], reduce_op="sum")


@lowers("aten::_embedding_bag", "aten::_embedding_bag_forward_only")
def _embedding_bag(
    low: Lowering, node, weight: Value, indices: Value, offsets: Value, mode: int = 0,
    per_sample_weights: Value | None = None, include_last_offset: bool = False,
    padding_idx: int = -1, **_: Any,
) -> list[Any]:  # fmt: skip
    """Of bags that have the same number of rows, which is how those of two dims arrive."""
    begins, bags = node.args[2], low.extent(node.meta["val"][0].shape[0])
    rows = low.extent(node.args[1].meta["val"].shape[0])
    of = arguments_of(begins) if begins.target in _ARANGES else {}
    is_even = bool(of) and of.get("start", 0) == 0 and not include_last_offset
    size = of.get("step", 1)
    if not is_even or low.product([bags, size]) != rows or padding_idx >= 0:
        raise Unsupported("embedding_bag with offsets or padding_idx")
    weight, indices = low.wholes(node, weight=weight, indices=indices)
    width, dtype = low.shapes[weight.name][1], low.dtypes[weight.name]
    indices = low.viewed(indices, [bags, size], (0, 1))
    shape = [bags, size, width]
    found = low.emit("embedding", [weight.name, indices.name], dtype, shape)
    if per_sample_weights is not None:
        (scales,) = low.wholes(node, per_sample_weights=per_sample_weights)
        scales = low.viewed(scales, [bags, size, 1], (0, 1, 2)).name
        found = low.emit("mul", [found, scales], dtype, shape)
    made = low.emit(("sum", "mean", "amax")[mode], [found], dtype, [bags, width], dim=[1])
    return [Value(made, (0, 1)), None, None, None]


_ARANGES = {
    torch.ops.aten.arange.default, torch.ops.aten.arange.start, torch.ops.aten.arange.start_step,
}  # fmt: skip


@lowers("aten::index")
def _index(low: Lowering, node, self_: Value, indices: list[Value | None]) -> Value:
    """One index of one dim, or rows of a table."""
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if len(given) == 1:
        ((dim, index),) = given
        if index.rank == 1:
            return _selected(low, node, self_, dim, index, node.args[1][dim])
        if dim == 0 and self_.axes == (0, 1):
            index = from_the_front(low, node.args[1][0], index, low.shapes[self_.name][0])
            axes = (*index.axes, len(index.order()))
            return low.emit_like(node, "embedding", [self_.name, index.name], Value("", axes))
    return _index_places(low, node, self_, dict(given))


def _index_places(low: Lowering, node, self_: Value, given: dict[int, Value]) -> Value:
    """Indices of some dims, which say together what is taken."""
    for dim, index in given.items():
        if low.dtypes[index.name] not in ("i32", "i64"):
            raise Unsupported("index with a mask")
        low.check_apart(node, self_, dim)
    front, at = indexed_dims(self_.rank, list(given))
    whole = low.ordered(low.whole(node.args[0], self_), front)
    every = low.shapes[whole.name]
    extents, rest = every[: len(given)], every[len(given) :]
    rank = node.meta["val"].ndim - len(rest)
    indices = [
        from_the_front(low, node.args[1][dim], low.cast(index, "i64"), extent)
        for (dim, index), extent in zip(given.items(), extents)
    ]
    made = low.extents(node.meta["val"].shape[at : at + rank])
    names, axes = low.aligned(indices, made)
    shape = [made[dim] for dim in Value("", axes).order()]
    tail = [len(shape) + i for i in range(len(rest))]
    axes = [*tail[:at], *axes, *tail[at:]]
    if any(map(low.is_product, (extents, shape))):
        return Value(_one_by_one(low, whole.name, names, shape, rest), tuple(axes))
    place = flat_place(low, names, extents, shape, -1)
    table = low.viewed(whole, [low.product(extents), *rest], ()).name
    rows = [low.product(shape), *rest]
    found = low.emit("index_select", [table, place], low.dtypes[table], rows, dim=0)
    return low.viewed(Value(found, ()), [*shape, *rest], axes)


def _one_by_one(
    low: Lowering, x: str, indices: list[str], shape: list[Extent], rest: list[Extent]
) -> str:
    """Where no dim can be all places: those that the first index says, of these what the second says."""
    every, dtype = low.shapes[x], low.dtypes[x]
    for i, index in enumerate(indices):
        behind = low.product(every[i + 1 :])
        index = expanded(low, index, shape)
        if i == 0:
            flat = [every[0], behind]
            x = low.viewed(Value(x, ()), flat, ()).name
            x = low.emit("embedding", [x, index], dtype, [*shape, behind])
            continue
        tall, one = [*shape, every[i], behind], [*shape, 1, behind]
        x = low.viewed(Value(x, ()), tall, ()).name
        index = low.viewed(Value(index, ()), [*shape, 1, 1], ()).name
        x = low.emit("gather", [x, expanded(low, index, one)], dtype, one, dim=len(shape))
    return low.viewed(Value(x, ()), [*shape, *rest], ()).name


@lowers("aten::index_select")
def _index_select(low: Lowering, node, self_: Value, dim: int, index: Value) -> Value:
    return _selected(low, node, self_, dim, index, node.args[2])


def _selected(low: Lowering, node, self_: Value, dim: int, index: Value, given) -> Value:
    """`given` is the traced node of the index."""
    dim = dim_of(dim, self_.rank)
    axis = self_.axes[dim]  # the last tokens are taken so
    if low.dtypes[index.name] not in ("i32", "i64"):
        raise Unsupported("index with a mask")
    if axis is None:  # all elements along it are equal
        return self_
    index = low.whole(given, index)
    if index.rank == 0:
        index = low.viewed(index, [1], (0,))
    run = low.run_of(given)
    if run is not None and low.shapes[self_.name][axis] * run == low.shapes[index.name][0]:
        return low.repeated(self_, dim, run)  # the rows of groups
    if index.name in low.places:
        low.check_apart(node, self_, dim)
    if node.target._schema.name == "aten::index":
        index = from_the_front(low, given, index, low.shapes[self_.name][axis])
    return low.emit_like(node, "index_select", [self_.name, index.name], self_, dim=axis)


# Matmuls.


@lowers("aten::linear")
def _linear(low: Lowering, node, input: Value, weight: Value, bias: Value | None = None) -> Value:
    dtype = low.dtypes[input.name]
    weight, bias = low.wholes(node, weight=weight, bias=bias)
    if weight.rank == 1 or dtype not in FLOATS:  # a vector, or what no mm takes
        columns = low.plain(Value(weight.name, weight.axes[::-1]))
        made = _product(low, low.whole(node.args[0], input), columns)
        if bias is None:
            return made
        return low.elementwise(node, op="add", self_=made, other=bias)
    input = low.last_behind(node.args[0], input)
    outs, ins = low.shapes[weight.name]
    turned = low.emit("transpose", [weight.name], dtype, [ins, outs], dim0=0, dim1=1)
    lead = [dim for dim in input.order() if dim != input.rank - 1]
    symbols = [dim for dim in lead if isinstance(low.shapes[input.name][input.axes[dim]], str)]
    if len(symbols) > 1:  # their product would be no extent
        return _batched(low, node, input, turned, bias)
    rows = low.rows(input)
    count = low.shapes[rows.name][0]
    name = low.emit("mm", [rows.name, turned], dtype, [count, outs])
    if bias is not None:
        name = low.emit("add", [name, bias.name], dtype, [count, outs])
    shape = [low.extent(node.meta["val"].shape[dim]) for dim in [*lead, input.rank - 1]]
    axes = [lead.index(dim) if dim in lead else None for dim in range(input.rank - 1)]
    return low.viewed(Value(name, (0, 1)), shape, [*axes, len(lead)])


def _batched(low: Lowering, node, input: Value, turned: str, bias: Value | None) -> Value:
    """A matmul whose rows have several dims."""
    result = low.emit_like(node, "matmul", [input.name, turned], input)
    if bias is None:
        return result
    return low.emit_like(node, "add", [result.name, bias.name], result)


@lowers("aten::mm", "aten::bmm")
def _mm(low: Lowering, node, self_: Value, mat2: Value) -> Value:
    op = node.target._schema.name.removeprefix("aten::")
    low.check_apart(node, self_, -1)
    operands = low.wholes(node, self_=self_, mat2=mat2)
    if low.dtypes[self_.name] not in FLOATS:
        return _sums_of_integers(low, *operands)
    return low.emit_like(node, op, [v.name for v in operands], operands[0])


def _sums_of_integers(low: Lowering, left: Value, right: Value) -> Value:
    """A product of matrices, or of batches of these, in their own dtype, which no matmul has."""
    dtype, a, b = low.dtypes[left.name], low.shapes[left.name], low.shapes[right.name]
    batch = broadcast(a[:-2], b[:-2])
    tall = low.viewed(left, [*a, 1], ()).name
    wide = low.viewed(right, [*b[:-2], 1, *b[-2:]], ()).name
    each = low.emit("mul", [tall, wide], dtype, [*batch, *a[-2:], b[-1]])
    shape = [*batch, a[-2], b[-1]]
    total = low.emit("sum", [each], "i64", shape, dim=[len(shape) - 1])
    return Value(low.cast_name(total, dtype), tuple(range(len(shape))))


_MOST_EXACT = 1024  # products of two numbers of 8 bits, whose sum f32 holds


@lowers("aten::_int_mm")
def _int_mm(low: Lowering, node, self_: Value, mat2: Value) -> Value:
    """bf16 holds the operands, and f32 sums of parts of the rows, which are added as integers."""
    low.check_apart(node, self_, -1)
    left, right = (low.cast(each, "bf16").name for each in low.wholes(node, self_=self_, mat2=mat2))
    (rows, inner), (_, columns) = low.shapes[left], low.shapes[right]
    if not isinstance(inner, int):
        raise Unsupported("_int_mm along a symbol")
    total = None
    for start in range(0, inner, _MOST_EXACT):
        size = min(_MOST_EXACT, inner - start)
        cut = {"start": start, "end": start + size}
        a, b = left, right
        if size != inner:
            a = low.emit("slice", [left], "bf16", [rows, size], dim=1, **cut)
            b = low.emit("slice", [right], "bf16", [size, columns], dim=0, **cut)
        part = low.emit("mm", [a, b], "f32", [rows, columns], out_dtype="f32")
        part = low.cast_name(part, "i32")
        total = part if total is None else low.emit("add", [total, part], "i32", [rows, columns])
    return Value(total, (0, 1))


@lowers("aten::_cdist_forward")
def _cdist(low: Lowering, node, x1: Value, x2: Value, p: float, compute_mode: Any = None) -> Value:
    """The norm of the difference of each two rows."""
    left, right = low.wholes(node, x1=x1, x2=x2)
    for each in (left, right):
        low.check_apart(node, each, -1)
    dtype = DTYPES[node.meta["val"].dtype]
    a, b = low.shapes[left.name], low.shapes[right.name]
    tall = low.viewed(left, [*a[:-1], 1, a[-1]], ()).name
    wide = low.viewed(right, [*b[:-2], 1, *b[-2:]], ()).name
    made = low.extents(node.meta["val"].shape)
    shape = [*made, a[-1]]
    rest = low.emit("abs", [low.emit("sub", [tall, wide], dtype, shape)], dtype, shape)
    along = {"dim": [len(made)]}
    if p == 0:
        rest = low.cast_name(low.emit("ne", [rest, 0.0], "bool", shape), dtype)
    elif p == 2:
        rest = low.emit("mul", [rest, rest], dtype, shape)
    elif p not in (1, math.inf):
        rest = low.emit("pow", [rest, float(p)], dtype, shape)
    found = low.emit("amax" if p == math.inf else "sum", [rest], dtype, made, **along)
    if p == 2:
        found = low.emit("sqrt", [found], dtype, made)
    elif p not in (0, 1, math.inf):
        found = low.emit("pow", [found, 1 / p], dtype, made)
    return Value(found, tuple(range(len(made))))


@lowers("aten::bucketize", "aten::searchsorted")
def _searchsorted(
    low: Lowering, node, right: bool = False, side: Any = None, **given: Any
) -> Value:
    """How many borders are below each element, or not above it where `right`. NaN is above all."""
    is_bucketize = node.target._schema.name == "aten::bucketize"
    names = ("self_", "boundaries") if is_bucketize else ("self_", "sorted_sequence")
    x, borders = (given[name] for name in names)
    if given.get("sorter") is not None or not isinstance(x, Value):
        raise Unsupported("searchsorted of a number or with a sorter")
    x, borders = low.wholes(node, **{name: given[name] for name in names})
    low.check_apart(node, borders, -1)
    if low.dtypes[x.name] != low.dtypes[borders.name]:
        x, borders = low.promoted([x, borders])
    lines, places = low.shapes[borders.name], low.shapes[x.name]
    if len(lines) > 1:
        wide = [*lines[:-1], 1, lines[-1]]
        borders = low.viewed(borders, wide, ())
    tall = low.viewed(x, [*places, 1], ()).name
    shape = [*places, lines[-1]]
    is_right = right or side == "right"
    above = low.emit("gt" if is_right else "ge", [borders.name, tall], "bool", shape)
    below = low.emit("logical_not", [above], "bool", shape)
    count = low.emit("sum", [low.cast_name(below, "i64")], "i64", places, dim=[len(places)])
    return low.cast(Value(count, tuple(range(len(places)))), DTYPES[node.meta["val"].dtype])


@lowers("aten::addmm")
def _addmm(low: Lowering, node, self_: Value, mat1: Value, mat2: Value, beta=1, alpha=1) -> Value:
    low.check_apart(node, mat1, -1)
    if low.dtypes[mat1.name] not in FLOATS:
        raise Unsupported(f"addmm of {low.dtypes[mat1.name]}")
    bias, *operands = low.wholes(node, self_=self_, mat1=mat1, mat2=mat2)
    inputs = [bias.name, *(v.name for v in operands)]
    return low.emit_like(
        node, "addmm", inputs, operands[0], beta=float(beta), alpha=float(alpha)
    )


@lowers("aten::_weight_int8pack_mm")
def _weight_int8pack_mm(low: Lowering, node, self_: Value, mat2: Value, scales: Value) -> Value:
    low.check_apart(node, self_, -1)
    operands = low.wholes(node, self_=self_, mat2=mat2, scales=scales)
    dtype = low.dtypes[operands[0].name]
    floats = low.cast(operands[1], dtype).name
    columns = low.emit("transpose", [floats], dtype, low.shapes[floats][::-1], dim0=0, dim1=1)
    product = low.emit_like(node, "mm", [operands[0].name, columns], operands[0])
    return low.emit_like(node, "mul", [product.name, operands[2].name], product)


@lowers("aten::_scaled_mm", "aten::_scaled_mm_v2")
def _scaled_mm(
    low: Lowering,
    node,
    self_: Value,
    mat2: Value,
    scale_a: Any,
    scale_b: Any,
    bias: Value | None = None,
    scale_result: Value | None = None,
    swizzle_a: Any = (),
    swizzle_b: Any = (),
    **_of: Any,
) -> Value:
    """The second form has lists of scales, whose recipes their shapes tell. A faster accumulation is an
    offer that is not taken."""
    dtype = DTYPES[node.meta["val"].dtype]
    if dtype not in FLOATS:
        raise Unsupported(f"_scaled_mm with a result in {dtype}")
    if scale_result is not None or any((*swizzle_a, *swizzle_b)):
        raise Unsupported("_scaled_mm with a scaled result, or swizzled scales")
    low.check_apart(node, self_, -1)
    given = arguments_of(node)
    operands = low.wholes(node, self_=self_, mat2=mat2)
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        of = given[name]
        if isinstance(scale, (list, tuple)):
            if len(scale) != 1:
                raise Unsupported("_scaled_mm with several scales of an operand")
            of, scale = of[0], scale[0]
        operands.append(low.whole(of, scale))
    if bias is not None:
        operands.append(low.cast(bias, dtype))
    names = [operand.name for operand in operands]
    return low.emit_like(node, "scaled_mm", names, operands[0], out_dtype=dtype)


@lowers("aten::matmul")
def _matmul(low: Lowering, node, self_: Value, other: Value) -> Value:
    low.check_apart(node, self_, -1)
    return _product(low, *low.wholes(node, self_=self_, other=other))


def _product(low: Lowering, left: Value, right: Value) -> Value:
    """A vector is a matrix of one row, or of one column."""
    dtype, gone = low.dtypes[left.name], set()
    a, b = low.shapes[left.name], low.shapes[right.name]
    if len(a) == 1:
        left, a = low.viewed(left, [1, *a], (0, 1)), [1, *a]
        gone.add(-2)
    if len(b) == 1:
        right, b = low.viewed(right, [*b, 1], (0, 1)), [*b, 1]
        gone.add(-1)
    if dtype in FLOATS:
        shape = [*broadcast(a[:-2], b[:-2]), a[-2], b[-1]]
        name = low.emit("matmul", [left.name, right.name], dtype, shape)
        result = Value(name, tuple(range(len(shape))))
    else:
        result = _sums_of_integers(low, left, right)
        shape = low.shapes[result.name]
    return _without(low, result, {len(shape) + d for d in gone}) if gone else result


@lowers("aten::scaled_dot_product_attention")
def _sdpa(
    low: Lowering,
    node,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p != 0:
        raise Unsupported("scaled_dot_product_attention with dropout_p")
    low.check_apart(node, key, -2)
    operands = low.wholes(node, query=query, key=key, value=value)
    dtype = low.dtypes[operands[0].name]
    shapes = [low.shapes[each.name] for each in operands]
    one_head = [*shapes[0][:-3], 1]
    if shapes[1][:-2] == shapes[2][:-2] == one_head != shapes[0][:-2]:
        enable_gqa = True  # all heads of the query share it
    elif not enable_gqa:
        operands = _with_batches(low, operands, shapes)
    if attn_mask is not None:
        (mask,) = low.wholes(node, attn_mask=attn_mask)
        operands.append(mask if low.dtypes[mask.name] == "bool" else low.cast(mask, dtype))
    attrs: dict[str, Any] = {"is_causal": is_causal, "enable_gqa": enable_gqa}
    if scale is not None:
        attrs["scale"] = abs(float(scale)) or 1.0
    if scale is not None and scale <= 0:  # which the op has not
        query = operands[0]
        sign = 0.0 if scale == 0 else -1.0
        name = low.emit("mul", [query.name, sign], dtype, low.shapes[query.name])
        operands[0] = Value(name, query.axes)
    return low.emit_like(
        node, "scaled_dot_product_attention", [v.name for v in operands], operands[0],
        **{name: given for name, given in attrs.items() if given},
    )  # fmt: skip


def _with_batches(
    low: Lowering, operands: list[Value], shapes: list[list[Extent]]
) -> list[Value]:
    """Operands of an attention, whose batches broadcast."""
    batch = functools.reduce(broadcast, [shape[:-2] for shape in shapes])
    every = tuple(range(len(batch) + 2))
    return [
        Value(expanded(low, each.name, [*batch, *shape[-2:]]), every)
        for each, shape in zip(operands, shapes)
    ]


# Ops of ops.py.


@lowers("braid::all_reduce")
def _all_reduce(low: Lowering, node, x: Value) -> Value:
    return low.waited("all_reduce", x, low.shapes[x.name], reduce_op="sum")


@lowers("braid::all_gather")
def _all_gather(low: Lowering, node, x: Value, ranks: int) -> Value:
    x, axis = _along(low, node, x, -1)
    shape = [low.extent(node.meta["val"].shape[dim]) for dim in x.order()]
    return low.waited("all_gather_into_tensor", x, shape, dim=axis)


@lowers("braid::share")
def _share(low: Lowering, node, x: Value, ranks: int) -> Value:
    return low.elementwise(node, op="div", self_=x, other=ranks)


@lowers("braid::shard")
def _shard(low: Lowering, node, x: Value, ranks: int) -> Value:
    x, axis = _along(low, node, x, -1)
    return low.emit_like(node, "shard", [x.name], x, dim=axis, group="tp")


@lowers("braid::attention")
def _attention(
    low: Lowering,
    node,
    query: Value,
    key: Value,
    value: Value,
    sinks,
    layer,
    scale,
    window,
    softcap,
    problem,
) -> Value:
    if problem:
        raise Unsupported(f"attention with {problem}")
    tensors = node.all_input_nodes[:3]
    flat = []
    for tensor, each in zip(tensors, (query, key, value)):
        shape = low.extents(tensor.meta["val"].shape)
        each = low.ordered(each, [dim for dim in (0, 2, 1, 3) if each.axes[dim] is not None])
        flat.append(low.viewed(each, [shape[2], shape[1], shape[3]], (None, 1, 0, 2)))
    caches = [
        low.caches(low.name_of_cache(node, layer, kind), low.shapes[each.name][1:], low.dtypes[each.name])
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


@lowers("braid::experts")
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


@lowers("braid::routing")
def _routing(low: Lowering, node, choices: Value, experts: int) -> list[Value]:
    (choices,) = low.wholes(node, choices=choices)
    shapes = [low.extents(tensor.shape) for tensor in node.meta["val"]]
    name = low.emit("moe_routing", [choices.name], "i32", shapes[0], experts=experts)
    result = []
    for i, shape in enumerate(shapes):
        low.dtypes[f"{name}:{i}"], low.shapes[f"{name}:{i}"] = "i32", shape
        result.append(Value(f"{name}:{i}", (0,)))
    return result


@lowers("braid::grouped_mm")
def _product_of_groups(low: Lowering, node, x: Value, weight: Value, ends: Value) -> Value:
    operands = low.wholes(node, x=x, weight=weight)
    inputs = [*(value.name for value in operands), ends.name]
    return low.emit_like(node, "_grouped_mm", inputs, operands[0])


@lowers("aten::_grouped_mm")
def _grouped_mm(
    low: Lowering, node, self_: Value, mat2: Value, offs: Value | None = None,
    bias: Value | None = None, out_dtype: torch.dtype | None = None,
) -> Value:  # fmt: skip
    ranks = len(low.shapes[self_.name]), len(low.shapes[mat2.name])
    if bias is not None or ranks[1] != 3 or ranks[0] != (3 if offs is None else 2):
        raise Unsupported(f"_grouped_mm of {ranks[0]} by {ranks[1]} dims, or with a bias")
    low.check_apart(node, self_, -1)
    operands = low.wholes(node, self_=self_, mat2=mat2)
    names = [value.name for value in operands]
    dtype = DTYPES[node.meta["val"].dtype]
    out = {} if dtype == low.dtypes[names[0]] else {"out_dtype": dtype}
    if offs is None:
        return low.emit_like(node, "matmul", names, operands[0], **out)
    return low.emit_like(node, "_grouped_mm", [*names, offs.name], operands[0], **out)
