"""How ATen's ops on shapes are lowered."""

import math
from typing import Any

import torch

from ..graph import Extent
from .aten_updates import place_of
from .lower import DTYPES, EMPTY, Lowering, Unsupported, Value, dim_of, lowers


@lowers("aten::transpose")
def _transpose(low: Lowering, node, self_: Value, dim0: int, dim1: int) -> Value:
    axes = list(self_.axes)
    a, b = dim_of(dim0, len(axes)), dim_of(dim1, len(axes))
    axes[a], axes[b] = axes[b], axes[a]
    return Value(self_.name, tuple(axes))


@lowers("aten::t")
def _t(low: Lowering, node, self_: Value) -> Value:
    return Value(self_.name, self_.axes[::-1])


@lowers("aten::permute")
def _permute(low: Lowering, node, self_: Value, dims: list[int]) -> Value:
    return Value(self_.name, tuple(self_.axes[dim] for dim in dims))


@lowers("aten::unsqueeze")
def _unsqueeze(low: Lowering, node, self_: Value, dim: int) -> Value:
    dim = dim_of(dim, self_.rank + 1)
    return Value(self_.name, self_.axes[:dim] + (None,) + self_.axes[dim:])


@lowers("aten::squeeze")
def _squeeze(low: Lowering, node, self_: Value, dim: Any = None) -> Value:
    sizes = node.all_input_nodes[0].meta["val"].shape
    dims = range(self_.rank) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d % self_.rank for d in dims if sizes[d] == 1}
    kept = [d for d in range(self_.rank) if d not in gone]
    if any(self_.axes[d] is not None for d in gone):
        self_ = low.without(self_, gone)
    return Value(self_.name, tuple(self_.axes[d] for d in kept))


@lowers("aten::expand")
def expand(low: Lowering, node, self_: Value, size: list[Any], implicit: bool = False) -> Value:
    value = Value(self_.name, (None,) * (len(size) - self_.rank) + self_.axes)
    wanted = low.extents(node.meta["val"].shape)
    grown = {
        dim
        for dim, axis in enumerate(value.axes)
        if axis is not None and low.shapes[value.name][axis] != wanted[dim]
    }
    return low.without(value, grown) if grown else value


@lowers("aten::view", "aten::reshape", "aten::_unsafe_view", "aten::flatten", "aten::unflatten")
def _view(low: Lowering, node, self_: Value, dtype=None, **_: Any) -> Value:
    if dtype is not None:
        whole = low.whole(node.args[0], self_)
        return low.emit_like(node, "view_dtype", [whole.name], whole, dtype=DTYPES[dtype])
    source = node.all_input_nodes[0]
    before, after = low.extents(source.meta["val"].shape), low.extents(node.meta["val"].shape)
    if any(axis is None and before[d] != 1 for d, axis in enumerate(self_.axes)):
        self_ = low.whole(source, self_)  # it was expanded
    # What the shapes begin with may stay in another order.
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    order = self_.order()
    lead = [dim for dim in order if dim < same]
    if order != [*lead, *sorted(set(order) - set(lead))]:
        self_ = low.plain(self_)
        order = self_.order()
        lead = [dim for dim in order if dim < same]
    kept = [dim for dim, extent in enumerate(after) if dim >= same and extent != 1]
    # Of several heads a rank has one: a part of all, which is whole from here on.
    is_part = any(part.dim == len(before) - 1 for part in low.parts.of(source))
    if is_part and same == len(before) - 1 == len(after) - 2 and after[same] == 1:
        kept.insert(0, same)
    shape = [low.shapes[self_.name][self_.axes[dim]] for dim in lead]
    made = [*lead, *kept]
    axes = [made.index(dim) if dim in made else None for dim in range(len(after))]
    return low.viewed(self_, [*shape, *(after[dim] for dim in kept)], axes)


