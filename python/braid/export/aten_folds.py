"""How ATen's ops are written for tensors whose dims are unfolded (folds.py)."""

import itertools
import operator
from typing import Any, Iterable, Sequence

import sympy
import torch
from torch.utils import _pytree as pytree

from .aten_updates import indexed_dims
from .folds import (
    ELEMENTWISE, ONE, Dims, Folded, Unfolding, aten, broadcast, common, cut_into, exprs, extents_of,
    is_one, joined, like, over, product, tensors_of, unfolds,
)  # fmt: skip
from .lower import Unsupported, dim_of, is_product


def _single(x: Folded, *dims: int) -> None:
    """Refuses dims that are folds."""
    for dim in dims:
        if len(x.groups[dim_of(dim, x.rank)]) > 1:
            raise Unsupported("it goes along that dim")


def _operands(given: dict[str, Any]) -> list[Folded]:
    return [each for each in pytree.tree_leaves(given) if isinstance(each, Folded)]


def _with(given: dict[str, Any], operands: Iterable[Folded]) -> dict[str, Any]:
    """The arguments with these in place of their operands."""
    rest = iter(operands)
    return pytree.tree_map(lambda each: next(rest) if isinstance(each, Folded) else each, given)


# Ops of each element.


@unfolds("_to_copy", "clone", "alias", "contiguous", "detach", "dropout", "full_like", "zeros_like")
@unfolds("ones_like", "copy", "fill", "where", "masked_fill", "clamp", "maximum", "minimum", "pow")
@unfolds("gelu", "softplus", "lift_fresh_copy", "type_as", "braid::all_reduce")
@unfolds("braid::share", ELEMENTWISE)
def _pointwise(fold: Unfolding, node: Any, **given: Any) -> Folded:
    operands, groups = fold.aligned(*_operands(given))
    return Folded(fold.again(**_with(given, operands)), tuple(groups))


@unfolds("full", "zeros", "ones", "empty", "new_full", "new_zeros", "new_ones", "new_empty")
def _filled(fold: Unfolding, node: Any, size: Any, **given: Any) -> Folded:
    groups = tuple(map(fold.cut, extents_of(node)))
    sizes = fold.sizes(itertools.chain(*groups))
    return Folded(fold.again(size=sizes, **given), groups)


@unfolds("arange")
def _arange(fold: Unfolding, node: Any, end: Any, start: Any = 0, step: Any = 1, **_: Any) -> Folded:
    """The places of each dim, times the number of elements behind it."""
    (extent,) = extents_of(node)
    dims, device = fold.cut(extent), node.meta["val"].device
    result = None
    for i, size in enumerate(fold.sizes(dims)):
        made = fold.call(aten.arange.start_step, 0, size, 1, dtype=torch.int64, device=device)
        (apart,) = fold.sizes([product(dims[i + 1 :])])
        made = fold.call(aten.mul.Scalar, made, apart) if i + 1 < len(dims) else made
        for _ in dims[i + 1 :]:
            made = fold.call(aten.unsqueeze.default, made, -1)
        result = made if result is None else fold.call(aten.add.Tensor, result, made)
    if step != 1:
        result = fold.call(aten.mul.Scalar, result, step)
    if start != 0:
        result = fold.call(aten.add.Scalar, result, start)
    if (dtype := node.meta["val"].dtype) != torch.int64:
        result = fold.call(aten._to_copy.default, result, dtype=dtype)
    if (start, step) == (0, 1):
        fold.counted.add(result)
    return Folded(result, (dims,))


# Ops on shapes.


@unfolds("view", "_unsafe_view", "reshape", "flatten", "unflatten")
def _view(fold: Unfolding, node: Any, self_: Folded, dtype: Any = None, **_: Any) -> Folded:
    if dtype is not None:
        raise Unsupported("a view with another dtype")
    groups = [joined(group) for group in cut_into(self_.dims, extents_of(node))]
    fold.remember(groups)
    return fold.viewed(self_, groups)


