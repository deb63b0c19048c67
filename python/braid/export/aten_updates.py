"""How ATen's ops that take elements by indices, or put them there, are lowered."""

from typing import Any

from ..graph import Extent
from .lower import EMPTY, Lowering, Unsupported, Value, arguments_of, broadcast, dim_of, lowers
from .lower import number


def from_the_front(low: Lowering, node, index: Value, extent: Extent) -> Value:
    """Without indices that count from the end. `node` is the traced one."""
    dtype, shape = low.dtypes[index.name], low.shapes[index.name]
    if dtype not in ("i32", "i64") or not low.may_count_from_the_end(node):
        return index
    is_negative = low.emit("lt", [index.name, 0], "bool", shape)
    front = low.emit("add", [index.name, low.number_of(extent, dtype)], dtype, shape)
    return Value(low.emit("where", [is_negative, front, index.name], dtype, shape), index.axes)


def flat_place(
    low: Lowering, names: list[str], extents: list[Extent], shape: list[Extent], outside: Any
) -> str:
    """Indices of the first dims, in i64 and of this shape, as one of all their elements. What is out of
    range must be `outside`, too: it would be an element of another row."""
    place = names[0]
    for name, extent in zip(names[1:], extents[1:]):
        count = low.number_of(extent, "i64")
        place = low.emit("add", [low.emit("mul", [place, count], "i64", shape), name], "i64", shape)
        inside = low.emit("ge", [name, 0], "bool", low.shapes[name])
        below = low.emit("lt", [name, count], "bool", low.shapes[name])
        inside = low.emit("logical_and", [inside, below], "bool", low.shapes[name])
        place = low.emit("where", [inside, place, outside], "i64", shape)
    return low.viewed(Value(place, ()), [low.product(shape)], ()).name


def place_of(low: Lowering, node, index: Any, extent: Extent) -> str:
    """An index that is an element of a tensor, as a tensor of one, from the front."""
    place = from_the_front(low, node, low.scalar(index), extent)
    return low.viewed(place, [1], (0,)).name


def indexed_dims(rank: int, indexed: list[int]) -> tuple[list[int], int]:
    """All dims, those with indices first, and where the dims of the indices stand in `x[indices]`:
    in place of those that they index, or in front where these are no neighbours."""
    order = [*indexed, *(dim for dim in range(rank) if dim not in indexed)]
    are_neighbours = indexed[-1] - indexed[0] == len(indexed) - 1
    return order, indexed[0] if are_neighbours else 0


def _row_of(low: Lowering, value: Value) -> Value:
    """What has no dims as one of one element, which ops along a row want."""
    return value if value.rank else low.viewed(value, [1], (0,))


@lowers("aten::gather")
def _gather(low: Lowering, node, self_: Value, dim: int, index: Value, **_: Any) -> Value:
    low.check_apart(node, self_, dim)
    whole, index = low.wholes(node, self_=self_, index=index)
    index, made = _row_of(low, index), low.extents(node.meta["val"].shape)
    dtype, shape = low.dtypes[whole.name], low.shapes[index.name]
    dim = dim_of(dim, whole.rank)
    name = low.emit("gather", [whole.name, index.name], dtype, shape, dim=dim)
    return low.viewed(Value(name, whole.axes), made, range(len(made)))


@lowers("aten::scatter")
def _scatter(low: Lowering, node, self_: Value, dim: int, index: Value, **of: Any) -> Value:
    if of.get("reduce"):
        raise Unsupported("scatter that reduces")
    if "src" in of:
        return _put(low, node, "scatter", self_, dim, index, of["src"])
    low.check_apart(node, self_, dim)
    self_, index = low.wholes(node, self_=self_, index=index)
    return low.emit_like(
        node,
        "scatter",
        [self_.name, _row_of(low, index).name],
        self_,
        dim=dim_of(dim, self_.rank),
        value=number(of["value"], low.dtypes[self_.name]),
    )


def _put(low: Lowering, node, op: str, self_: Value, dim: int, index: Value, src: Value) -> Value:
    low.check_apart(node, self_, dim)
    whole, *rest = low.wholes(node, self_=self_, index=index, src=src)
    index, part = (_row_of(low, each) for each in rest)
    if low.shapes[index.name] != low.shapes[part.name]:
        raise Unsupported(f"{op} with fewer indices than elements")
    return low.emit_like(
        node, op, [whole.name, index.name, part.name], whole, dim=dim_of(dim, whole.rank)
    )


@lowers("aten::slice_scatter")
def _slice_scatter(
    low: Lowering, node, self_: Value, src: Value, dim=0, start=None, end=None, step=1
):
    if src.name == EMPTY:
        return self_
    low.check_apart(node, self_, dim)
    whole, part = low.wholes(node, self_=self_, src=src)
    attrs = {"dim": dim_of(dim, whole.rank), "start": low.extent(start or 0), "step": step}
    if end is not None and not (isinstance(end, int) and end >= 2**62):
        attrs["end"] = low.extent(end)
    return low.emit_like(node, "slice_scatter", [whole.name, part.name], whole, **attrs)