@lowers("aten::slice")
def _slice(low: Lowering, node, self_: Value, dim=0, start=None, end=None, step=1) -> Value:
    dim = dim_of(dim, self_.rank)
    before = node.all_input_nodes[0].meta["val"].shape[dim]
    after = node.meta["val"].shape[dim]
    if low.extent(before) == low.extent(after) or node.args[0] in low.cut:
        return self_
    low.check_apart(node, self_, dim)
    if self_.axes[dim] is None:
        return self_
    attrs = {"dim": self_.axes[dim], "start": low.extent(start or 0)}
    if end is not None and not (isinstance(end, int) and end >= 2**62):
        attrs["end"] = low.extent(end)
    if step != 1:
        if "//" in str(low.extent(after)):
            raise Unsupported(f"a slice in steps of {step} along {low.extent(before)}, which rounds")
        attrs["step"] = step
    return low.emit_like(node, "slice", [self_.name], self_, **attrs)


@lowers("aten::select")
def select(low: Lowering, node, self_: Value, dim: int, index: int) -> Value:
    dim = dim_of(dim, self_.rank)
    low.check_apart(node, self_, dim)
    axis = self_.axes[dim]
    axes = self_.axes[:dim] + self_.axes[dim + 1 :]
    if axis is None:
        return Value(self_.name, axes)
    if low.is_data(index):
        place = place_of(low, node, index, low.shapes[self_.name][axis])
        shape = [1 if d == axis else n for d, n in enumerate(low.shapes[self_.name])]
        dtype = low.dtypes[self_.name]
        row = low.emit("index_select", [self_.name, place], dtype, shape, dim=axis)
        return _squeezed(low, Value(row, self_.axes), dim)
    axes = tuple(a - 1 if a is not None and a > axis else a for a in axes)
    return low.emit_like(
        node, "select", [self_.name], Value("", axes), dim=axis, index=low.extent(index)
    )


def _squeezed(low: Lowering, value: Value, dim: int) -> Value:
    """Without a dim of one element."""
    value = low.without(value, {dim})
    return Value(value.name, value.axes[:dim] + value.axes[dim + 1 :])


@lowers("aten::split", "aten::split_with_sizes")
def _split(low: Lowering, node, self_: Value, dim: int = 0, **sizes: Any) -> list[Value]:
    (size,) = sizes.values()
    size = low.extents(size) if isinstance(size, (list, tuple)) else low.extent(size)
    value, dim = self_, dim_of(dim, self_.rank)
    low.check_apart(node, value, dim)
    if value.axes[dim] is None:
        value = low.whole(node.all_input_nodes[0], value)
    all_parts = node.meta["val"]
    parts = [part for part in all_parts if low.extent(part.shape[dim]) != 0]
    if isinstance(size, list):
        size = [each for each in size if each != 0]
    if len(parts) == 1 and len(all_parts) > 1:  # the others have no elements
        return [value if part is parts[0] else Value(EMPTY, value.axes) for part in all_parts]
    shapes = [[low.extent(part.shape[d]) for d in value.order()] for part in parts]
    dtype = low.dtypes[value.name]
    axis = value.axes[dim]
    name = low.emit("split", [value.name], dtype, shapes[0], dim=axis, split_size=size)
    result = []
    for i, shape in enumerate(shapes):
        of = f"{name}:{i}" if len(parts) > 1 else name
        low.dtypes[of], low.shapes[of] = dtype, shape
        result.append(Value(of, value.axes))
    rest = iter(result)
    full = {id(part) for part in parts}
    return [next(rest) if id(part) in full else Value(EMPTY, value.axes) for part in all_parts]


@lowers("aten::chunk")
def _chunk(low: Lowering, node, self_: Value, chunks: int, dim: int = 0) -> list[Value]:
    return _split(low, node, self_, dim, size=node.meta["val"][0].shape[dim])


