"""A causal language model of transformers as one graph of ATen ops over flat tokens, and any other
module as it is."""

import contextlib
import dataclasses
import io
import itertools
import os
import sys
import traceback
from typing import Any, Mapping
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch._decomp import get_decompositions
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from transformers import AttentionInterface, masking_utils
from transformers.integrations.moe import ExpertsInterface
from transformers.masking_utils import AttentionMaskInterface

from ..errors import CannotExport
from . import ops  # noqa: F401  the ops of torch.ops.braid
from .compositions import COMPOSITIONS, FUNCTIONS
from .experts import experts, replace_loops
from .folds import unfold
from .lower import is_known, source_of


@dataclasses.dataclass(frozen=True)
class _Mask:
    """What a query sees: the last `window` keys up to its own, or all with 0."""

    window: int = 0
    problem: str = ""

    def __getattr__(self, name: str) -> Any:
        return _refuse_mask(name)

    def __getitem__(self, index: Any) -> Any:
        return _PartOfMask()


class _PartOfMask:
    """What models take of a mask for what is not traced, such as an indexer."""

    def __getattr__(self, name: str) -> Any:
        return _refuse_mask(name)

    @classmethod
    def __torch_function__(cls, *_: Any) -> Any:
        return _refuse_mask("elements")


def _refuse_mask(name: str) -> Any:
    if name.startswith("_"):  # what Python looks for by itself
        raise AttributeError(name)
    raise CannotExport(
        f"the model takes {name} of its attention's mask; expected one that it only hands on: "
        "sparse attention of its own is not exported"
    )


