"""How convolutions are lowered: one product for each element of the kernel, or one in all where no
two places share what they see. One along the tokens of a model has the tokens before in a cache.
Pools are the same without weights."""

import itertools
import math
import re
from typing import Any

from ..graph import Extent
from .lower import Lowering, Unsupported, Value, lowers

_MOST_TAPS = 256


@lowers("aten::convolution")
def _convolution(
    low: Lowering,
    node,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    **_: Any,
) -> Value:
    out, ins, *kernel = low.shapes[low.whole(node.args[1], weight).name]
    dims = len(kernel)
    if len(stride) != dims or not all(isinstance(each, int) for each in kernel):
        raise Unsupported("a convolution whose kernel has symbols")
    if transposed:
        return _transposed(
            low, node, input, weight, bias, stride, padding, dilation, output_padding, groups
        )
    (bias,) = low.wholes(node, bias=bias)
    channels = low.extent(node.args[0].meta["val"].shape[1])
    if dims == 1 and low.is_apart(low.extent(node.args[0].meta["val"].shape[2])):
        same = (stride, dilation, padding) == ([1], [1], [kernel[0] - 1])
        if not groups == channels == out or not same or not _is_cut(low, node):
            raise Unsupported("a convolution along the tokens that sees later ones or other channels")
        return _of_tokens(low, node, input, low.whole(node.args[1], weight), bias)
    shape = low.extents(node.meta["val"].shape)
    is_plain = not any(padding) and all(each == 1 for each in dilation) and groups == 1
    if is_plain and stride == kernel and all(isinstance(each, int) for each in shape[2:]):
        return _of_patches(low, node, input, weight, bias)
    x = low.cast(low.whole(node.args[0], input), "f32").name
    w = low.cast(low.whole(node.args[1], weight), "f32").name
    x = _padded(low, x, padding, 0)
    total = _sum_of_taps(low, x, w, bias, stride, dilation, groups, shape)
    return low.cast(Value(total, tuple(range(len(shape)))), low.dtypes[input.name])


