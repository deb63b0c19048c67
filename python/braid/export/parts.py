"""Of which dims of a traced tensor each rank has a part, as the plan cuts its weights.

Heads, or columns of a matmul, go through most ops side by side. What would need the parts that other
ranks have is refused, and so is an op that is not known here. A sum of which every rank has a part, as
a `rowwise` matmul gives, goes through what is linear, to its all-reduce.
"""

import operator
from typing import Any, Callable, Iterable, Mapping, NamedTuple

import sympy
import torch

from .traced import Unsupported, arguments_of, dim_of


class Part(NamedTuple):
    """A dim that is cut. It may have `outer` whole ones in front of what is cut, as where batches and
    heads become one dim; and it may be `blocks`, one behind the other, each of which is cut."""

    dim: int
    outer: sympy.Expr = sympy.Integer(1)
    blocks: int = 1


Parts = frozenset[Part]
NONE: Parts = frozenset()

_Rule = Callable[["Followed", torch.fx.Node, dict[str, Any]], Any]
_RULES: dict[str, _Rule] = {}

# What gives of sums of parts the sum of what it gives of each.
_LINEAR = set(
    "mul div neg add sub sum mean view reshape _unsafe_view flatten unflatten permute transpose t"
    " unsqueeze squeeze expand select slice split split_with_sizes chunk cat stack clone alias"
    " _to_copy index index_select index_add index_put scatter scatter_add slice_scatter"
    " select_scatter where masked_fill copy constant_pad_nd".split()
)
_LIKE = set("zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty".split())


def _rule(*names: str) -> Callable[[_Rule], _Rule]:
    def register(function: _Rule) -> _Rule:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return register


def _shape(node: torch.fx.Node) -> list[sympy.Expr]:
    return [
        size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
        for size in node.meta["val"].shape
    ]


def _rank(node: torch.fx.Node) -> int:
    return node.meta["val"].ndim