@unfolds("expand")
def _expand(fold: Unfolding, node: Any, self_: Folded, **_: Any) -> Folded:
    groups = [fold.cut(extent) for extent in extents_of(node)]
    first = len(groups) - self_.rank
    for dim, group in enumerate(self_.groups):
        if not is_one(group):
            groups[first + dim] = group
    self_ = fold.viewed(self_, like(self_, groups))
    sizes = fold.sizes(itertools.chain(*groups))
    return Folded(fold.call(aten.expand.default, self_, sizes), tuple(groups))


@unfolds("transpose")
def _transpose(fold: Unfolding, node: Any, self_: Folded, dim0: int, dim1: int) -> Folded:
    dims = list(range(self_.rank))
    a, b = dim_of(dim0, self_.rank), dim_of(dim1, self_.rank)
    dims[a], dims[b] = b, a
    return fold.permuted(self_, dims)


@unfolds("t")
def _t(fold: Unfolding, node: Any, self_: Folded) -> Folded:
    return fold.permuted(self_, range(self_.rank)[::-1])


@unfolds("permute")
def _permute(fold: Unfolding, node: Any, self_: Folded, dims: list[int]) -> Folded:
    return fold.permuted(self_, [dim_of(dim, self_.rank) for dim in dims])


@unfolds("unsqueeze")
def _unsqueeze(fold: Unfolding, node: Any, self_: Folded, dim: int) -> Folded:
    groups = list(self_.groups)
    groups.insert(dim_of(dim, self_.rank + 1), ONE)
    return fold.viewed(self_, groups)


@unfolds("squeeze")
def _squeeze(fold: Unfolding, node: Any, self_: Folded, dim: Any = None) -> Folded:
    dims = range(self_.rank) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [dim_of(each, self_.rank) for each in dims]
    kept = [g for d, g in enumerate(self_.groups) if d not in dims or not is_one(g)]
    return fold.viewed(self_, kept)


@unfolds("select")
def _select(fold: Unfolding, node: Any, self_: Folded, dim: int, index: Any) -> Folded:
    dim = dim_of(dim, self_.rank)
    axes = self_.at(dim)
    if len(axes) > 1 and index not in (0, -1):  # the first or last one of all
        _single(self_, dim)
    made = self_.node
    for axis in reversed(axes):
        made = fold.call(aten.select.int, made, axis, index)
    return Folded(made, self_.groups[:dim] + self_.groups[dim + 1 :])


@unfolds("stack")
def _stack(fold: Unfolding, node: Any, tensors: list[Folded], dim: int = 0) -> Folded:
    tensors, groups = fold.aligned(*tensors)
    dim = dim_of(dim, len(groups) + 1)
    made = fold.again(tensors=tensors, dim=_axis(groups, dim))
    return Folded(made, (*groups[:dim], (sympy.Integer(len(tensors)),), *groups[dim:]))


@unfolds("repeat")
def _repeat(fold: Unfolding, node: Any, self_: Folded, repeats: list[Any]) -> Folded:
    """Of a fold the times are one more dim in front."""
    own = [*[ONE] * (len(repeats) - self_.rank), *self_.groups]
    tall, wide, times, result = [], [], [], []
    for count, group, extent in zip(repeats, own, extents_of(node)):
        if is_product(extent) and not is_one(group):
            more = over(extent, product(group))
            tall.append((*ONE, *group))
            wide.append((more, *group))
            result.append(group if more == 1 else (more, *group))
            times += [1] * len(wide[-1])
        elif is_product(extent):
            raise Unsupported("it goes along that dim")
        else:
            tall.append(group)
            wide.append(group)
            result.append((extent,))
            times.append(count)
    sizes = fold.sizes(itertools.chain(*wide))
    made = fold.call(aten.expand.default, fold.viewed(self_, tall), sizes)
    if any(count != 1 for count in times):
        made = fold.again(self_=made, repeats=times)
    done = [(extent,) if len(group) == 1 else group for group, extent in zip(wide, extents_of(node))]
    return fold.viewed(Folded(made, tuple(done)), result)


