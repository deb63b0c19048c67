"""Weights of experts that a checkpoint has in mxfp4, as GPT-OSS's are: floats of 4 bits (a sign,
two bits of exponent, one of mantissa), two in a byte, and for each 32 a scale, which is a power of
two. An export keeps them so, and the products of the experts unpack them."""

from typing import Callable

import torch
from torch import nn

_WORDS, _SCALES = "_blocks", "_scales"


def keep_packed(model: nn.Module, is_there: Callable[[str], bool], dtype: torch.dtype) -> None:
    """Replaces parameters [experts, in, out] of which the checkpoint has blocks by `NAME_blocks`,
    words i32 [experts, out, in / 8], and `NAME_scales`, [experts, out, in / 32]: bf16, which holds
    all scales, in a model in bf16, else f32."""
    scales = torch.bfloat16 if dtype == torch.bfloat16 else torch.float32
    for name, parameter in list(model.named_parameters()):
        if not is_there(name + _WORDS):
            continue
        owner, _, own = name.rpartition(".")
        module = model.get_submodule(owner)
        experts, ins, outs = parameter.shape
        delattr(module, own)
        for suffix, kind, numbers in ((_WORDS, torch.int32, 8), (_SCALES, scales, 32)):
            shape = (experts, outs, ins // numbers)
            packed = nn.Parameter(torch.empty(shape, dtype=kind, device="meta"), False)
            setattr(module, own + suffix, packed)


def is_packed(module: nn.Module, name: str) -> bool:
    return hasattr(module, name + _WORDS)


def weight(module: nn.Module, name: str, dtype: torch.dtype) -> torch.Tensor:
    """The parameter of a module that is kept packed, [experts, in, out], as ops that fuse with what
    reads it. The bits of a small float are those of a larger one, but for the exponent's bias."""
    words, scales = getattr(module, name + _WORDS), getattr(module, name + _SCALES)
    bits = words[..., None] >> torch.arange(0, 32, 4, dtype=torch.int32, device=words.device)
    bits = ((bits & 7) * 2**22) | ((bits & 8) * 2**28)
    numbers = (bits.view(torch.float32) * 2.0**126).to(scales.dtype)
    scaled = numbers.view(*scales.shape, 32) * scales[..., None]
    return scaled.view(*words.shape[:2], -1).to(dtype).mT


def is_stored(name: str, dtype: str) -> bool:
    """Whether a tensor of a checkpoint, of a dtype as safetensors spells it, is one of those."""
    return dtype == "U8" and name.endswith((_WORDS, _SCALES))


def read(name: str, stored: torch.Tensor) -> torch.Tensor:
    """Blocks, u8 [experts, out, in / 32, 16], as words, and exponents, u8 [experts, out, in / 32],
    as scales in f32."""
    if name.endswith(_WORDS):
        return stored.contiguous().flatten(2).view(torch.int32)
    return torch.exp2(stored.float() - 127)