def _name(node: torch.fx.Node) -> str:
    """Of an op, not of Python's own functions, such as those of symbols."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return ""
    return node.target._schema.name.removeprefix("aten::")


def _is_zeros(node: torch.fx.Node) -> bool:
    is_full = _name(node) in ("full", "full_like", "new_full")
    return _name(node) in ("zeros", "zeros_like", "new_zeros") or (
        is_full and arguments_of(node)["fill_value"] == 0
    )


def _moved(parts: Parts, to: Callable[[int], int]) -> Parts:
    return frozenset(part._replace(dim=to(part.dim)) for part in parts)


class Places:
    """Of which dims a tensor's elements depend on their place, as those of an arange do: as the rules
    see it, which move dims alike. What a rule refuses is not followed further."""

    def __init__(self):
        self._of: dict[torch.fx.Node, Parts] = {}

    def of(self, node: torch.fx.Node) -> Parts:
        return self._of.get(node, NONE)

    def visit(self, node: torch.fx.Node, rule: "_Rule | None") -> None:
        if _name(node) == "arange":
            self._of[node] = frozenset({Part(0)})
        elif node.target is operator.getitem:
            self._of[node] = self.of(node.args[0])
        elif rule is not None and any(map(self.of, node.all_input_nodes)):
            try:
                found = rule(self, node, arguments_of(node))
            except Unsupported:
                return
            self._of[node] = frozenset().union(*found) if isinstance(found, list) else found

    def refuse_along(self, node: torch.fx.Node, operand: Any, dims: Iterable[int]) -> None:
        if isinstance(operand, torch.fx.Node):
            along = {dim_of(dim, _rank(operand)) for dim in dims}
            if any(part.dim in along for part in self.of(operand)):
                raise Unsupported("")

    def refuse_places(self, *_: Any) -> None: ...

    def is_sum(self, _: torch.fx.Node) -> bool:
        return False

    def add_sum(self, _: torch.fx.Node) -> None:
        raise Unsupported("")

    is_weight = is_sum


class Followed:
    """Follows parts through a program. `cut` has the dim, and the blocks, of each placeholder that is a
    weight of which ranks have parts."""

    def __init__(self, cut: Mapping[str, tuple[int, int]]):
        self._cut = cut
        self._parts: dict[torch.fx.Node, Any] = {}  # of several results a list
        self._sums: set[torch.fx.Node] = set()  # of which each rank has a part
        self._weights: set[torch.fx.Node] = set()  # and what is a view of one
        self._places = Places()

    def of(self, node: torch.fx.Node) -> Parts:
        found = self._parts.get(node, NONE)
        return frozenset().union(*found) if isinstance(found, list) else found

    def check_output(self, node: torch.fx.Node) -> None:
        if node in self._sums:
            raise Unsupported("an output that is a sum of which the plan gives each rank a part")
        if self.of(node):
            raise Unsupported(
                "an output of which the plan gives each rank a part; colwise_gather_output gives all"
            )

    def visit(self, node: torch.fx.Node) -> None:
        """Follows one more node, whose operands were before it."""
        if not self._cut:
            return
        if node.op == "placeholder":
            if node.name in self._cut:
                dim, blocks = self._cut[node.name]
                self._parts[node] = frozenset({Part(dim, blocks=blocks)})
                self._weights.add(node)
        elif node.op == "call_function" and "problem" not in node.meta:
            self._follow_sum(node)
            self._parts[node] = self._parts_of(node)
            self._places.visit(node, _rule_of(node))

    def refuse_along(self, node: torch.fx.Node, operand: Any, dims: Iterable[int]) -> None:
        if not isinstance(operand, torch.fx.Node):
            return
        along = {dim_of(dim, _rank(operand)) for dim in dims}
        if any(part.dim in along for part in self.of(operand)):
            raise Unsupported(f"{_name(node)} along a dim of which the plan gives each rank a part")

    def refuse_places(self, node: torch.fx.Node, operand: Any, parts: Parts, rank: int) -> None:
        """Where the operand, broadcast to a rank, depends on the places along a dim that is cut: a rank
        counts its own."""
        if not isinstance(operand, torch.fx.Node):
            return
        dims = {part.dim for part in parts}
        for place in self._places.of(operand):
            if place.dim + rank - _rank(operand) in dims and _shape(operand)[place.dim] != 1:
                raise Unsupported(
                    f"{_name(node)} of places along a dim of which the plan gives each rank a part"
                )

    def _follow_sum(self, node: torch.fx.Node) -> None:
        sums = [each for each in node.all_input_nodes if each in self._sums]
        if not sums or node.target is torch.ops.braid.all_reduce.default:
            return
        self._sums.add(node)
        if node.target is operator.getitem:
            return
        name = _name(node)
        if name not in _LINEAR:
            raise Unsupported(f"{name} of a sum of which the plan gives each rank a part")
        if name in ("add", "sub"):
            for each in node.all_input_nodes:
                if each not in self._sums and not _is_zeros(each):  # where sums begin
                    raise Unsupported(f"{name} to a sum of which the plan gives each rank a part")

    def _parts_of(self, node: torch.fx.Node) -> Any:
        if node.target is torch.ops.braid.share.default:
            self._sums.add(node)
        if node.target is torch.ops.braid.shard.default:
            return frozenset({Part(_rank(node) - 1)})
        given = [each for each in node.all_input_nodes if self.of(each)]
        if not given or "val" not in node.meta:
            return NONE
        if node.target is operator.getitem:
            found = self._parts[node.args[0]]
            return found[node.args[1]] if isinstance(found, list) else found
        if not isinstance(node.target, torch._ops.OpOverload):
            return NONE
        name = _name(node)
        if name in _LIKE:
            return NONE
        rule = _rule_of(node)
        if rule is None:
            raise Unsupported(f"{name} of what the plan gives each rank a part of")
        if len(given) == 1 and given[0] in self._weights and name in _VIEWS:
            self._weights.add(node)
        return rule(self, node, arguments_of(node))

    def is_sum(self, node: torch.fx.Node) -> bool:
        return node in self._sums

    def add_sum(self, node: torch.fx.Node) -> None:
        """Each rank adds up its own part."""
        self._sums.add(node)

    def is_weight(self, node: torch.fx.Node) -> bool:
        return node in self._weights


def _rule_of(node: torch.fx.Node) -> _Rule | None:
    rule = _RULES.get(_name(node))
    if rule is None and isinstance(node.target, torch._ops.OpOverload):
        rule = _pointwise if torch.Tag.pointwise in node.target.tags else None
    return rule


@_rule("_to_copy", "clone", "alias", "copy", "type_as", "where", "masked_fill")
def _pointwise(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    rank = _rank(node)
    tensors = [each for each in node.all_input_nodes if isinstance(each.meta.get("val"), torch.Tensor)]
    result = frozenset().union(
        *(_moved(of.of(each), lambda d, each=each: d + rank - _rank(each)) for each in tensors)
    )
    if len({part.dim for part in result}) < len(result):
        raise Unsupported(f"{_name(node)} of parts that the plan gives each rank of different places")
    for each in tensors:
        of.refuse_places(node, each, result, rank)
    return result


@_rule("view", "reshape", "_unsafe_view", "flatten", "unflatten")
def _view(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    source = given["self_"]
    before, after = _shape(source), _shape(node)
    groups = _groups(before, after)
    result = set()
    for part in of.of(source):
        if given.get("dtype") is not None:
            raise Unsupported("view as another dtype of what the plan gives each rank a part of")
        begin, end, first, last = next(g for g in groups if g[0] <= part.dim < g[1])
        outer = sympy.expand(sympy.prod(before[begin : part.dim]) * part.outer)
        for dim in range(first, last):
            # Behind what is in front of it: of several heads a rank may have one.
            extent = after[dim]
            if outer == 1 or sympy.expand(outer / extent).is_integer is not True:
                break
            if extent != 1 and dim + 1 < last:
                outer = sympy.expand(outer / extent)
        blocks = part.blocks
        if blocks > 1 and (last - first > 1 and after[first] == blocks):
            dim, blocks = first + 1, 1  # the blocks have a dim of their own
        result.add(Part(dim, outer, blocks))
    return frozenset(result)


def _groups(
    before: list[sympy.Expr], after: list[sympy.Expr]
) -> list[tuple[int, int, int, int]]:
    """Runs of dims of the one shape, and the dims of the other one that have the same elements."""
    groups, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        first, begin = i, j
        own, other = sympy.Integer(1), sympy.Integer(1)
        if i < len(before):
            own, i = before[i], i + 1
        if j < len(after):
            other, j = after[j], j + 1
        while sympy.expand(own - other) != 0:
            # The shorter one goes on; of symbols either may be.
            shorter = (own - other).is_negative
            if (shorter is True or j == len(after)) and i < len(before):
                own, i = own * before[i], i + 1
            elif j < len(after):
                other, j = other * after[j], j + 1
            else:
                break
        groups.append((first, i, begin, j))
    return groups


@_rule("permute", "transpose", "t", "unsqueeze", "squeeze", "expand")
def _rearranged(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    source, name = given["self_"], _name(node)
    rank = _rank(source)
    if name == "permute":
        order = [dim_of(d, rank) for d in given["dims"]]
        return _moved(of.of(source), order.index)
    if name == "t" or name == "transpose":
        a, b = (0, rank - 1) if name == "t" else (dim_of(given[f"dim{i}"], rank) for i in (0, 1))
        return _moved(of.of(source), lambda d: {a: b, b: a}.get(d, d))
    if name == "unsqueeze":
        at = dim_of(given["dim"], rank + 1)
        return _moved(of.of(source), lambda d: d + (d >= at))
    if name == "expand":
        return _moved(of.of(source), lambda d: d + _rank(node) - rank)
    dims = given.get("dim")
    every = range(rank) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = {dim_of(d, rank) for d in every if _shape(source)[d] == 1}
    kept = [part for part in of.of(source) if part.dim not in gone]
    return _moved(frozenset(kept), lambda d: d - sum(g < d for g in gone))


_VIEWS = {
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "permute", "transpose", "t", "unsqueeze",
    "squeeze", "expand", "_to_copy", "clone", "alias", "select", "slice", "split", "chunk",
    "split_with_sizes", "mul", "sub", "add", "index", "index_select",
}  # fmt: skip


@_rule("slice", "slice_scatter")
def _slice(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    source, result = given["self_"], node
    dim = dim_of(given["dim"], _rank(source))
    whole = given["src"] if "src" in given else result
    step, start = given["step"], given["start"] or 0
    in_turn = step != 1 and isinstance(start, int) and 0 <= start < step
    in_turn = in_turn and _shape(source)[dim] == step * _shape(whole)[dim]
    if _shape(source)[dim] != _shape(whole)[dim] and not in_turn:
        for operand in (source, whole):
            if operand is not node:
                of.refuse_along(node, operand, [dim])
    return of.of(source) | (of.of(whole) if whole is not node else NONE)


@_rule("select", "unbind")
def _select(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    source = given["self_"]
    dim = dim_of(given["dim"], _rank(source))
    of.refuse_along(node, source, [dim])
    return _moved(of.of(source), lambda d: d - (d > dim))


@_rule("view_as_complex", "view_as_real")
def _pairs(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    if _rank(node) < _rank(given["self_"]):
        of.refuse_along(node, given["self_"], [-1])
    return of.of(given["self_"])


@_rule("select_scatter")
def _select_scatter(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    dim = dim_of(given["dim"], _rank(node))
    of.refuse_along(node, given["self_"], [dim])
    return of.of(given["self_"]) | _moved(of.of(given["src"]), lambda d: d + (d >= dim))


@_rule("split", "split_with_sizes", "chunk")
def _split(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> list[Parts]:
    source = given["self_"]
    dim = dim_of(given["dim"], _rank(source))
    results = node.meta["val"]
    parts = set()
    for part in of.of(source):
        if part.dim == dim and len(results) > 1:
            alike = len({result.shape[dim] for result in results}) == 1
            if part.blocks != len(results) or not alike:
                of.refuse_along(node, source, [dim])
            part = part._replace(blocks=1)
        parts.add(part)
    return [frozenset(parts)] * len(results)


@_rule("cat")
def _cat(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    for each in given["tensors"]:
        of.refuse_along(node, each, [given["dim"]])
    return frozenset().union(*(of.of(each) for each in given["tensors"]))


@_rule("stack")
def _stack(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    dim = dim_of(given["dim"], _rank(node))
    every = frozenset().union(*(of.of(each) for each in given["tensors"]))
    return _moved(every, lambda d: d + (d >= dim))


@_rule("repeat")
def _repeat(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    source, repeats = given["self_"], given["repeats"]
    more = len(repeats) - _rank(source)
    of.refuse_along(node, source, [d for d in range(_rank(source)) if repeats[d + more] != 1])
    return _moved(of.of(source), lambda d: d + more)


@_rule("repeat_interleave")
def _repeat_interleave(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    """Each head several times: a rank's are still side by side."""
    source, dim = given.get("self_"), given.get("dim")
    if source is None or dim is None or not isinstance(given["repeats"], int):
        raise Unsupported(f"{_name(node)} of what the plan gives each rank a part of")
    return of.of(source)


