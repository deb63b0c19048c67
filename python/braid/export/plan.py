"""Tensor parallelism by a model's own plan (`tp_plan` of transformers): what each rank has of each
weight, and where the ranks meet."""

import dataclasses
import re
from typing import Iterator, Mapping

import torch
from torch import nn

from ..errors import InvalidArgument

# Styles that change nothing in inference.
_REPLICATED = {"replicate", "replicated_with_grad_allreduce", "mla_kv_a_proj", "local_params"}


@dataclasses.dataclass(frozen=True)
class Cut:
    """A dim in `pieces` parts; ranks that are more share them. Of a dim of several `blocks`, one
    behind the other, each is cut."""

    dim: int
    pieces: int
    blocks: int = 1

    def ranges(self, extent: int, rank: int, ranks: int) -> Iterator[tuple[int, int]]:
        """Where a rank's elements begin and end."""
        block = extent // self.blocks
        size = block // self.pieces
        first = rank * self.pieces // ranks * size
        for at in range(0, extent, block):
            yield at + first, at + first + size


def _matching(model: nn.Module, pattern: str) -> list[str]:
    """The modules and parameters that a pattern names; `*` is one step of a path."""
    rule = re.compile(re.escape(pattern).replace(r"\*", r"[^.]+"))
    names = [*dict(model.named_modules()), *(name for name, _ in model.named_parameters())]
    return [name for name in names if rule.fullmatch(name)]


def chosen(
    model: nn.Module, given: Mapping[str, str] | None, own: Mapping[str, str]
) -> Mapping[str, str]:
    """The plan that the caller gave, else the model's own, which may name what this model lacks."""
    for pattern in given or ():
        if not _matching(model, pattern):
            raise InvalidArgument(
                f"plan: found {pattern}, which names no module and no parameter of "
                f"{type(model).__name__}; expected paths as of named_modules, with * for one step"
            )
    return own if given is None else given


def apply(model: nn.Module, plan: Mapping[str, str], ranks: int) -> dict[str, Cut]:
    """Leaves one rank's part of each parameter in the model, whose parameters are on the device
    meta, puts collectives behind its modules, and returns the cuts by the parameters' names."""
    if ranks == 1:
        return {}
    if not plan:
        raise InvalidArgument(
            f"{type(model).__name__}: has no tp_plan; expected one, or `plan`, for {ranks} ranks"
        )
    return _Applied(model, plan, ranks).cuts