@lowers("aten::cat")
def cat(low: Lowering, node, tensors: list[Value], dim: int = 0) -> Value:
    dim = dim_of(dim, node.meta["val"].ndim)
    kept = [i for i, value in enumerate(tensors) if value.name != EMPTY]
    tensors, sources = [tensors[i] for i in kept], [node.args[0][i] for i in kept]
    if len(tensors) == 1:
        return tensors[0]
    for each in tensors:
        low.check_apart(node, each, dim)
    lead = max(tensors, key=lambda v: len(v.order()))
    same = [d for d, axis in enumerate(lead.axes) if axis is not None]
    alike = all([d for d, axis in enumerate(v.axes) if axis is not None] == same for v in tensors)
    if alike and dim in same:
        values = [low.ordered(value, lead.order()) for value in tensors]
    else:
        values = [low.whole(source, value) for source, value in zip(sources, tensors)]
        lead = values[0]
    return low.emit_like(node, "cat", [v.name for v in values], values[0], dim=values[0].axes[dim])


@lowers("aten::stack")
def _stack(low: Lowering, node, tensors: list[Value], dim: int = 0) -> Value:
    return stacked(low, node, tensors, node.args[0], dim)


def stacked(low: Lowering, node: Any, tensors: list[Value], sources: Any, dim: int) -> Value:
    """Values of equal shapes, those of the traced `sources`, side by side along a new dim."""
    dim = dim_of(dim, node.meta["val"].ndim)
    if any(value.axes != tensors[0].axes for value in tensors):
        tensors = [low.whole(source, value) for source, value in zip(sources, tensors)]
    parts = [low.inserted(value, dim) for value in tensors]
    axis = parts[0].axes[dim]
    return low.emit_like(node, "cat", [part.name for part in parts], parts[0], dim=axis)


@lowers("aten::repeat_interleave")
def _repeat_interleave(
    low: Lowering, node, self_: Value, repeats: Any, dim: int | None, **_: Any
) -> Value:
    """Each element along the dim, or of all, several times in a row."""
    if not isinstance(repeats, int):
        raise Unsupported("repeat_interleave whose counts are a tensor")
    if dim is None:
        for each in range(self_.rank):
            low.check_apart(node, self_, each)
        whole = low.whole(node.all_input_nodes[0], self_)
        self_, dim = low.viewed(whole, [low.product(low.shapes[whole.name])], (0,)), 0
    dim = dim_of(dim, self_.rank)
    low.check_apart(node, self_, dim)
    if self_.axes[dim] is None:
        self_ = low.whole(node.all_input_nodes[0], self_)
    return low.repeated(self_, dim, repeats)


@lowers("aten::repeat")
def _repeat(low: Lowering, node, self_: Value, repeats: list[Any]) -> Value:
    """All of the tensor, several times along each dim."""
    after = low.extents(node.meta["val"].shape)
    value = Value(self_.name, (None,) * (len(after) - self_.rank) + self_.axes)
    for dim, count in enumerate(low.extents(repeats)):
        if count == 1 or value.axes[dim] is None:  # all elements along it are equal
            continue
        shape, axis = low.shapes[value.name], value.axes[dim]
        if isinstance(count, int):
            wide = [*shape[:axis], after[dim], *shape[axis + 1 :]]
            name = low.emit("cat", [value.name] * count, low.dtypes[value.name], wide, dim=axis)
            value = Value(name, value.axes)
            continue
        tall = low.inserted(value, dim)  # all of it, once for each count
        wide = [*shape[:axis], count, *shape[axis:]]
        name = low.emit("expand", [tall.name], low.dtypes[tall.name], wide, shape=wide)
        joined = [*shape[:axis], after[dim], *shape[axis + 1 :]]
        value = low.viewed(Value(name, ()), joined, value.axes)
    return value