_REDUCED = (
    "sum mean amax amin max min argmax argmin var var_mean std std_mean any all prod logsumexp norm"
    " linalg_vector_norm count_nonzero"
).split()


@_rule(*_REDUCED)
def _reduced(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Any:
    source = given["self_"]
    if isinstance(given.get("other"), torch.fx.Node):
        return _pointwise(of, node, given)
    dims, rank = given.get("dim"), _rank(source)
    every = range(rank) if dims is None or dims == [] else [dims] if isinstance(dims, int) else dims
    gone = {dim_of(d, rank) for d in every}
    of.refuse_along(node, source, gone)
    shift = {} if given.get("keepdim") else gone
    return _moved(of.of(source), lambda d: d - sum(g < d for g in shift))


@_rule(
    "softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax", "cumsum", "cumprod",
    "logcumsumexp", "cummax", "cummin", "sort", "argsort", "topk", "flip", "roll", "gather", "glu",
    "index_fill",
)  # fmt: skip
def _along(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    """All elements along a dim, or several, meet."""
    dims = given.get("dims", given.get("dim"))
    every = [dims] if isinstance(dims, int) else dims or range(_rank(given["self_"]))
    for operand in (given["self_"], given.get("index")):
        of.refuse_along(node, operand, every)
    return of.of(given["self_"])


@_rule("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm")
def _norm(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Any:
    source = given["input"]
    of.refuse_along(node, source, range(-len(given["normalized_shape"]), 0))
    parts = of.of(source)
    return parts if isinstance(node.meta["val"], torch.Tensor) else [parts, NONE, NONE]


@_rule("constant_pad_nd")
def _pad(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    of.refuse_along(
        node,
        given["self_"],
        [-1 - i // 2 for i, more in enumerate(given["pad"]) if more != 0],
    )
    return of.of(given["self_"])


@_rule("embedding")
def _embedding(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    """A lookup in a part of the words has its own all-reduce."""
    return frozenset(
        part._replace(dim=_rank(node) - 1) for part in of.of(given["weight"]) if part.dim == 1
    )


@_rule("index")
def _index(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    source, indices = given["self_"], given["indices"]
    taken = [d for d, each in enumerate(indices) if each is not None]
    of.refuse_along(node, source, taken)
    if any(of.of(indices[d]) for d in taken) or taken != list(range(taken[0], taken[-1] + 1)):
        raise Unsupported("index by what the plan gives each rank a part of")
    made = max(_rank(indices[d]) for d in taken)
    return _moved(of.of(source), lambda d: d + (made - len(taken) if d > taken[0] else 0))


@_rule("index_select", "index_add", "index_copy", "scatter", "scatter_add", "index_put")
def _by_index(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    """Rows, which the ranks have parts of, by an index that all have."""
    name, source = _name(node), given["self_"]
    if name == "index_put":
        dims: Iterable[int] = [d for d, each in enumerate(given["indices"]) if each is not None]
        values = given["values"]
    else:
        dims = [given["dim"]]
        values = next((given[key] for key in ("source", "src", "value") if key in given), None)
    of.refuse_along(node, source, dims)
    parts = of.of(source)
    if name == "index_select" or not isinstance(values, torch.fx.Node):
        return parts
    return parts | _moved(of.of(values), lambda d: d + _rank(node) - _rank(values))


@_rule("linear")
def _linear(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    a, b = given["input"], given["weight"]
    turned = _moved(of.of(b), lambda d: _rank(b) - 1 - d)
    result = _product(of, node, a, b, of.of(a), turned, _rank(b))
    if given["bias"] is not None and of.is_sum(node):
        raise Unsupported("linear with a bias, which each rank would add to its part of the sum")
    return result


@_rule("mm", "bmm", "matmul", "addmm", "baddbmm", "_int_mm", "_scaled_mm")
def _mm(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    a = given.get("batch1", given.get("mat1", given["self_"]))
    b = given.get("batch2", given.get("mat2", given.get("tensor2", given.get("other"))))
    return _product(of, node, a, b, of.of(a), of.of(b), _rank(b))


def _along_sum(parts: Parts, dim: int) -> set[Part]:
    return {part._replace(dim=0) for part in parts if part.dim == dim}


def _product(
    of: Followed,
    node: torch.fx.Node,
    a: torch.fx.Node,
    b: torch.fx.Node,
    left: Parts,
    right: Parts,
    rank: int,
) -> Parts:
    """a [..., M, K] and what is [..., K, N] of b, with dims of their own rank."""
    depth_a, depth_b = _rank(a) - 1, max(rank - 2, 0)
    sums = [any(part.dim == depth_a for part in left), any(part.dim == depth_b for part in right)]
    if sums == [True, True]:
        if not (of.is_weight(a) or of.is_weight(b)):
            raise Unsupported(f"{_name(node)} along a dim of which the plan gives each rank a part")
        if _along_sum(left, depth_a) != _along_sum(right, depth_b):
            raise Unsupported(f"{_name(node)} of parts that the plan gives each rank of different places")
        of.add_sum(node)
    elif any(sums):
        raise Unsupported(f"{_name(node)} of a part of a dim with all of it")
    kept = frozenset(part for part in left if part.dim < depth_a)
    others = frozenset(part for part in right if part.dim != depth_b)
    more, more_right = _rank(node) - _rank(a), _rank(node) - rank
    return _moved(kept, lambda d: d + more) | _moved(others, lambda d: d + more_right)


@_rule("braid::all_reduce")
def _all_reduce(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    return of.of(given["x"])


@_rule("braid::all_gather")
def _all_gather(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    return frozenset(part for part in of.of(given["x"]) if part.dim != _rank(node) - 1)


@_rule("scaled_dot_product_attention", "braid::attention")
def _attention(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    """Of heads side by side."""
    for key in ("query", "key", "value"):
        of.refuse_along(node, given[key], [-2, -1])
    rank = _rank(given["query"])
    of.refuse_places(node, given.get("attn_mask"), of.of(given["query"]), rank)
    return of.of(given["query"]) | of.of(given["key"]) | of.of(given["value"])


@_rule("braid::experts", "braid::routing")
def _experts(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    if node.target is torch.ops.braid.experts.default:
        of.add_sum(node)
    return NONE


@_rule("braid::grouped_mm", "_grouped_mm")
def _grouped_mm(of: Followed, node: torch.fx.Node, given: dict[str, Any]) -> Parts:
    x, weight = (list(given.values())[i] for i in (0, 1))
    if any(part.dim == 1 for part in of.of(weight)):
        if _along_sum(of.of(x), 1) != _along_sum(of.of(weight), 1):
            raise Unsupported(f"{_name(node)} of parts that the plan gives each rank of different places")
        of.add_sum(node)
    return frozenset(
        part._replace(dim=_rank(node) - 1) for part in of.of(weight) if part.dim == 2
    ) | frozenset(part for part in of.of(x) if part.dim == 0)
