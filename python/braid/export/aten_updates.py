"""How ATen's ops that take elements by indices, or put them there, are lowered."""

from typing import Any

from ..graph import Extent
from .lower import EMPTY, Lowering, Unsupported, Value, arguments_of, broadcast, dim_of, lowers
from .lower import number


@lowers("aten::gather")
def _gather(low: Lowering, node, self_: Value, dim: int, index: Value, **_: Any) -> Value:
    low.check_apart(node, self_, dim)
    whole, index = low.wholes(node, self_=self_, index=index)
    return low.emit_like(
        node, "gather", [whole.name, index.name], whole, dim=dim_of(dim, whole.rank)
    )


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
        [self_.name, index.name],
        self_,
        dim=dim_of(dim, self_.rank),
        value=number(of["value"]),
    )


def _put(low: Lowering, node, op: str, self_: Value, dim: int, index: Value, src: Value) -> Value:
    low.check_apart(node, self_, dim)
    whole, index, part = low.wholes(node, self_=self_, index=index, src=src)
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
    start = low.extent(index)
    if isinstance(start, int) and start < 0:
        start += low.extent(node.meta["val"].shape[dim])
    return low.emit_like(
        node, "slice_scatter", [whole.name, part.name], whole, dim=dim, start=start, end=start + 1
    )


@lowers("aten::index_add", "aten::index_copy")
def _index_add(
    low: Lowering, node, self_: Value, dim: int, index: Value, source: Value, alpha: Any = 1
) -> Value:
    low.check_apart(node, self_, dim)
    whole, index, part = low.wholes(node, self_=self_, index=index, source=source)
    if alpha != 1:
        part = low.scaled(node, part, alpha)
    op = node.target._schema.name.removeprefix("aten::")
    return low.emit_like(
        node, op, [whole.name, index.name, part.name], whole, dim=dim_of(dim, whole.rank)
    )


@lowers("aten::scatter_add")
def _scatter_add(low: Lowering, node, self_: Value, dim: int, index: Value, src: Value) -> Value:
    return _put(low, node, "scatter_add", self_, dim, index, src)


@lowers("aten::index_put")
def _index_put(
    low: Lowering, node, self_: Value, indices: list[Any], values: Value, accumulate: bool = False
) -> Value:
    """Indices and values are broadcast as ATen does."""
    given = arguments_of(node)
    count = len([index for index in indices if index is not None])
    if any(index is None for index in indices[:count]):
        raise Unsupported("index_put with dims in front that are not indexed")
    tensors = [
        low.whole(source, index) for source, index in zip(given["indices"], indices[:count])
    ]
    if any(low.dtypes[index.name] not in ("i32", "i64") for index in tensors):
        raise Unsupported("index_put by a mask")
    for dim in range(count):
        low.check_apart(node, self_, dim)
    whole, values = low.wholes(node, self_=self_, values=values)
    shape: list[Extent] = []
    for index in tensors:
        shape = broadcast(shape, low.shapes[index.name])
    names = [_expanded(low, index.name, shape) for index in tensors]
    part = _expanded(low, values.name, [*shape, *low.shapes[whole.name][count:]])
    attrs = {"accumulate": True} if accumulate else {}
    return low.emit_like(node, "index_put", [whole.name, *names, part], whole, **attrs)


def _expanded(low: Lowering, name: str, wanted: list[Extent]) -> str:
    shape, dtype = low.shapes[name], low.dtypes[name]
    if shape == wanted:
        return name
    wide = [1] * (len(wanted) - len(shape)) + shape
    if wide != shape:
        name = low.emit("view", [name], dtype, wide, shape=wide)
    return low.emit("expand", [name], dtype, wanted, shape=wanted)