@lowers("aten::constant_pad_nd")
def _pad(low: Lowering, node, self_: Value, pad: list[Any], value: float = 0) -> Value:
    """`pad` has what is added in front and behind, the last dim first."""
    result = low.whole(node.all_input_nodes[0], self_)
    dtype = low.dtypes[result.name]
    for i, given in enumerate(zip(pad[::2], pad[1::2])):
        dim, sizes = self_.rank - 1 - i, low.extents(given)
        cut = [-size if isinstance(size, int) and size < 0 else 0 for size in sizes]
        parts = [result.name]
        for size, at in zip(sizes, (0, 2)):
            if isinstance(size, int) and size <= 0:
                continue
            shape = [*low.shapes[result.name]]
            shape[dim] = size
            filled = low.emit("full", [], dtype, shape, value=value, dtype=dtype, shape=shape)
            parts.insert(at, filled)
        if len(parts) == 1 and not any(cut):
            continue
        low.check_apart(node, result, dim)
        shape = [*low.shapes[result.name]]
        made = low.extent(node.meta["val"].shape[dim])
        # Behind what is added, so that a shift of one element is there, too.
        shape[dim] = low.sum([made, sum(cut)])
        if len(parts) > 1:
            result = Value(low.emit("cat", parts, dtype, shape, dim=dim), result.axes)
        if any(cut):
            kept = {"start": cut[0], "end": low.sum([made, cut[0]])}
            shape = [*shape[:dim], made, *shape[dim + 1 :]]
            result = Value(low.emit("slice", [result.name], dtype, shape, dim=dim, **kept), result.axes)
    return result


@lowers("aten::flip")
def _flip(low: Lowering, node, self_: Value, dims: list[int]) -> Value:
    for dim in dims:
        low.check_apart(node, self_, dim)
        dim = dim_of(dim, self_.rank)
        extent = low.extent(node.meta["val"].shape[dim])
        if self_.axes[dim] is None:
            continue
        last = low.sum([extent, -1])
        backwards = low.emit(
            "arange", [], "i64", [extent], start=last, end=-1, step=-1, dtype="i64"
        )
        self_ = low.emit_like(
            node, "index_select", [self_.name, backwards], self_, dim=self_.axes[dim]
        )
    return self_


@lowers("aten::roll")
def _roll(low: Lowering, node, self_: Value, shifts: list[Any], dims: list[int] = ()) -> Value:
    """Elements that leave a dim at one end come in at the other; without dims it is all of them."""
    source = node.all_input_nodes[0]
    shape = low.extents(node.meta["val"].shape)
    value = self_
    if not dims:
        value = low.viewed(low.whole(source, self_), [low.product(shape)], (0,))
    for shift, dim in zip(shifts, dims or [0]):
        low.check_apart(node, self_, dim)
        axis = value.axes[dim_of(dim, value.rank)]
        if axis is None:  # all elements along it are equal
            continue
        extents = low.shapes[value.name]
        places = _range(low, extents[axis])
        shift = low.scalar(shift)
        shift = shift.name if isinstance(shift, Value) else shift
        count = low.number_of(extents[axis], "i64")
        places = low.emit("sub", [places, shift], "i64", [extents[axis]])
        places = low.emit("remainder", [places, count], "i64", [extents[axis]])
        dtype = low.dtypes[value.name]
        name = low.emit("index_select", [value.name, places], dtype, extents, dim=axis)
        value = Value(name, value.axes)
    return value if dims else low.viewed(value, shape, range(len(shape)))


def _range(low: Lowering, count: Extent, start: Extent = 0, step: int = 1) -> str:
    """So many numbers, i64."""
    last = low.product([count, step]) if step != 1 else count
    attrs = {"start": start, "end": low.sum([start, last]), "step": step}
    return low.emit("arange", [], "i64", [count], dtype="i64", **attrs)


@lowers("aten::unfold")
def _unfold(low: Lowering, node, self_: Value, dimension: int, size: int, step: int) -> Value:
    """Windows along a dim, in its place; what each has is the last dim."""
    low.check_apart(node, self_, dimension)
    whole = low.whole(node.args[0], self_)
    shape, dim = low.shapes[whole.name], dim_of(dimension, whole.rank)
    count = low.extent(node.meta["val"].shape[dim])
    begins = _range(low, count, 0, step)
    begins = low.emit("view", [begins], "i64", [count, 1], shape=[count, 1])
    places = low.emit("add", [begins, _range(low, size)], "i64", [count, size])
    flat = [low.product([count, size])]
    places = low.emit("view", [places], "i64", flat, shape=flat)
    name = low.emit(
        "index_select", [whole.name, places], low.dtypes[whole.name],
        [*shape[:dim], *flat, *shape[dim + 1 :]], dim=dim,
    )  # fmt: skip
    cut = [*shape[:dim], count, size, *shape[dim + 1 :]]
    axes = [d for d in range(len(cut)) if d != dim + 1] + [dim + 1]
    return low.viewed(Value(name, ()), cut, axes)


