"""Mixtures of experts, as they are traced: one op where braid has their activation, and otherwise matmuls
of rows that are sorted by expert, with the model's own activation between them."""

import inspect
import types
import warnings
from typing import Any

import torch
from torch import nn

from ..errors import CannotExport, Remark
from . import mxfp4
from .lower import is_product

_ACTIVATIONS = {"SiLUActivation": "swiglu", "SiLU": "swiglu"}


def experts(
    module: nn.Module, x: torch.Tensor, choices: torch.Tensor, weights: torch.Tensor, **_: Any
) -> torch.Tensor:
    """What transformers' interface calls for the experts of each token."""
    if getattr(module, "has_post_expert_norm", False):
        raise CannotExport(
            f"{type(module).__name__}: has a norm behind each expert; expected experts without"
        )
    if isinstance(x.shape[0], torch.SymInt) and is_product(x.shape[0].node.expr):
        return _of_every_token(module, x, choices, weights)
    activation = _activation_of(module)
    # In front of moe_experts, which cuts it into gate and up, a kernel of its own would unpack a
    # weight.
    if activation is None or mxfp4.is_packed(module, "down_proj"):
        return _in_parts(module, x, choices, weights)
    has_bias = getattr(module, "has_bias", False)
    return torch.ops.braid.experts(
        x,
        choices,
        weights,
        module.gate_up_proj,
        module.down_proj,
        module.gate_up_proj_bias if has_bias else None,
        module.down_proj_bias if has_bias else None,
        activation,
        not getattr(module, "is_concatenated", True),
        getattr(module, "is_transposed", False),
    )


def _activation_of(module: nn.Module) -> str | None:
    """What moe_experts calls it, or None where it has no name for it."""
    if not getattr(module, "has_gate", True):
        return None
    if hasattr(module, "limit"):
        known = (getattr(module, "alpha", None), module.limit) == (1.702, 7.0)
        return "clamped_swiglu" if known else None
    own = getattr(type(module), "_apply_gate", None)
    if own is not None and own.__name__ != "_default_apply_gate":
        return None
    return _ACTIVATIONS.get(type(module.act_fn).__name__)


def _in_parts(
    module: nn.Module, x: torch.Tensor, choices: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    down = _matrix(module, "down_proj", x.dtype)
    rows, ends, places, owners = torch.ops.braid.routing(choices, down.shape[0])

    def product(of: torch.Tensor, name: str, weight: torch.Tensor) -> torch.Tensor:
        result = torch.ops.braid.grouped_mm(of, weight, ends)
        if getattr(module, "has_bias", False):
            result = result + getattr(module, f"{name}_bias").index_select(0, owners)
        return result

    first = _first(module)
    hidden = product(x.index_select(0, rows), first, _matrix(module, first, x.dtype))
    each = product(_activated(module, hidden), "down_proj", down).index_select(0, places)
    each = each.view(*choices.shape, each.shape[-1])
    return (each * weights[..., None]).sum(1).to(x.dtype)


def _of_every_token(
    module: nn.Module, x: torch.Tensor, choices: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """What all experts give for all tokens, times a weight that is 0 where one has not been chosen:
    rows cannot be sorted by expert where their number, a product of symbols, is no dim."""
    count = module.down_proj.shape[0]
    warnings.warn(
        f"{type(module).__name__}: the batch and the length of a text are both symbols, so that all "
        f"{count} experts see each token, not {choices.shape[-1]}",
        Remark,
    )
    is_own = choices[..., None] == torch.arange(count, device=x.device)
    weights = torch.where(is_own, weights[..., None], 0.0).sum(1)

    def product(of: torch.Tensor, name: str) -> torch.Tensor:
        result = of @ _matrix(module, name, x.dtype)
        if getattr(module, "has_bias", False):
            result = result + getattr(module, f"{name}_bias")[:, None]
        return result

    each = product(_activated(module, product(x, _first(module))), "down_proj")
    return (each * weights.t()[..., None]).sum(0).to(x.dtype)


def _first(module: nn.Module) -> str:
    return "gate_up_proj" if getattr(module, "has_gate", True) else "up_proj"


def _matrix(module: nn.Module, name: str, dtype: torch.dtype) -> torch.Tensor:
    """Weights as [experts, in, out]."""
    if mxfp4.is_packed(module, name):
        return mxfp4.weight(module, name, dtype)
    weight = getattr(module, name)
    return weight if getattr(module, "is_transposed", False) else weight.mT


def _activated(module: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    if not getattr(module, "has_gate", True):
        return module.act_fn(hidden)
    if hasattr(module, "_apply_gate"):
        return module._apply_gate(hidden)
    gate, up = hidden.chunk(2, dim=-1)
    return module.act_fn(gate) * up


def replace_loops(model: nn.Module) -> None:
    """Experts that a model's own code goes through one by one, as far as they have been chosen, which no
    graph can. Choices behind the last one with weights are of experts that hand on what they get."""
    for module in model.modules():
        if hasattr(module, "has_gate") or not hasattr(module, "act_fn"):  # the interface has them
            continue
        matrices = [getattr(module, name, None) for name in ("gate_up_proj", "down_proj")]
        if any(not isinstance(each, nn.Parameter) or each.ndim != 3 for each in matrices):
            continue
        names = list(inspect.signature(module.forward).parameters)
        if names == ["hidden_states", "top_k_index", "top_k_weights"]:
            module.forward = types.MethodType(_forward, module)


def _forward(
    module: nn.Module,
    hidden_states: torch.Tensor,
    top_k_index: torch.Tensor,
    top_k_weights: torch.Tensor,
) -> torch.Tensor:
    identity = getattr(module, "identity_expert", None)
    if identity is None:
        return experts(module, hidden_states, top_k_index, top_k_weights)
    own = module.down_proj.shape[0]
    is_own = top_k_index < own
    result = experts(
        _Without(module, own),
        hidden_states,
        torch.where(is_own, top_k_index, 0),
        torch.where(is_own, top_k_weights, 0.0),
    )
    handed_on = torch.where(is_own, 0.0, top_k_weights).sum(-1, keepdim=True)
    return result + (identity(hidden_states) * handed_on).to(hidden_states.dtype)


class _Without:
    """Experts without the matrices of those that have no `down_proj`."""

    def __init__(self, module: nn.Module, count: int):
        self.act_fn = module.act_fn
        self.gate_up_proj, self.down_proj = module.gate_up_proj[:count], module.down_proj
