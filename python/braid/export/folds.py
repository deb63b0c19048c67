"""Dims that are products of symbols, such as that of `x.view(B * T, -1)`. A graph has none, so that
traced tensors keep the dims that were folded: [B, T, C] stands for [B * T, C]. What acts on rows does the
same to it, and a view that splits the dim again gives it back; aten_folds.py has the ops, others are
refused. Programs without such dims stay as they are."""

import dataclasses
import functools
import itertools
import operator
from typing import Any, Callable, Iterable, Sequence

import sympy
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch.utils import _pytree as pytree

from .lower import Unsupported, arguments_of, is_product, outputs_of

aten = torch.ops.aten
Dims = tuple[sympy.Expr, ...]
ONE: Dims = (sympy.Integer(1),)
ELEMENTWISE = "braid::elementwise"  # stands for all ops that PyTorch says to be so


@dataclasses.dataclass(frozen=True)
class Folded:
    """A traced tensor, of whose dims each is a fold of one or several dims of `node`."""

    node: torch.fx.Node
    groups: tuple[Dims, ...]

    @property
    def rank(self) -> int:
        return len(self.groups)

    @property
    def dims(self) -> Dims:
        return tuple(itertools.chain(*self.groups))

    def at(self, dim: int) -> list[int]:
        """The dims of the node that a dim is a fold of."""
        begin = sum(len(group) for group in self.groups[:dim])
        return list(range(begin, begin + len(self.groups[dim])))


_HANDLERS: dict[str, Callable[..., Any]] = {}