def _sum_of_taps(
    low: Lowering, x: str, w: str, bias: Value | None, stride: Any, dilation: Any, groups: int,
    shape: list[Extent],
) -> str:  # fmt: skip
    """A convolution of padded elements by [out, in, ...], in f32."""
    out, ins, *kernel = low.shapes[w]
    dims, total = len(kernel), None
    is_deep = groups == low.shapes[x][1] == out
    for tap, part in _taps(low, x, kernel, stride, dilation, shape[2:]):
        column = w
        for at in reversed(tap):
            rest = low.shapes[column][:-1]
            last = len(rest)
            column = low.emit("select", [column], "f32", rest, dim=last, index=at)
        if is_deep:
            tall = [out, *[1] * dims]
            column = low.emit("view", [column], "f32", tall, shape=tall)
            part = low.emit("mul", [part, column], "f32", shape)
        else:
            flat = [shape[0], groups, ins, low.product(shape[2:])]
            part = low.emit("view", [part], "f32", flat, shape=flat)
            rows = [groups, out // groups, ins]
            column = low.emit("view", [column], "f32", rows, shape=rows)
            made = [shape[0], *rows[:2], flat[3]]
            part = low.emit("matmul", [column, part], "f32", made)
            part = low.emit("view", [part], "f32", shape, shape=shape)
        total = part if total is None else low.emit("add", [total, part], "f32", shape)
    if bias is not None:
        tall = [out, *[1] * dims]
        wide = low.emit("view", [low.cast(bias, "f32").name], "f32", tall, shape=tall)
        total = low.emit("add", [total, wide], "f32", shape)
    return total


def _transposed(
    low: Lowering, node: Any, input: Value, weight: Value, bias: Value | None, stride: Any,
    padding: Any, dilation: Any, output_padding: Any, groups: int,
) -> Value:  # fmt: skip
    """A convolution of the elements with zeros between them, by the kernel from its other end."""
    x = low.cast(low.whole(node.args[0], input), "f32").name
    w = low.cast(low.whole(node.args[1], weight), "f32").name
    (bias,) = low.wholes(node, bias=bias)
    shape = low.extents(node.meta["val"].shape)
    ins, out, *kernel = low.shapes[w]
    for d, size in enumerate(kernel):
        if low.is_apart(low.shapes[x][d + 2]):
            raise Unsupported("a transposed convolution along the tokens")
        x = _spread(low, x, d + 2, stride[d])
        room = dilation[d] * (size - 1) - padding[d]
        sides = (max(room, 0), max(room + output_padding[d], 0))
        x = _with_sides(low, x, d + 2, sides, 0)
        seen = low.sum([shape[d + 2], dilation[d] * (size - 1)])
        x = _every(low, x, d + 2, max(-room, 0), 1, seen)
        w = _turned(low, w, d + 2)
    each = ins // groups
    cut = [groups, each, out, *kernel]
    w = low.emit("view", [w], "f32", cut, shape=cut)
    dims = [0, 2, 1, *range(3, len(cut))]
    w = low.emit("permute", [w], "f32", [cut[d] for d in dims], dims=dims)
    flat = [groups * out, each, *kernel]
    w = low.emit("view", [w], "f32", flat, shape=flat)
    ones = [1] * len(kernel)
    total = _sum_of_taps(low, x, w, bias, ones, dilation, groups, shape)
    return low.cast(Value(total, tuple(range(len(shape)))), low.dtypes[input.name])


def _spread(low: Lowering, x: str, dim: int, step: int) -> str:
    """With zeros between the elements along a dim, so that these are `step` apart."""
    if step == 1:
        return x
    shape = low.shapes[x]
    tall = [*shape[: dim + 1], 1, *shape[dim + 1 :]]
    x = low.emit("view", [x], "f32", tall, shape=tall)
    x = _with_sides(low, x, dim + 1, (0, step - 1), 0)
    flat = [*shape[:dim], low.product([shape[dim], step]), *shape[dim + 1 :]]
    x = low.emit("view", [x], "f32", flat, shape=flat)
    return _every(low, x, dim, 0, 1, low.sum([flat[dim], 1 - step]))


def _turned(low: Lowering, x: str, dim: int) -> str:
    """From the other end of a dim."""
    shape = low.shapes[x]
    count = shape[dim]
    if count == 1:
        return x
    places = {"start": count - 1, "end": -1, "step": -1}
    backwards = low.emit("arange", [], "i64", [count], dtype="i64", **places)
    return low.emit("index_select", [x, backwards], low.dtypes[x], shape, dim=dim)


def _of_patches(low: Lowering, node: Any, input: Value, weight: Value, bias: Value | None) -> Value:
    """The kernel's stride is its size, so each element of the input is in one patch at most."""
    dtype = low.dtypes[input.name]
    batch, out, *places = low.extents(node.meta["val"].shape)
    x, w = low.whole(node.args[0], input).name, low.whole(node.args[1], weight).name
    _, ins, *kernel = low.shapes[w]
    cut, behind = [batch, ins], []
    for d, (count, size) in enumerate(zip(places, kernel)):
        x = _every(low, x, d + 2, 0, 1, count * size)
        behind += [len(cut) + 1]
        cut += [count, size]
    x = low.emit("view", [x], dtype, cut, shape=cut)
    dims = [0, *(d - 1 for d in behind), 1, *behind]
    shape = [cut[d] for d in dims]
    x = low.emit("permute", [x], dtype, shape, dims=dims)
    flat = [low.product([batch, *places]), low.product([ins, *kernel])]
    x = low.emit("view", [x], dtype, flat, shape=flat)
    w = low.emit("view", [w], dtype, [out, flat[1]], shape=[out, flat[1]])
    w = low.emit("transpose", [w], dtype, [flat[1], out], dim0=0, dim1=1)
    attrs = {} if dtype == "f32" else {"out_dtype": "f32"}
    total = low.emit("mm", [x, w], "f32", [flat[0], out], **attrs)
    if bias is not None:
        total = low.emit("add", [total, low.cast(bias, "f32").name], "f32", [flat[0], out])
    shape = [batch, *places, out]
    total = low.emit("view", [total], "f32", shape, shape=shape)
    return low.cast(Value(total, (0, len(shape) - 1, *range(1, len(shape) - 1))), dtype)


@lowers("aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d")
@lowers("aten::max_pool1d_with_indices", "aten::max_pool2d_with_indices")
def _max_pool(
    low: Lowering, node, self_: Value, kernel_size: list[int], stride: list[int] = (),
    padding: list[int] = (0,), dilation: list[int] = (1,), ceil_mode: bool = False,
) -> Any:  # fmt: skip
    with_indices = isinstance(node.meta["val"], (tuple, list))
    tensor = node.meta["val"][0] if with_indices else node.meta["val"]
    x = low.whole(node.args[0], self_)
    made = _pooled(
        low, node, x, "maximum", -math.inf, kernel_size, stride, padding, dilation, ceil_mode, tensor
    )
    return [made, None] if with_indices else made


@lowers("aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d")
def _avg_pool(
    low: Lowering, node, self_: Value, kernel_size: list[int], stride: list[int] = (),
    padding: list[int] = (0,), ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:  # fmt: skip
    x = low.cast(low.whole(node.args[0], self_), "f32")

    def total(of: Value) -> Value:
        how = (kernel_size, stride, padding, [1], ceil_mode, node.meta["val"])
        return _pooled(low, node, of, "add", 0, *how)

    count: Any = divisor_override or math.prod(_each(kernel_size, _dims_of(node)))
    if not count_include_pad and not divisor_override and any(padding):
        shape = low.shapes[x.name]
        ones = low.emit("full", [], "f32", shape, value=1, dtype="f32", shape=shape)
        count = total(Value(ones, x.axes)).name
    sums = total(x)
    made = low.emit("div", [sums.name, count], "f32", low.shapes[sums.name])
    return low.cast(Value(made, sums.axes), low.dtypes[self_.name])


def _each(given: Any, dims: int) -> list[int]:
    """A number for each dim, or one for all."""
    given = [given] if isinstance(given, int) else list(given)
    return given * dims if len(given) == 1 else given


def _dims_of(node: Any) -> int:
    """Along how many dims a pool goes, which its op's name says."""
    return int(re.findall(r"pool(\d)d", node.target.name())[0])


def _pooled(
    low: Lowering, node: Any, x: Value, op: str, outside: float, kernel: Any, stride: Any,
    padding: Any, dilation: Any, ceil_mode: bool, tensor: Any,
) -> Value:  # fmt: skip
    """The elements that a kernel sees from each place, taken together."""
    dims = _dims_of(node)
    kernel, padding, dilation = (_each(each, dims) for each in (kernel, padding, dilation))
    stride = _each(stride or kernel, dims)
    shape = low.extents(tensor.shape)
    dtype = low.dtypes[x.name]
    if len(shape) == dims + 1:  # no batch
        x = low.viewed(x, [1, *low.shapes[x.name]], range(dims + 2))
        shape = [1, *shape]
    name = _padded(low, x.name, padding, outside)
    seen = zip(low.shapes[name][2:], shape[2:], kernel, stride, dilation)
    if ceil_mode and any((n - 1) * s + (k - 1) * d >= size for size, n, k, s, d in seen):
        raise Unsupported("a pool whose last places see less than the others (ceil_mode)")
    result = None
    for _, part in _taps(low, name, kernel, stride, dilation, shape[2:]):
        result = part if result is None else low.emit(op, [result, part], dtype, shape)
    if len(shape) > len(tensor.shape):
        return low.viewed(Value(result, ()), shape[1:], range(dims + 1))
    return Value(result, x.axes)


def _taps(low: Lowering, x: str, kernel: Any, stride: Any, dilation: Any, places: Any) -> Any:
    """Each element of a kernel, with what it sees from all places."""
    taps = list(itertools.product(*map(range, kernel)))
    if len(taps) > _MOST_TAPS:
        raise Unsupported(f"a kernel of more than {_MOST_TAPS} elements")
    for tap in taps:
        part = x
        for d, at in enumerate(tap):
            part = _every(low, part, d + 2, at * dilation[d], stride[d], places[d])
        yield tap, part


def _padded(low: Lowering, x: str, padding: list[int], value: float) -> str:
    """With a value on both sides of the dims behind the first two."""
    for d, count in enumerate(padding):
        x = _with_sides(low, x, d + 2, (count, count), value)
    return x


def _with_sides(low: Lowering, x: str, dim: int, counts: tuple[int, int], value: float) -> str:
    """With so many values in front of a dim's elements and behind them."""
    dtype, parts = low.dtypes[x], [x]
    for count, at in zip(counts, (0, 2)):
        if count:
            shape = list(low.shapes[x])
            shape[dim] = count
            made = low.emit("full", [], dtype, shape, value=value, dtype=dtype, shape=shape)
            parts.insert(at, made)
    if len(parts) == 1:
        return x
    shape = list(low.shapes[x])
    shape[dim] = low.sum([shape[dim], sum(counts)])
    return low.emit("cat", parts, dtype, shape, dim=dim)


def _every(low: Lowering, x: str, dim: int, start: int, step: int, count: Extent) -> str:
    """`count` elements along a dim, from `start` on."""
    shape = list(low.shapes[x])
    if start == 0 and step == 1 and shape[dim] == count:
        return x
    if not isinstance(count, int) and step != 1:
        raise Unsupported("a convolution in strides along a symbol")
    end = start + (count - 1) * step + 1 if isinstance(count, int) else low.sum([count, start])
    shape[dim] = count
    attrs = {"step": step} if step != 1 else {}
    return low.emit("slice", [x], low.dtypes[x], shape, dim=dim, start=start, end=end, **attrs)


def _is_cut(low: Lowering, node: Any) -> bool:
    """Whether only as many results as there are tokens are used, from the first one on."""
    tokens = low.extent(node.args[0].meta["val"].shape[2])
    return all(
        user.target._schema.name == "aten::slice"
        and user.args[1] in (2, -1)
        and (len(user.args) < 3 or not user.args[2])
        and low.extent(user.meta["val"].shape[2]) == tokens
        for user in node.users
    )


def _of_tokens(low: Lowering, node: Any, input: Value, weight: Value, bias: Value | None) -> Value:
    """Each token's sum over itself and those before it in its sequence, which are in a cache of pages."""
    dtype = low.dtypes[input.name]
    channels, _, taps = low.shapes[weight.name]
    x = low.ordered(input, [dim for dim in (2, 1, 0) if input.axes[dim] is not None])
    tokens = low.extent(node.args[0].meta["val"].shape[2])
    x = low.viewed(x, [tokens, channels], (0, 1))
    before = _before(low, low.cached_rows(node, x), tokens, taps)
    w = low.emit("view", [weight.name], dtype, [channels, taps], shape=[channels, taps])
    w = low.cast_name(w, "f32")
    total = None
    for tap in range(taps):
        rows = low.cast_name(x.name, "f32") if tap == taps - 1 else before(taps - 1 - tap)
        column = low.emit("select", [w], "f32", [channels], dim=1, index=tap)
        part = low.emit("mul", [rows, column], "f32", [tokens, channels])
        total = part if total is None else low.emit("add", [total, part], "f32", [tokens, channels])
    if bias is not None:
        wide = low.cast(bias, "f32").name
        total = low.emit("add", [total, wide], "f32", [tokens, channels])
    low.cut.add(node)
    return low.cast(Value(total, (None, 1, 0)), dtype)


def _before(low: Lowering, cache: str, tokens: Extent, taps: int) -> Any:
    """Gives the cache's rows, as f32, of what stands some places in front of each token, or zeros."""
    channels = low.shapes[cache][-1]
    _, size = low.shapes[cache][:2]
    flat = low.emit("view", [cache], low.dtypes[cache], ["?", channels], shape=[-1, channels])
    sequences, room = low.shapes["page_table"]
    table = low.emit("view", ["page_table"], "i32", ["?"], shape=[-1])
    # The sequences that end in front of a token are those before its own.
    ends = low.emit("slice", ["starts"], "i32", [sequences], dim=0, start=1)
    own = low.emit("arange", [], "i32", [tokens], start=0, end=tokens, step=1, dtype="i32")
    own = low.emit("view", [own], "i32", [tokens, 1], shape=[tokens, 1])
    done = low.emit("ge", [own, ends], "bool", [tokens, sequences])
    done = low.emit("to", [done], "i32", [tokens, sequences], dtype="i32")
    line = low.emit("sum", [done], "i64", [tokens], dim=[1])
    line = low.emit("to", [line], "i32", [tokens], dtype="i32")
    line = low.emit("mul", [line, room], "i32", [tokens])

    def rows(distance: int) -> str:
        at = low.emit("sub", ["positions", distance], "i32", [tokens])
        is_there = low.emit("ge", [at, 0], "bool", [tokens])
        at = low.emit("clamp", [at], "i32", [tokens], min=0)
        page = low.emit("floor_divide", [at, size], "i32", [tokens])
        page = low.emit("add", [line, page], "i32", [tokens])
        page = low.emit("index_select", [table, page], "i32", [tokens], dim=0)
        place = low.emit("remainder", [at, size], "i32", [tokens])
        slot = low.emit("mul", [page, size], "i32", [tokens])
        slot = low.emit("add", [slot, place], "i32", [tokens])
        found = low.emit("index_select", [flat, slot], low.dtypes[cache], [tokens, channels], dim=0)
        is_there = low.emit("view", [is_there], "bool", [tokens, 1], shape=[tokens, 1])
        found = low.cast_name(found, "f32")
        return low.emit("where", [is_there, found, 0.0], "f32", [tokens, channels])

    return rows