@unfolds("repeat_interleave")
def _repeat_interleave(
    fold: Unfolding, node: Any, self_: Folded, repeats: Any, dim: int | None, **_: Any
) -> Folded:
    """The times are one more dim of the fold."""
    if not isinstance(repeats, int) or dim is None:
        raise Unsupported("it goes along that dim")
    dim = dim_of(dim, self_.rank)
    groups = list(self_.groups)
    groups[dim] = (*groups[dim], ONE[0])
    tall = fold.viewed(self_, groups)
    groups[dim] = (*self_.groups[dim], sympy.Integer(repeats))
    sizes = fold.sizes(itertools.chain(*groups))
    return Folded(fold.call(aten.expand.default, tall, sizes), tuple(groups))


@unfolds("constant_pad_nd")
def _pad(fold: Unfolding, node: Any, self_: Folded, pad: list[Any], value: Any = 0) -> Folded:
    counts: list[Any] = []
    extents = extents_of(node)
    groups = list(self_.groups)
    for i in range(len(pad) // 2):
        dim, sides = self_.rank - 1 - i, pad[2 * i : 2 * i + 2]
        if any(side != 0 for side in sides):
            _single(self_, dim)
            groups[dim] = (extents[dim],)
        counts += [*sides] * len(groups[dim])
    return Folded(fold.again(self_=self_, pad=counts, value=value), tuple(groups))


# Ops along dims.


@unfolds("flip")
def _flip(fold: Unfolding, node: Any, self_: Folded, dims: list[int]) -> Folded:
    axes = [axis for dim in dims for axis in self_.at(dim_of(dim, self_.rank))]
    return Folded(fold.again(self_=self_, dims=axes), self_.groups)


@unfolds("softmax", "_softmax", "log_softmax", "_log_softmax")
def _softmax(fold: Unfolding, node: Any, self_: Folded, dim: int, **given: Any) -> Folded:
    """Along a fold it is written out, in f32."""
    dim = dim_of(dim, self_.rank)
    axes = self_.at(dim)
    if len(axes) == 1:
        return _along(fold, node, self_=self_, dim=dim, **given)
    x = fold.call(aten._to_copy.default, self_, dtype=torch.float32)
    x = fold.call(aten.sub.Tensor, x, fold.call(aten.amax.default, x, axes, True))
    powers = fold.call(aten.exp.default, x)
    total = fold.call(aten.sum.dim_IntList, powers, axes, True)
    if "log" in node.target._schema.name:
        made = fold.call(aten.sub.Tensor, x, fold.call(aten.log.default, total))
    else:
        made = fold.call(aten.div.Tensor, powers, total)
    dtype = node.meta["val"].dtype
    return Folded(fold.call(aten._to_copy.default, made, dtype=dtype), self_.groups)


@unfolds("topk", "sort")
@unfolds("slice", "split", "split_with_sizes", "chunk", "cat", "gather", "scatter")
@unfolds("slice_scatter", "roll")
def _along(fold: Unfolding, node: Any, **given: Any) -> Any:
    """Of dims that stay, each by itself."""
    operands = _operands(given)
    name = "dims" if "dims" in given else "dim"
    rank = operands[0].rank
    dims = given[name] if name == "dims" else [given[name]]
    dims = [dim_of(dim, rank) for dim in dims]
    if not dims or any(each.rank != rank for each in operands):
        raise Unsupported("it goes along that dim")
    if extents_of(node) == tuple(map(product, operands[0].groups)) and _is_op(node, "slice"):
        return operands[0]  # it is the whole
    for each in operands:
        _single(each, *dims)
    operands, groups = fold.aligned(*operands, but=dims)
    axes = [_axis(groups, dim) for dim in dims]
    changed = {name: axes if name == "dims" else axes[0]}
    made = fold.again(**_with({**given, **changed}, operands))

    def group(dim: int, extent: sympy.Expr) -> Dims:
        if dim in dims:
            return (extent,)
        return ONE * len(groups[dim]) if extent == 1 else groups[dim]

    return _results(
        fold, made, [[group(*each) for each in enumerate(exprs(t.shape))] for t in tensors_of(node)]
    )


def _is_op(node: Any, name: str) -> bool:
    return node.target._schema.name == f"aten::{name}"


def _axis(groups: Sequence[Dims], dim: int) -> int:
    """Where a dim begins in a node of these groups."""
    return sum(len(group) for group in groups[:dim])


def _results(fold: Unfolding, made: torch.fx.Node, groups: Sequence[Sequence[Dims]]) -> Any:
    """One result, or those of an op that has several."""
    if isinstance(made.meta["val"], torch.Tensor):
        return Folded(made, tuple(groups[0]))
    parts = [fold.call(operator.getitem, made, i) for i in range(len(groups))]
    return [Folded(part, tuple(group)) for part, group in zip(parts, groups)]


@unfolds("unfold")
def _windows(
    fold: Unfolding, node: Any, self_: Folded, dimension: int, size: int, step: int
) -> Folded:
    dim = dim_of(dimension, self_.rank)
    _single(self_, dim)
    made = fold.call(aten.unfold.default, self_, self_.at(dim)[0], size, step)
    extents = extents_of(node)
    groups = [g if d != dim else (extents[d],) for d, g in enumerate(self_.groups)]
    return Folded(made, (*groups, (extents[-1],)))


@unfolds("cumsum")
def _cumsum(fold: Unfolding, node: Any, self_: Folded, dim: int, dtype: Any = None) -> Any:
    """Along a fold: the sums along its last dim, and what is in front of each of these."""
    dim = dim_of(dim, self_.rank)
    axes = self_.at(dim)
    if len(axes) == 1:
        return _along(fold, node, self_=self_, dim=dim, dtype=dtype)
    if node.meta["val"].is_floating_point():
        raise Unsupported("it goes along that dim")  # other sums would be rounded otherwise
    made = fold.call(aten._to_copy.default, self_, dtype=node.meta["val"].dtype)
    result = fold.call(aten.cumsum.default, made, axes[-1])
    for axis, behind in zip(axes[-2::-1], axes[:0:-1]):
        made = fold.call(aten.sum.dim_IntList, made, [behind], True, dtype=node.meta["val"].dtype)
        before = fold.call(aten.cumsum.default, made, axis)
        before = fold.call(aten.sub.Tensor, before, made)
        result = fold.call(aten.add.Tensor, result, before)
    return Folded(result, self_.groups)


@unfolds("mean", "sum", "amax", "amin", "prod", "any", "all", "var", "var_mean", "argmax", "argmin")
@unfolds("max", "min")
def _reduction(fold: Unfolding, node: Any, self_: Folded, **given: Any) -> Any:
    if "other" in given:
        return _pointwise(fold, node, self_=self_, **given)
    dim = given.get("dim")
    dims = list(range(self_.rank)) if dim is None or dim == [] else dim
    is_list = isinstance(dims, (list, tuple))
    dims = [dim_of(each, self_.rank) for each in (dims if is_list else [dims])]
    if dim is None or dim == []:
        if "arg" in node.target._schema.name:
            _single(self_, *dims)
        made = fold.again(self_=self_, **given)
    elif is_list:
        axes = [axis for each in dims for axis in self_.at(each)]
        made = fold.again(self_=self_, **{**given, "dim": axes, "keepdim": False})
    else:
        axes, name = self_.at(dims[0]), node.target._schema.name.removeprefix("aten::")
        if len(axes) > 1 and name in ("argmax", "argmin", "max", "min"):
            made = _extreme(fold, self_, dims[0], name)
        else:
            if len(axes) > 1 and name not in ("prod", "any", "all"):
                _single(self_, *dims)
            made = self_.node
            for axis in reversed(axes):
                made = fold.again(self_=made, **{**given, "dim": axis, "keepdim": False})
    kept = [group for each, group in enumerate(self_.groups) if each not in dims]
    if isinstance(made, list):
        found = [Folded(each, tuple(kept)) for each in made]
        found = found[1] if len(tensors_of(node)) == 1 else found
    else:
        found = _results(fold, made, [kept] * len(tensors_of(node)))
    if not given.get("keepdim"):
        return found
    wide = [ONE if each in dims else group for each, group in enumerate(self_.groups)]
    is_one = isinstance(found, Folded)
    return fold.viewed(found, wide) if is_one else [fold.viewed(each, wide) for each in found]


def _extreme(fold: Unfolding, x: Folded, dim: int, name: str) -> list[torch.fx.Node]:
    """The largest or least element along a fold, and its place: of each of the fold's dims that of what
    those behind it have."""
    axes, sizes = x.at(dim), fold.sizes(x.groups[dim])
    most = name.endswith("max")
    of_values = aten.amax.default if most else aten.amin.default
    of_places = aten.argmax.default if most else aten.argmin.default
    values, places, behind = x.node, None, 1
    for axis, size in zip(reversed(axes), reversed(sizes)):
        found = fold.call(of_places, values, axis, True)
        values = fold.call(of_values, values, [axis])
        if places is not None:
            places = fold.call(aten.gather.default, places, axis, found)
            found = fold.call(aten.add.Tensor, places, fold.call(aten.mul.Scalar, found, behind))
        places = fold.call(aten.squeeze.dim, found, axis)
        behind = behind * size
    return [values, places]


# Ops of rows.


@unfolds("layer_norm", "rms_norm")
def _norm(fold: Unfolding, node: Any, input: Folded, normalized_shape: Any, **given: Any) -> Folded:
    _single(input, *range(-len(normalized_shape), 0))
    made = fold.again(input=input, normalized_shape=normalized_shape, **given)
    return Folded(made, input.groups)


@unfolds("braid::all_gather", "braid::shard")
def _parts(fold: Unfolding, node: Any, x: Folded, ranks: int) -> Folded:
    _single(x, -1)
    return Folded(fold.again(x=x, ranks=ranks), (*x.groups[:-1], extents_of(node)[-1:]))


@unfolds("embedding")
def _embedding(fold: Unfolding, node: Any, weight: Folded, indices: Folded, **given: Any) -> Folded:
    _single(weight, 0, 1)
    made = fold.again(weight=weight, indices=indices, **given)
    return Folded(made, (*indices.groups, weight.groups[1]))


@unfolds("linear")
def _linear(fold: Unfolding, node: Any, input: Folded, weight: Folded, bias: Any = None) -> Folded:
    if weight.rank == 1:
        return _mm(fold, node, input, weight=weight)
    _single(input, -1)
    _single(weight, 0, 1)
    made = fold.again(input=input, weight=weight, bias=bias)
    return Folded(made, (*input.groups[:-1], weight.groups[0]))


@unfolds("scaled_dot_product_attention")
def _attention(
    fold: Unfolding, node: Any, query: Folded, key: Folded, value: Folded, **given: Any
) -> Folded:
    tensors = [query, key, value]
    mask = given.pop("attn_mask", None)
    for each in tensors:
        _single(each, -1, -2)
    lead = broadcast([each.groups[:-2] for each in tensors])
    tensors = [fold.viewed(each, [*lead, *each.groups[-2:]]) for each in tensors]
    if mask is not None:
        mask = fold.viewed(mask, like(mask, [*lead, *mask.groups[-2:]]))
    names = dict(zip(("query", "key", "value"), tensors))
    made = fold.again(**names, attn_mask=mask, **given)
    return Folded(made, (*lead, query.groups[-2], value.groups[-1]))


@unfolds("mm", "bmm", "matmul")
def _mm(fold: Unfolding, node: Any, self_: Folded, **given: Any) -> Folded:
    (other,) = given.values()
    if self_.rank == 1:
        raise Unsupported("it is a product with a vector")
    if other.rank == 1:
        column = _matmul(fold, self_, fold.viewed(other, [*other.groups, ONE]))
        return fold.viewed(column, column.groups[:-1])
    return _matmul(fold, self_, other)


@unfolds("_weight_int8pack_mm")
def _weight_int8pack_mm(
    fold: Unfolding, node: Any, self_: Folded, mat2: Folded, scales: Folded
) -> Folded:
    wide = fold.call(aten._to_copy.default, mat2, dtype=self_.node.meta["val"].dtype)
    made = _matmul(fold, self_, fold.permuted(Folded(wide, mat2.groups), [1, 0]))
    return Folded(fold.call(aten.mul.Tensor, made, scales), made.groups)


@unfolds("addmm", "baddbmm")
def _addmm(
    fold: Unfolding, node: Any, self_: Folded, beta: Any = 1, alpha: Any = 1, **given: Any
) -> Folded:
    product = _matmul(fold, *given.values())
    if alpha != 1:
        product = Folded(fold.call(aten.mul.Scalar, product, alpha), product.groups)
    if beta != 1:
        self_ = Folded(fold.call(aten.mul.Scalar, self_, beta), self_.groups)
    operands, groups = fold.aligned(product, self_)
    return Folded(fold.call(aten.add.Tensor, *operands), tuple(groups))


def _matmul(fold: Unfolding, left: Folded, right: Folded) -> Folded:
    """All but the last dims of a fold stand in front, as if there were as many matrices; products along
    such dims are added up in f32."""
    lead = broadcast([left.groups[:-2], right.groups[:-2]]) if left.rank + right.rank > 4 else []
    inner = common(left.groups[-1], right.groups[-2])
    rows, columns = left.groups[-2], right.groups[-1]
    groups = (*lead, rows, columns)
    left = fold.viewed(left, like(left, [*lead, rows, inner]))
    right = fold.viewed(right, like(right, [*lead, inner, columns]))
    if right.rank == 2 and len(columns) == len(inner) == 1:
        return Folded(fold.call(aten.matmul.default, left, right), groups)
    k, m, n = len(inner) - 1, len(rows) - 1, len(columns) - 1
    dtype = left.node.meta["val"].dtype
    if k:
        left, right = (
            Folded(fold.call(aten._to_copy.default, x, dtype=torch.float32), x.groups)
            for x in (left, right)
        )
    at = sum(map(len, left.groups[:-2]))
    a = [*range(at), *range(at + m + 1, at + m + 1 + k), *range(at, at + m + 1), at + m + 1 + k]
    a = _with_ones(fold, fold.call(aten.permute.default, left, a), at + k + m, n)
    at = sum(map(len, right.groups[:-2]))
    b = [*range(at + k), *range(at + k + 1, at + k + 1 + n), at + k, at + k + 1 + n]
    b = _with_ones(fold, fold.call(aten.permute.default, right, b), at + k, m)
    made = fold.call(aten.matmul.default, a, b)
    at = sum(map(len, lead))
    if k:
        made = fold.call(aten.sum.dim_IntList, made, list(range(at, at + k)))
        made = fold.call(aten._to_copy.default, made, dtype=dtype)
    last = at + m + n
    order = [*range(at + m), last, *range(at + m, last), last + 1]
    return Folded(fold.call(aten.permute.default, made, order), groups)


def _with_ones(fold: Unfolding, x: torch.fx.Node, dim: int, count: int) -> torch.fx.Node:
    for _ in range(count):
        x = fold.call(aten.unsqueeze.default, x, dim)
    return x


# Ops that take elements by indices.


@unfolds("index", "index_put")
def _index(fold: Unfolding, node: Any, self_: Folded, indices: list[Any], **given: Any) -> Folded:
    """An index of a fold is one for each of its dims."""
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    tensors = [indices[dim] for dim in dims]
    if any(each.node.meta["val"].dtype not in (torch.int32, torch.int64) for each in tensors):
        raise Unsupported("index with a mask")
    if dims == [0, 1] and self_.rank == 2 and tensors[0].node in fold.counted and not given:
        return _of_each_row(fold, self_, *tensors)
    tensors, taken = fold.aligned(*tensors)
    wanted: list[Any] = [None] * len(self_.dims)
    for dim, index in zip(dims, tensors):
        for axis, part in zip(self_.at(dim), _places(fold, index.node, self_.groups[dim])):
            wanted[axis] = part
    order, at = indexed_dims(self_.rank, dims)
    rest = [self_.groups[dim] for dim in order[len(dims) :]]
    groups = (*rest[:at], *taken, *rest[at:])
    if "values" not in given:
        return Folded(fold.again(self_=self_, indices=wanted), groups)
    values = given.pop("values")
    values = fold.viewed(values, like(values, groups))
    if is_product(product(itertools.chain(*taken))):
        if not given["accumulate"] or len(dims) > 1 or len(taken) > 1:
            raise Unsupported("it writes to as many places")
        values = fold.call(aten.expand.default, values, fold.sizes(itertools.chain(*groups)))
        return _added(fold, self_, dims[0], tensors[0], Folded(values, groups))
    return Folded(fold.again(self_=self_, indices=wanted, values=values, **given), self_.groups)


def _of_each_row(fold: Unfolding, x: Folded, rows: Folded, index: Folded) -> Folded:
    """One element of each row, such as what a loss takes."""
    _single(x, 1)
    if product(rows.groups[0]) != product(x.groups[0]) or index.rank != 1:
        raise Unsupported("it is of some rows")
    column = fold.viewed(index, [*index.groups, ONE])
    (x, index), groups = fold.aligned(x, column, but=[1])
    (count,) = fold.sizes(x.groups[1])
    is_negative = fold.call(aten.lt.Scalar, index, 0)
    front = fold.call(aten.add.Scalar, index, count)
    index = fold.call(aten.where.self, is_negative, front, index)
    made = fold.call(aten.gather.default, x, len(groups[0]), index)
    return Folded(fold.call(aten.squeeze.dim, made, -1), (groups[0],))


def _places(fold: Unfolding, index: torch.fx.Node, dims: Dims) -> list[torch.fx.Node]:
    """An index of a fold of these dims as one of each."""
    result: list[torch.fx.Node] = []
    for size in reversed(fold.sizes(dims[1:])):
        result.insert(0, fold.call(aten.remainder.Scalar, index, size))
        index = fold.call(aten.div.Scalar_mode, index, size, rounding_mode="floor")
    return [index, *result]


@unfolds("index_select")
def _index_select(fold: Unfolding, node: Any, self_: Folded, dim: int, index: Folded) -> Folded:
    return _by_rows(fold, aten.index.Tensor, self_, dim_of(dim, self_.rank), index)


@unfolds("index_add", "index_copy")
def _index_add(
    fold: Unfolding, node: Any, self_: Folded, dim: int, index: Folded, source: Folded, alpha: Any = 1
) -> Folded:
    dim = dim_of(dim, self_.rank)
    adds = _is_op(node, "index_add")
    if alpha != 1:
        source = Folded(fold.call(aten.mul.Scalar, source, alpha), source.groups)
    if len(self_.groups[dim]) == 1 and adds:
        return _added(fold, self_, dim, index, source)
    _single(index, 0)
    groups = [*self_.groups[:dim], source.groups[dim], *self_.groups[dim + 1 :]]
    values = fold.viewed(source, groups)
    made = _by_rows(fold, aten.index_put.default, self_, dim, index, values, adds)
    return Folded(made.node, self_.groups)


def _added(fold: Unfolding, x: Folded, dim: int, index: Folded, source: Folded) -> Folded:
    """For each but the last dims of a fold by itself, and then all together: of floats in f32. The index
    is of the dim, or of each element."""
    group = common(source.groups[dim], index.groups[dim if index.rank > 1 else 0])
    rest, count = [*x.groups[:dim], group, *x.groups[dim + 1 :]], len(group) - 1
    source = fold.viewed(source, rest)
    if index.rank == 1:
        column = [ONE * len(each) for each in rest]
        column[dim] = group
        index = fold.viewed(index, column)
        index = Folded(fold.call(aten.expand.default, index, fold.sizes(source.dims)), source.groups)
    each, places = (_in_front(fold, of, dim) for of in (source, fold.viewed(index, rest)))
    dtype = x.node.meta["val"].dtype
    wide = torch.float32 if dtype.is_floating_point else dtype
    each = fold.call(aten._to_copy.default, each, dtype=wide)
    total = fold.call(aten.new_zeros.default, each, fold.sizes([*group[:-1], *x.dims]))
    total = fold.call(aten.scatter_add.default, total, count + x.at(dim)[0], places, each)
    if count:
        total = fold.call(aten.sum.dim_IntList, total, list(range(count)))
    total = fold.call(aten.add.Tensor, fold.call(aten._to_copy.default, x, dtype=wide), total)
    return Folded(fold.call(aten._to_copy.default, total, dtype=dtype), x.groups)


def _in_front(fold: Unfolding, x: Folded, dim: int) -> torch.fx.Node:
    """With all but the last dims of a fold in front of all others."""
    *lead, last = x.at(dim)
    order = [*lead, *range(x.at(dim)[0]), *range(last, len(x.dims))]
    return fold.call(aten.permute.default, x, order)


@unfolds("scatter_add")
def _scatter_add(
    fold: Unfolding, node: Any, self_: Folded, dim: int, index: Folded, src: Folded
) -> Folded:
    dim = dim_of(dim, self_.rank)
    folds = [max(len(each.groups[dim]) for each in (index, src)), len(self_.groups[dim])]
    if folds[0] == 1 or folds[1] > 1:
        return _along(fold, node, self_=self_, dim=dim, index=index, src=src)
    others = [d for d in range(self_.rank) if d != dim]
    if any(product(x.groups[d]) != product(self_.groups[d]) for x in (index, src) for d in others):
        raise Unsupported("it is of some columns")
    if product(index.groups[dim]) != product(src.groups[dim]):
        raise Unsupported("it has fewer indices than elements")
    return _added(fold, self_, dim, index, src)


def _by_rows(
    fold: Unfolding, target: Any, self_: Folded, dim: int, index: Folded, *more: Any
) -> Folded:
    places = _places(fold, index.node, self_.groups[dim])
    indices = [None] * self_.at(dim)[0] + places
    groups = (*self_.groups[:dim], index.groups[0], *self_.groups[dim + 1 :])
    return Folded(fold.call(target, self_, indices, *more), groups)


# Ops of pictures.


def _beside(fold: Unfolding, x: Folded) -> tuple[Folded, int]:
    """With the first dim of the fold of a batch alone, and the others behind the channels."""
    batch, channels, *places = x.groups
    _single(x, *range(1, x.rank))
    split = Folded(x.node, (*((each,) for each in batch), channels, *places))
    count = len(batch)
    order = [0, count, *range(1, count), *range(count + 1, split.rank)]
    return fold.permuted(split, order), count - 1


def _back(fold: Unfolding, made: torch.fx.Node, batch: Dims, traced: Any) -> Folded:
    count = len(batch)
    extents = exprs(traced.shape)
    rank = count + len(extents) - 1
    order = [0, *range(2, count + 1), 1, *range(count + 1, rank)]
    made = fold.call(aten.permute.default, made, order)
    return Folded(made, (batch, *((each,) for each in extents[1:])))


@unfolds("convolution")
def _convolution(fold: Unfolding, node: Any, input: Folded, weight: Folded, **given: Any) -> Folded:
    """With a kernel of one along the other dims of the batch."""
    x, count = _beside(fold, input)
    for _ in range(count):
        weight = Folded(fold.call(aten.unsqueeze.default, weight, 2), ())
    for name, one in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0)):
        given[name] = [one] * count + list(given[name])
    made = fold.again(input=x, weight=weight, **given)
    return _back(fold, made, input.groups[0], node.meta["val"])