def _seen(mask_function: Any, length: int) -> _Mask:
    """Tries a mask of transformers on a query in the middle and on the last one."""
    widths = set()
    with _disable_current_modes():  # this is no part of the graph
        zero, keys = torch.tensor(0), torch.arange(length)
        for query in (length // 2, length - 1):
            try:
                seen = mask_function(zero, zero, torch.tensor(query), keys).nonzero().flatten()
            except Exception as error:  # pylint: disable=broad-except
                return _Mask(problem=f"a mask that depends on the tokens ({type(error).__name__})")
            if len(seen) == 0 or seen[-1] != query or len(seen) != query + 1 - seen[0]:
                return _Mask(problem="a mask that is no window of keys up to the query's own")
            widths.add(0 if seen[0] == 0 else len(seen))
    if widths == {0}:
        return _Mask()
    width = max(widths)
    if widths - {0, width} or (0 in widths and width <= length // 2):
        return _Mask(problem="a mask whose width depends on the query")
    return _Mask(window=width)


def _mask_of(context: int) -> Any:
    """What makes the masks of sequences of up to `context` tokens."""

    def mask(*_: Any, mask_function: Any = None, **__: Any) -> _Mask:
        return _seen(mask_function, max(context, 2)) if mask_function is not None else _Mask()

    return mask


# What attention is handed and does not read: places, and the keys that _pick_all stands for.
_UNREAD = {"position_ids", "cache_position", "indices", "block_indices", "logits_to_keep"}


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    mask = attention_mask
    if not isinstance(mask, _Mask):
        mask = _Mask(problem=f"a mask of {type(mask).__name__}, not from AttentionMaskInterface")
    unknown = {name for name, each in others.items() if isinstance(each, torch.Tensor)} - _UNREAD
    if unknown:
        mask = _Mask(problem=f"the operand {min(unknown)}")
    result = torch.ops.braid.attention(
        query,
        key,
        value,
        s_aux,
        module.layer_idx,
        scaling,
        mask.window,
        softcap or 0.0,
        mask.problem,
    )
    return result.transpose(1, 2).contiguous(), None


def _chunks(chunk_size: int, left_padding: torch.Tensor) -> Any:
    """transformers' mask of chunks, of sequences that have no padding."""
    with _disable_current_modes():
        return _chunked(chunk_size, torch.zeros(len(left_padding), dtype=torch.int64, device="cpu"))


_chunked = masking_utils.chunked_causal_mask_function


def keys_that_are_picked(model: nn.Module) -> int | None:
    """Of sparse attention: how many keys each query is given of those up to its own."""
    counts = []
    for indexer in _indexers(model):
        if hasattr(indexer, "topk_blocks"):
            counts.append(indexer.topk_blocks * indexer.block_size)
        else:
            counts.append(indexer.index_topk)
    return min(counts, default=None)


def _indexers(model: nn.Module) -> list[nn.Module]:
    """The modules that pick keys, and hand on which they are as `indices` or `block_indices`."""
    names = ("index_topk", "topk_blocks")
    return [
        module
        for module in model.modules()
        if type(module).__name__.endswith("Indexer") and any(hasattr(module, n) for n in names)
    ]


def _pick_all(hidden_states: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """In place of an indexer, where a context has no more keys than it picks."""
    return hidden_states.new_zeros(1, dtype=torch.int32)


class _Constants(TorchFunctionMode):
    """Makes tensors of numbers as ops do, for on the device meta they would lose them, and writes
    out what PyTorch traces to what no graph has."""

    def __torch_function__(self, func: Any, kinds: Any, given: Any = (), named: Any = None) -> Any:
        named = named or {}
        if func in _MAKERS and given and _is_data(given[0]):
            return _made(given[0], named.get("dtype"))
        if func is torch.Tensor.new_tensor and _is_data(given[1]):
            return _made(given[1], named.get("dtype") or given[0].dtype)
        if getattr(func, "__name__", "") in ("__getitem__", "__setitem__"):
            at = given[1] if isinstance(given[1], tuple) else (given[1],)
            if any(_is_indices(each) for each in at):
                at = tuple(_indices(each) if _is_indices(each) else each for each in at)
                given = (given[0], at, *given[2:])
        return FUNCTIONS.get(func, func)(*given, **named)


_MAKERS = (torch.tensor, torch.as_tensor, torch.asarray)
_NUMBERS = (bool, int, float, np.generic)


def _is_data(value: Any) -> bool:
    return isinstance(value, _NUMBERS) or _is_list(value, _NUMBERS)


def _is_indices(value: Any) -> bool:
    return not isinstance(value, _NUMBERS) and _is_list(value, (bool, int, np.integer, np.bool_))


def _indices(value: Any) -> torch.Tensor:
    """Bools say which are taken."""
    numbers = np.array(value)
    taken = np.nonzero(numbers)[0] if numbers.dtype == bool and numbers.ndim == 1 else numbers
    return _made(taken, torch.int64)


def _is_list(value: Any, kinds: tuple[type, ...]) -> bool:
    """Of numbers, perhaps of lists of these, that is short enough to be a node for each."""
    if isinstance(value, (list, tuple)):
        if not all(isinstance(each, kinds) or _is_list(each, kinds) for each in value):
            return False  # numpy would look into tensors
    elif not isinstance(value, np.ndarray):
        return False
    found = np.array(value, dtype=object)
    return found.size <= 32 and all(isinstance(each, kinds) for each in found.flat)


def _made(value: Any, dtype: torch.dtype | None) -> torch.Tensor:
    """The numbers as nodes, one for each run of equal ones."""
    numbers = np.array(value)
    if dtype is None and isinstance(value, (np.ndarray, np.generic)):
        dtype = torch.from_numpy(np.atleast_1d(numbers)).dtype
    if dtype is None:
        narrow = {"f": torch.get_default_dtype(), "b": torch.bool}
        dtype = narrow.get(numbers.dtype.kind, torch.int64)
    runs = [list(run) for _, run in itertools.groupby(numbers.flatten().tolist(), repr)]
    if len(runs) < 2:
        return torch.full(numbers.shape, runs[0][0] if runs else 0, dtype=dtype)
    parts = [torch.full((len(run),), run[0], dtype=dtype) for run in runs]
    return torch.cat(parts).reshape(numbers.shape)


class _Flat(nn.Module):
    """The model, of a batch of one row that holds the tokens of all sequences."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, starts: torch.Tensor
    ) -> torch.Tensor:
        # Of a sequence without a token it is one of another, and means nothing.
        last = (starts[1:] - 1).clamp(min=0)
        with _Constants():
            logits = self._run(tokens, positions, last).logits[0]
        # Some models take no heed of logits_to_keep.
        return logits[last] if statically_known_true(logits.shape[0] == tokens.shape[0]) else logits

    def _run(self, tokens: torch.Tensor, positions: torch.Tensor, last: torch.Tensor) -> Any:
        return self.model(
            input_ids=tokens[None],
            position_ids=positions[None],
            attention_mask=tokens.new_ones((1, tokens.shape[0]), dtype=torch.bool),
            use_cache=False,
            logits_to_keep=last,
        )


def trace(
    model: nn.Module, max_tokens: int, max_sequences: int, context: int
) -> torch.export.ExportedProgram:
    """Traces a model whose parameters and buffers are on the device meta, for sequences of up to
    `context` tokens. Inputs are tokens and
    positions, [T], and starts, [S + 1]; the output has the logits of each sequence's last token."""
    AttentionInterface.register("braid", _attention)
    AttentionMaskInterface.register("braid", _mask_of(context))
    model.set_attn_implementation("braid")
    _take_experts(model)
    for indexer in _indexers(model):
        indexer.forward = _pick_all
    tokens = torch.zeros(8, dtype=torch.int32, device="meta")
    starts = torch.zeros(5, dtype=torch.int32, device="meta")
    # Of fewer torch.export would make constants. The graph has its own bounds.
    rows = torch.export.Dim("tokens", min=1, max=max(max_tokens, 8))
    ends = torch.export.Dim("sequences", min=1, max=max(max_sequences, 4))
    inputs = {"tokens": tokens, "positions": tokens.clone(), "starts": starts}
    shapes = {"tokens": {0: rows}, "positions": {0: rows}, "starts": {0: ends + 1}}
    with mock.patch.object(masking_utils, "chunked_causal_mask_function", _chunks):
        return _exported(_Flat(model), inputs, shapes)


def _take_experts(module: nn.Module) -> None:
    ExpertsInterface.register("braid", experts)
    for each in module.modules():  # also those of a part of a model
        if hasattr(each, "has_gate") and hasattr(each, "config"):
            each.config._experts_implementation = "braid"
    replace_loops(module)


class _Named(nn.Module):
    """A module whose names begin with `model`, as those of _Flat do."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, inputs: dict[str, torch.Tensor]) -> Any:
        with _Constants():
            return self.model(**inputs)


def trace_module(
    module: nn.Module, inputs: Mapping[str, torch.Tensor], dims: Mapping[str, dict[int, Any]]
) -> torch.export.ExportedProgram:
    """Traces a module whose parameters and buffers are on the device meta, of inputs like these."""
    metas = {}
    for name, tensor in inputs.items():
        shape = list(tensor.shape)
        for d, dim in dims[name].items():
            shape[d] = max(shape[d], 2)  # torch.export would take 1 for a constant
            if not dim.min <= shape[d] <= dim.max:
                shape[d] = dim.max
        metas[name] = torch.empty(shape, dtype=tensor.dtype, device="meta")
    _take_experts(module)
    with torch.device("meta"):  # what the module makes as it runs
        return _exported(_Named(module), {"inputs": metas}, {"inputs": dict(dims)})


def _decompositions() -> dict[Any, Any]:
    """PyTorch's own, of the ops that are not lowered as they are."""
    aten = torch.ops.aten
    more = (aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_linear1d)
    more += (aten.upsample_bilinear2d, aten.adaptive_max_pool2d)
    more += (aten.grid_sampler_2d, aten._native_batch_norm_legit, aten.addmv, aten.dist)
    every = {**torch.export.default_decompositions(), **get_decompositions(more), **COMPOSITIONS}
    return {
        op: made
        for op, made in every.items()
        if isinstance(op, torch._ops.OpOverload) and not is_known(op._schema.name)
    }


def _exported(
    model: nn.Module, inputs: Mapping[str, Any], shapes: Mapping[str, Any]
) -> torch.export.ExportedProgram:
    said = io.StringIO()  # of a model that it refuses: the graph so far
    try:
        with torch.no_grad():
            with contextlib.redirect_stderr(said):
                program = torch.export.export(
                    model.eval(), (), dict(inputs), dynamic_shapes=shapes, strict=False
                )
            sys.stderr.write(said.getvalue())
            program = program.run_decompositions(_decompositions())  # without writes in place
            unfold(program)
        signature = program.graph_signature
        changed = signature.buffers_to_mutate | signature.user_inputs_to_mutate
        if changed:
            (first, *_) = changed.values()
            name = first.removeprefix("model.").removeprefix("inputs_")
            raise CannotExport(f"changes {name} in place; expected buffers and inputs that stay")
        return program
    except CannotExport as problem:  # to what a composition says torch.fx adds where it stands
        text, added, stack = str(problem).partition("\n\nWhile executing ")
        place = f"; {source_of(stack)}" if added else ""
        raise CannotExport(f"{type(model.model).__name__}: {text}{place}") from None
    except Exception as error:  # whatever the model's code does with what is no plain tensor
        first = str(error).strip().partition("\n")[0]
        text = f"torch.export: {type(error).__name__}: {first}{_where(error)}"
        raise CannotExport(f"{type(model.model).__name__}: {text}") from error


def _where(error: Exception) -> str:
    """The innermost line that is neither PyTorch's nor this package's."""
    ours = tuple(os.path.dirname(path) + os.sep for path in (torch.__file__, __file__))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(ours) and os.path.exists(frame.filename):
            return f"; {frame.filename}:{frame.lineno}: {frame.line}"
    return ""