def unfolds(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers what writes ops of these names for unfolded tensors. It gets the unfolding, the traced
    node, and the op's arguments as in lower.py, tensors as `Folded`."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _HANDLERS[name if "::" in name else f"aten::{name}"] = handler
        return handler

    return register


def unfold(program: torch.export.ExportedProgram) -> None:
    """Writes a program without dims that are products of symbols, as far as that can be. What cannot be
    has its reason as `meta["problem"]`."""
    if any(map(is_product, _every_extent(program))):
        Unfolding(program).run()


def _every_extent(program: torch.export.ExportedProgram) -> Iterable[sympy.Expr]:
    for node in program.graph.nodes:
        for tensor in tensors_of(node):
            yield from exprs(tensor.shape)


def tensors_of(node: torch.fx.Node) -> list[torch.Tensor]:
    found = pytree.tree_leaves(node.meta.get("val"))
    return [each for each in found if isinstance(each, torch.Tensor)]


def exprs(sizes: Iterable[Any]) -> Dims:
    return tuple(
        each.node.expr if isinstance(each, torch.SymInt) else sympy.Integer(each) for each in sizes
    )


def product(dims: Iterable[sympy.Expr]) -> sympy.Expr:
    return sympy.expand(sympy.Mul(*dims))


def over(extent: sympy.Expr, by: sympy.Expr) -> sympy.Expr | None:
    """The quotient, where it is one for all values of the symbols."""
    quotient = sympy.cancel(extent / by)
    return quotient if quotient.as_numer_denom()[1] == 1 else None


def cut_into(dims: Dims, extents: Sequence[sympy.Expr]) -> list[list[sympy.Expr]]:
    """For each extent the dims that it is a fold of, which are parts of these, in order."""
    rest: list[sympy.Expr] = []
    for dim in dims:  # numbers that are neighbours may be cut elsewhere
        if rest and rest[-1].is_number and dim.is_number:
            rest[-1] *= dim
        else:
            rest.append(dim)
    rest = [dim for dim in rest if dim != 1]
    groups = []
    for extent in extents:
        group = []
        while extent != 1:
            if not rest:
                raise Unsupported("a view of another number of elements")
            dim = rest.pop(0)
            if (quotient := over(extent, dim)) is not None:
                group.append(dim)
                extent = quotient
            elif (quotient := over(dim, extent)) is not None:
                group.append(extent)
                rest.insert(0, quotient)
                extent = 1
            else:
                raise Unsupported(f"a view that cuts a fold of {_text(dims)} into others")
        groups.append(group)
    return groups


def _text(dims: Iterable[sympy.Expr]) -> str:
    return " and ".join(str(dim) for dim in dims if dim != 1)


def joined(dims: Sequence[sympy.Expr]) -> Dims:
    """One dim where a graph can have it, and otherwise these."""
    whole = product(dims)
    return tuple(dims) if is_product(whole) else (whole,)


def common(a: Dims, b: Dims) -> Dims:
    """Dims of which both folds are folds."""
    if a == b or product(b) == 1:
        return a
    if product(a) == 1:
        return b
    try:
        parts = itertools.chain(*cut_into(a, b))
        return tuple(itertools.chain(*cut_into(b, tuple(parts))))
    except Unsupported:
        raise Unsupported(f"a fold of {_text(a)} beside one of {_text(b)}") from None


def is_one(group: Dims) -> bool:
    return product(group) == 1


def like(x: Folded, wide: Sequence[Dims]) -> list[Dims]:
    """The groups of x as what broadcasts to these, which it ends like."""
    return [
        ONE * len(group) if is_one(own) else tuple(group)
        for own, group in zip(x.groups, wide[len(wide) - x.rank :])
    ]


def broadcast(groups: Sequence[Sequence[Dims]]) -> list[Dims]:
    """The dims of what has all of these, which end alike."""
    rank = max(map(len, groups))
    wide = [[*[ONE] * (rank - len(each)), *each] for each in groups]
    return [functools.reduce(common, dims) for dims in zip(*wide)]


class Unfolding:
    def __init__(self, program: torch.export.ExportedProgram):
        self._program = program
        self._graph = program.graph
        inputs = [node for node in self._graph.nodes if node.op == "placeholder"]
        tensors = [tensor for node in inputs for tensor in tensors_of(node)]
        self._mode = tensors[0].fake_mode
        symbols = [extent.free_symbols for each in tensors for extent in exprs(each.shape)]
        self._symbols = list(dict.fromkeys(itertools.chain(*symbols)))
        self._found: dict[torch.fx.Node, Any] = {}  # what stands for traced nodes
        self._lost: set[torch.fx.Node] = set()  # what cannot be written, and what needs it
        self._cuts: dict[sympy.Expr, Dims] = {}
        self.counted: set[torch.fx.Node] = set()  # the places of a fold's elements

    def run(self) -> None:
        for node in list(self._graph.nodes):
            if node.op != "call_function":
                continue
            if self._lost.intersection(node.all_input_nodes):
                self._lose(node)
                continue
            try:
                self._visit(node)
            except Unsupported as problem:
                self._lose(node, str(problem))
        for node in outputs_of(self._program):
            self._check_output(node)

    def _lose(self, node: torch.fx.Node, problem: str = "") -> None:
        self._lost.add(node)
        self._take_unfolded(node)
        if problem:
            node.meta["problem"] = problem

    def _take_unfolded(self, node: torch.fx.Node) -> None:
        """Of a node for which the dims of its operands do not count."""
        for each in node.all_input_nodes:
            if each in self._found:
                node.replace_input_with(each, pytree.tree_leaves(self._found[each])[0].node)

    def _visit(self, node: torch.fx.Node) -> None:
        tensors = tensors_of(node)
        if not tensors:  # a number
            self._take_unfolded(node)
            return
        is_of_folds = any(each in self._found for each in node.all_input_nodes)
        if not is_of_folds and not any(is_product(n) for each in tensors for n in exprs(each.shape)):
            return
        symbols = itertools.chain(*(n.free_symbols for each in tensors for n in exprs(each.shape)))
        if not set(symbols) <= set(self._symbols):
            is_masked = node.target in (aten.index.Tensor, aten.masked_select.default)
            text = "index with a mask" if is_masked else f"{_name_of(node)} with an extent, which is data"
            raise Unsupported(text)
        self._source = node
        if node.target is operator.getitem:
            made = self._found[node.args[0]][node.args[1]]
        else:
            made = self._written(node)
        self._found[node] = made
        if isinstance(made, Folded) and all(len(group) == 1 for group in made.groups):
            node.replace_all_uses_with(made.node)

    def _written(self, node: torch.fx.Node) -> Any:
        name = node.target._schema.name
        handler = _HANDLERS.get(name)
        if handler is None and torch.Tag.pointwise in node.target.tags:
            handler = _HANDLERS[ELEMENTWISE]
        given = {key: self._operand(each) for key, each in arguments_of(node).items()}
        try:
            if handler is None:
                raise Unsupported("it is not known to go row by row")
            return handler(self, node, **given)
        except Unsupported as problem:
            extents = [n for each in tensors_of(node) for n in exprs(each.shape)]
            for each in pytree.tree_leaves(given):
                if isinstance(each, Folded):
                    extents += map(product, each.groups)
            products = dict.fromkeys(str(each) for each in extents if is_product(each))
            text = f"{_name_of(node)} of {', '.join(products)}, a dim that is a product of symbols: {problem}"
            raise Unsupported(text) from None

    def _check_output(self, node: torch.fx.Node) -> None:
        found = self._found.get(node)
        if found is not None:
            whole = next(product(group) for group in found.groups if len(group) > 1)
            shape = ", ".join(map(str, found.dims))
            text = f"an output with the dim {whole}, a product of symbols; return it as [{shape}]"
            self._lose(node, text)

    def _operand(self, given: Any) -> Any:
        if isinstance(given, (list, tuple)):
            return [self._operand(each) for each in given]
        if not isinstance(given, torch.fx.Node) or not tensors_of(given):
            return given
        return self._found.get(given) or _plain(given)

    # What handlers build with.

    def call(self, target: Any, *args: Any, **named: Any) -> torch.fx.Node:
        """A node in front of the traced one, which has its place in the model."""

        def of(leaf: Callable[[torch.fx.Node], Any]) -> tuple[Any, Any]:
            def found(each: Any) -> Any:
                each = each.node if isinstance(each, Folded) else each
                return leaf(each) if isinstance(each, torch.fx.Node) else each

            return torch.fx.node.map_aggregate((args, named), found)

        values, of_names = of(lambda node: node.meta["val"])
        # What PyTorch asks of a dim here is no reason to make it a constant.
        guards = self._mode.shape_env.suppress_guards()
        with self._mode, enable_python_dispatcher(), torch.no_grad(), guards:
            result = target(*values, **of_names)
            result = pytree.tree_map_only(torch.Tensor, lambda x: x.new_empty(x.shape), result)
        args, named = of(lambda node: node)
        with self._graph.inserting_before(self._source):
            made = self._graph.call_function(target, args, named)
        made.meta = {**self._source.meta, "val": result}
        return made

    def again(self, **given: Any) -> torch.fx.Node:
        """The traced op with these arguments."""
        target, args, named = self._source.target, [], {}
        for argument in target._schema.arguments:
            each = given["self_" if argument.name == "self" else argument.name]
            if argument.kwarg_only:
                named[argument.name] = each
            else:
                args.append(each)
        return self.call(target, *args, **named)

    def sizes(self, dims: Iterable[sympy.Expr]) -> list[Any]:
        """As numbers of the traced program."""
        env = self._mode.shape_env
        return [
            int(dim) if dim.is_number else env.create_symintnode(dim, hint=int(env.size_hint(dim)))
            for dim in dims
        ]

    def viewed(self, x: Folded, groups: Sequence[Dims]) -> Folded:
        groups = tuple(map(tuple, groups))
        made = Folded(x.node, groups)
        if made.dims == x.dims:
            return made
        return Folded(self.call(aten.view.default, x, self.sizes(made.dims)), groups)

    def permuted(self, x: Folded, dims: Sequence[int]) -> Folded:
        """With the traced dims in this order."""
        order = [axis for dim in dims for axis in x.at(dim)]
        groups = tuple(x.groups[dim] for dim in dims)
        if order == sorted(order):
            return Folded(x.node, groups)
        return Folded(self.call(aten.permute.default, x, order), groups)

    def aligned(self, *operands: Folded, but: Sequence[int] = ()) -> tuple[list[Folded], list[Dims]]:
        """Operands that broadcast, folded of the same dims, and what they are folded of. The dims `but`
        stay as they are."""
        own = [[ONE if d in but else g for d, g in enumerate(x.groups)] for x in operands]
        found = broadcast(own)
        result = []
        for x in operands:
            wide = enumerate(like(x, found))
            result.append(self.viewed(x, [x.groups[d] if d in but else g for d, g in wide]))
        return result, found

    def cut(self, extent: sympy.Expr) -> Dims:
        """Dims of which an extent is a fold: as in the program before, else in the order of symbols."""
        if not is_product(extent):
            return (extent,)
        if extent not in self._cuts:
            number, factors = sympy.factor_list(extent)
            at = self._symbols.index
            factors = sorted(factors, key=lambda of: min(map(at, of[0].free_symbols)))
            dims = [factor for factor, power in factors for _ in range(power)]
            self._cuts[extent] = tuple([*dims, number] if number != 1 else dims)
        return self._cuts[extent]

    def remember(self, groups: Iterable[Dims]) -> None:
        for group in groups:
            self._cuts.setdefault(product(group), group)


def _name_of(node: torch.fx.Node) -> str:
    schema = getattr(node.target, "_schema", None)
    return schema.name.partition("::")[2] if schema else str(node.target)


def _plain(node: torch.fx.Node) -> Folded:
    tensors = tensors_of(node)
    return Folded(node, tuple((extent,) for extent in exprs(tensors[0].shape)))


def extents_of(node: torch.fx.Node) -> Dims:
    return exprs(tensors_of(node)[0].shape)