@unfolds("_native_batch_norm_legit_no_training")
def _batch_norm(fold: Unfolding, node: Any, input: Folded, **given: Any) -> list[Any]:
    x, _ = _beside(fold, input)
    made = fold.call(operator.getitem, fold.again(input=x, **given), 0)
    return [_back(fold, made, input.groups[0], node.meta["val"][0])]


@unfolds("native_group_norm")
def _group_norm(
    fold: Unfolding, node: Any, input: Folded, weight: Any, bias: Any, group: int, eps: float, **_: Any
) -> list[Any]:
    """A layer norm of each group, then weights of the channels, in f32."""
    batch, channels, *places = input.groups
    _single(input, *range(1, input.rank))
    row = (product((channels[0] / group, *(each[0] for each in places))),)
    x = fold.call(aten._to_copy.default, input, dtype=torch.float32)
    x = fold.viewed(Folded(x, input.groups), [batch, (sympy.Integer(group),), row])
    made = fold.call(aten.layer_norm.default, x, fold.sizes(row), None, None, eps)
    x = fold.viewed(Folded(made, x.groups), input.groups)
    for op, each in ((aten.mul.Tensor, weight), (aten.add.Tensor, bias)):
        if each is not None:
            tall = fold.viewed(each, [channels, *[ONE] * len(places)])
            x = Folded(fold.call(op, x, tall), x.groups)
    dtype = input.node.meta["val"].dtype
    return [Folded(fold.call(aten._to_copy.default, x, dtype=dtype), x.groups)]