@lowers("aten::as_strided")
def _as_strided(
    low: Lowering, node, self_: Value, size: list[Any], stride: list[Any], storage_offset: Any = None
) -> Value:
    """A tensor as it is, of which only dims of one element have other strides, as pools leave them; or
    elements of one that has all of its memory."""
    tensor = node.args[0].meta["val"]
    offset = tensor.storage_offset() if storage_offset is None else storage_offset
    same = zip(size, stride, tensor.stride())
    if list(size) == list(tensor.shape) and offset == tensor.storage_offset():
        if all(extent == 1 or own == given for extent, given, own in same):
            return self_
    numbers = [*size, *stride, *tensor.shape, offset]
    if any(isinstance(each, torch.SymInt) for each in numbers) or 0 in stride:
        raise Unsupported("as_strided along a symbol, or of equal elements")
    is_whole = tensor.is_contiguous() and tensor.storage_offset() == 0
    if not is_whole or offset + sum((n - 1) * by for n, by in zip(size, stride)) >= tensor.numel():
        raise Unsupported("as_strided of a part of what is in memory")
    flat = low.viewed(low.whole(node.args[0], self_), [tensor.numel()], (0,)).name
    return _strided(low, flat, list(size), stride, offset)


def _strided(low: Lowering, flat: str, size: list[int], stride: list[int], offset: int) -> Value:
    """Elements of one row, at these distances along each dim."""
    places = None
    for dim, (count, by) in enumerate(zip(size, stride)):
        own = _range(low, count, 0 if dim else offset, by)
        own = low.viewed(Value(own, (0,)), [count, *[1] * (len(size) - dim - 1)], ()).name
        wide = [*size[: dim + 1], *[1] * (len(size) - dim - 1)]
        places = own if places is None else low.emit("add", [places, own], "i64", wide)
    count = math.prod(size)
    places = low.viewed(Value(places, ()), [count], ()).name
    name = low.emit("index_select", [flat, places], low.dtypes[flat], [count], dim=0)
    return low.viewed(Value(name, ()), size, range(len(size)))


@lowers("aten::diagonal")
def _diagonal(
    low: Lowering, node, self_: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """Of each row the element that stands on the diagonal, as the last dim."""
    whole = low.whole(node.args[0], self_)
    rows, columns = dim_of(dim1, whole.rank), dim_of(dim2, whole.rank)
    for dim in (rows, columns):
        low.check_apart(node, self_, dim)
    order = [*(d for d in range(whole.rank) if d not in (rows, columns)), rows, columns]
    name = low.ordered(whole, order).name
    dtype, shape = low.dtypes[name], low.shapes[name]
    *lead, _, _ = shape
    count = low.extent(node.meta["val"].shape[-1])
    start = max(-offset, 0)
    if start or shape[-2] != count:
        end = low.sum([count, start])
        shape = [*lead, count, shape[-1]]
        name = low.emit("slice", [name], dtype, shape, dim=len(lead), start=start, end=end)
    one = [*lead, count, 1]
    tall = [*[1] * len(lead), count, 1]
    places = _range(low, count, max(offset, 0))
    places = low.emit("view", [places], "i64", tall, shape=tall)
    if tall != one:
        places = low.emit("expand", [places], "i64", one, shape=one)
    found = low.emit("gather", [name, places], dtype, one, dim=len(lead) + 1)
    return low.viewed(Value(found, ()), one[:-1], range(len(one) - 1))