class _Applied:
    def __init__(self, model: nn.Module, plan: Mapping[str, str], ranks: int):
        self.ranks = ranks
        self.cuts: dict[str, Cut] = {}
        self._modules = dict(model.named_modules())
        self._names = {p: name for name, p in model.named_parameters()}
        self._owners: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {}
        for module in self._modules.values():
            for key, parameter in module.named_parameters(recurse=False):
                self._owners.setdefault(parameter, []).append((module, key))
        problems = []
        styles: dict[str, str] = {}
        for pattern, style in plan.items():
            for name in _matching(model, pattern):
                if styles.setdefault(name, style) != style:
                    problems.append(f"{name}: has the styles {styles[name]} and {style}; expected one")
        for name, style in styles.items():
            try:
                self._apply(name, style)
            except InvalidArgument as problem:
                problems.append(str(problem))
        if problems:
            raise InvalidArgument(
                f"{type(model).__name__}: cannot be split over {ranks} ranks:\n  "
                + "\n  ".join(dict.fromkeys(problems))
            )

    def _apply(self, name: str, style: str) -> None:
        module = self._modules.get(name)
        if style in _REPLICATED:
            return
        if module is None:
            self._cut_parameter(name, style)
        elif style in ("colwise", "colwise_gather_output", "colwise_rep"):
            self._expect(name, module, style, nn.Linear)
            self._colwise(name, module, gather=style != "colwise")
        elif style in ("rowwise", "rowwise_split_input", "rowwise_rep"):
            self._expect(name, module, style, nn.Linear)
            self._rowwise(name, module, split=style != "rowwise")
        elif style == "embedding_rowwise":
            self._expect(name, module, style, nn.Embedding)
            # Lowering gives a lookup in a part of a table its all-reduce.
            if self._divides(module.num_embeddings):
                self._cut(module, "weight", Cut(0, self.ranks))
        elif style == "embedding_colwise":
            self._expect(name, module, style, nn.Embedding)
            if self._divides(module.embedding_dim):
                self._cut(module, "weight", Cut(1, self.ranks))
                module.register_forward_hook(
                    lambda *call: torch.ops.braid.all_gather(call[-1], self.ranks)
                )
        elif style in ("moe_tp_experts", "all_reduce"):
            module.register_forward_hook(lambda *call: torch.ops.braid.all_reduce(call[-1]))
        elif style == "moe_identity_expert":  # the all-reduce behind all experts adds it up again
            module.register_forward_pre_hook(
                lambda _, given: (torch.ops.braid.share(given[0], self.ranks), *given[1:])
            )
        else:
            raise InvalidArgument(f"{name}: has the style {style}, which is not known here")

    def _expect(self, name: str, module: nn.Module, style: str, kind: type[nn.Module]) -> None:
        if not isinstance(module, kind):
            raise InvalidArgument(
                f"{name}: is a {type(module).__name__}, which has no style {style}; expected a "
                f"{kind.__name__}"
            )

    def _divides(self, extent: int) -> bool:
        return extent % self.ranks == 0

    def _colwise(self, name: str, module: nn.Module, gather: bool) -> None:
        features = module.weight.shape[0]
        pieces = self.ranks
        if gather and not self._divides(features):
            return  # every rank computes all of them
        width = getattr(self._modules[name.rpartition(".")[0]], "head_dim", 0)
        if not gather and width and features % width == 0:
            heads = features // width
            if (
                heads % self.ranks != 0
                and self.ranks % heads == 0
                and re.search(r"\.[kv]_proj$", name)
            ):
                pieces = heads  # several ranks have the same head
            features = heads
        if features % pieces != 0:
            raise InvalidArgument(f"{name}: {features} parts; expected a multiple of {pieces}")
        self._cut(module, "weight", Cut(0, pieces))
        if module.bias is not None:
            self._cut(module, "bias", Cut(0, pieces))
        if gather:
            module.register_forward_hook(
                lambda *call: torch.ops.braid.all_gather(call[-1], self.ranks)
            )

    def _rowwise(self, name: str, module: nn.Module, split: bool) -> None:
        if not self._divides(module.weight.shape[1]):
            raise InvalidArgument(
                f"{name}: {module.weight.shape[1]} columns; expected a multiple of {self.ranks}"
            )
        self._cut(module, "weight", Cut(1, self.ranks))

        def forward(x: torch.Tensor) -> torch.Tensor:
            if split:
                x = torch.ops.braid.shard(x, self.ranks)
            x = torch.ops.braid.all_reduce(nn.functional.linear(x, module.weight))
            return x if module.bias is None else x + module.bias

        module.forward = forward

    def _cut_parameter(self, name: str, style: str) -> None:
        owner, _, parameter = name.rpartition(".")
        of = self._modules[owner]
        if parameter == "gate_up_proj" and getattr(of, "is_concatenated", False):
            # A part of gate and up each, whether the plan says so (Inkling's does not).
            style = {"colwise": "packed_colwise", "rowwise": "packed_rowwise"}.get(style, style)
        dims = getattr(self._modules[owner], parameter).ndim
        cuts = {
            "colwise": Cut(max(dims - 2, 0), self.ranks),
            "rowwise": Cut(dims - 1, self.ranks),
            "packed_colwise": Cut(max(dims - 2, 0), self.ranks, blocks=2),
            "packed_rowwise": Cut(dims - 1, self.ranks, blocks=2),
        }
        if style not in cuts:
            raise InvalidArgument(f"{name}: has the style {style}, which is not known here")
        self._cut(self._modules[owner], parameter, cuts[style])

    def _cut(self, module: nn.Module, parameter: str, cut: Cut) -> None:
        """Leaves a part in place of a parameter, also where it is tied."""
        whole = getattr(module, parameter)
        if whole not in self._owners:  # it is a part already
            return
        shape = list(whole.shape)
        if shape[cut.dim] % (cut.pieces * cut.blocks) != 0:
            raise InvalidArgument(
                f"{self._names[whole]}: {shape[cut.dim]} elements along dim {cut.dim}; expected a "
                f"multiple of {cut.pieces * cut.blocks}"
            )
        shape[cut.dim] //= cut.pieces
        part = nn.Parameter(whole.new_empty(shape), requires_grad=False)
        self.cuts[self._names[whole]] = cut
        for owner, key in self._owners[whole]:
            setattr(owner, key, part)