@lowers("aten::select_scatter")
def _select_scatter(low: Lowering, node, self_: Value, src: Value, dim: int, index: Any) -> Value:
    low.check_apart(node, self_, dim)
    whole, part = low.wholes(node, self_=self_, src=src)
    dim = dim_of(dim, whole.rank)
    shape = low.shapes[part.name]
    part = low.viewed(part, [*shape[:dim], 1, *shape[dim:]], whole.axes)
    if low.is_data(index):
        place = place_of(low, node, index, low.shapes[whole.name][dim])
        return low.emit_like(node, "index_copy", [whole.name, place, part.name], whole, dim=dim)
    start = low.extent(index)
    if isinstance(start, int) and start < 0:
        start = low.sum([start, low.extent(node.meta["val"].shape[dim])])
    bounds = {"start": start, "end": low.sum([start, 1])}
    return low.emit_like(node, "slice_scatter", [whole.name, part.name], whole, dim=dim, **bounds)


@lowers("aten::index_add", "aten::index_copy")
def _index_add(
    low: Lowering, node, self_: Value, dim: int, index: Value, source: Value, alpha: Any = 1
) -> Value:
    low.check_apart(node, self_, dim)
    whole, index, part = low.wholes(node, self_=self_, index=index, source=source)
    index = _row_of(low, index)
    if alpha != 1:
        part = low.scaled(node, part, alpha)
    op = node.target._schema.name.removeprefix("aten::")
    return low.emit_like(
        node, op, [whole.name, index.name, part.name], whole, dim=dim_of(dim, whole.rank)
    )


@lowers("aten::scatter_add")
def _scatter_add(low: Lowering, node, self_: Value, dim: int, index: Value, src: Value) -> Value:
    return _put(low, node, "scatter_add", self_, dim, index, src)


_MOST_INDICES = 2  # of the op; more are one, of the elements of all their dims


@lowers("aten::index_put")
def _index_put(
    low: Lowering, node, self_: Value, indices: list[Any], values: Value, accumulate: bool = False
) -> Value:
    """Indices and values are broadcast as ATen does."""
    given = arguments_of(node)
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    tensors = [low.whole(given["indices"][dim], indices[dim]) for dim in dims]
    if any(low.dtypes[index.name] not in ("i32", "i64") for index in tensors):
        raise Unsupported("index_put by a mask")
    for dim in dims:
        low.check_apart(node, self_, dim)
    whole, values = low.wholes(node, self_=self_, values=values)
    shape: list[Extent] = []
    for index in tensors:
        shape = broadcast(shape, low.shapes[index.name])
    if low.is_product(shape):
        raise Unsupported(f"index_put to as many places as {' * '.join(map(str, shape))}")
    order, at = indexed_dims(whole.rank, dims)
    turned = low.ordered(whole, order)
    rest = low.shapes[turned.name][len(dims) :]
    part = expanded(low, values.name, [*rest[:at], *shape, *rest[at:]])
    # The dims of the indices stand in front, as those that they index do.
    own = range(at, at + len(shape))
    moved = [*own, *(dim for dim in range(len(shape) + len(rest)) if dim not in own)]
    part = low.ordered(Value(part, tuple(range(len(moved)))), moved).name
    names = [expanded(low, index.name, shape) for index in tensors]
    if not shape:  # one element of each dim that is indexed
        names = [expanded(low, name, [1]) for name in names]
        part = expanded(low, part, [1, *rest])
    attrs = {"accumulate": True} if accumulate else {}
    if len(names) <= _MOST_INDICES:
        return low.emit_like(node, "index_put", [turned.name, *names, part], turned, **attrs)
    extents, shape = low.shapes[turned.name][: len(dims)], shape or [1]
    if low.is_product(extents):
        raise Unsupported(f"index_put in {' * '.join(map(str, extents))} places")
    names = [
        from_the_front(low, given["indices"][dim], low.cast(Value(name, ()), "i64"), extent).name
        for dim, name, extent in zip(dims, names, extents)
    ]
    count = low.product(extents)
    place = flat_place(low, names, extents, shape, low.number_of(count, "i64"))
    rows = low.viewed(turned, [count, *rest], ()).name
    part = low.viewed(Value(part, ()), [low.product(shape), *rest], ()).name
    dtype = low.dtypes[rows]
    made = low.emit("index_put", [rows, place, part], dtype, low.shapes[rows], **attrs)
    return low.viewed(Value(made, ()), low.shapes[turned.name], turned.axes)


@lowers("aten::index_fill")
def _index_fill(low: Lowering, node, self_: Value, dim: int, index: Value, value: Any) -> Value:
    low.check_apart(node, self_, dim)
    whole, index = low.wholes(node, self_=self_, index=index)
    dim, dtype = dim_of(dim, whole.rank), low.dtypes[whole.name]
    shape = low.shapes[whole.name]
    index = from_the_front(low, node.args[2], index, shape[dim])
    places = low.shapes[index.name] or [1]
    index_name = expanded(low, index.name, places)
    if not isinstance(value, Value):
        value = Value(low.emit("full", [], dtype, [], value=number(value, dtype), dtype=dtype), ())
    filled = expanded(low, low.cast(value, dtype).name, [*shape[:dim], *places, *shape[dim + 1 :]])
    return low.emit_like(node, "index_copy", [whole.name, index_name, filled], whole, dim=dim)


def expanded(low: Lowering, name: str, wanted: list[Extent]) -> str:
    """With the last dims' elements again and again along the others."""
    shape, dtype = low.shapes[name], low.dtypes[name]
    if shape == wanted:
        return name
    wide = [1] * (len(wanted) - len(shape)) + shape
    if wide != shape:
        name = low.emit("view", [name], dtype, wide, shape=wide)
    return low.emit("expand", [name], dtype, wanted, shape=wanted)
