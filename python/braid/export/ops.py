"""The ops of torch that stand for braid's own while a model is traced. They have shapes and no code."""

from typing import Optional

import torch
from torch import Tensor

_library = torch.library.Library("braid", "DEF")


def _op(schema: str):
    _library.define(schema)
    return torch.library.register_fake("braid::" + schema.partition("(")[0])


@_op(
    "attention(Tensor query, Tensor key, Tensor value, Tensor? sinks, int layer, float? scale,"
    " int window, float softcap, str problem) -> Tensor"
)
def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sinks: Optional[Tensor],
    layer: int,
    scale: Optional[float],
    window: int,
    softcap: float,
    problem: str,
) -> Tensor:
    """Of [1, heads, tokens, width], with the sequences' caches. A window or softcap of 0 is none."""
    return query.new_empty((*query.shape[:3], value.shape[3]))


@_op("all_reduce(Tensor x) -> Tensor")
def _all_reduce(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@_op("all_gather(Tensor x, int ranks) -> Tensor")
def _all_gather(x: Tensor, ranks: int) -> Tensor:
    """Along the last dim."""
    return x.new_empty((*x.shape[:-1], ranks * x.shape[-1]))


@_op("shard(Tensor x, int ranks) -> Tensor")
def _shard(x: Tensor, ranks: int) -> Tensor:
    """This rank's part of the last dim."""
    return x.new_empty((*x.shape[:-1], x.shape[-1] // ranks))


@_op("share(Tensor x, int ranks) -> Tensor")
def _share(x: Tensor, ranks: int) -> Tensor:
    """What the ranks, each of which has all of x, add up to x."""
    return torch.empty_like(x)


@_op(
    "experts(Tensor x, Tensor choices, Tensor weights, Tensor gate_up, Tensor down, Tensor? gate_up_bias,"
    " Tensor? down_bias, str activation, bool interleaved, bool transposed) -> Tensor"
)
def _experts(
    x: Tensor,
    choices: Tensor,
    weights: Tensor,
    gate_up: Tensor,
    down: Tensor,
    gate_up_bias: Optional[Tensor],
    down_bias: Optional[Tensor],
    activation: str,
    interleaved: bool,
    transposed: bool,
) -> Tensor:
    """Weights are [experts, out, in], or [experts, in, out] where they are `transposed`."""
    return torch.empty_like(x)


@_op("routing(Tensor choices, int experts) -> (Tensor, Tensor, Tensor, Tensor)")
def _routing(choices: Tensor, experts: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The choices of all tokens, [T, k], sorted by expert: the token of each row, where each expert's rows
    end, the row of each choice, and the expert of each row."""
    rows = [choices.new_empty(choices.numel(), dtype=torch.int32) for _ in range(3)]
    return rows[0], choices.new_empty(experts, dtype=torch.int32), rows[1], rows[2]


@_op("grouped_mm(Tensor x, Tensor weight, Tensor ends) -> Tensor")
def _grouped_mm(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """Each row with the weight, of [experts, in, out], of the expert whose rows it is one of."""
    return x.new_empty((x.shape[0], weight.shape[2]))
