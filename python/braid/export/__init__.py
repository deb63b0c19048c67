"""Turns a causal language model of transformers, or any module of PyTorch, into a folder that braid
runs without Python.

    python -m braid.export MODEL_DIR -o OUT --tp 4 --dtype bf16 --max-tokens 8192 --max-sequences 256

A model is not changed. Its attention and its experts arrive as one op each, through the interfaces
of transformers; its own `tp_plan` says how weights are split. docs/python.md describes the folder.
"""

import json
import math
import os
import pathlib
import shutil
import sys
import types
import warnings
from typing import Any, Mapping

import torch
from torch import nn
from transformers import PretrainedConfig

from ..errors import CannotExport, InvalidArgument, Remark
from ..graph import Extent, Graph
from . import aten_complex, aten_convolutions, aten_elements  # noqa: F401  they register
from . import aten_folds, aten_rows, aten_shapes, aten_updates  # noqa: F401
from . import chat, modules, source, weights
from .lower import Lowering
from .patterns import Rewriting
from .plan import apply, chosen
from .trace import keys_that_are_picked, trace

__all__ = ["CannotExport", "Remark", "export"]

FORMAT = 1
_PAGE_SIZES = (16, 32, 64, 128, 256)  # those of paged_attention
# What a server of the model reads beside the graph, copied where the model's folder has it.
_COPIED = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
           "tokenizer.model", "special_tokens_map.json", "chat_template.jinja")  # fmt: skip


def export(
    model: "nn.Module | str | os.PathLike[str]",
    out: str | os.PathLike[str],
    *,
    tp: int = 1,
    plan: Mapping[str, str] | None = None,
    inputs: Mapping[str, torch.Tensor] | None = None,
    dynamic_shapes: Mapping[str, Any] | None = None,
    dtype: str | None = None,
    max_tokens: int = 8192,
    max_sequences: int = 256,
    context: int | None = None,
    page_size: int = 16,
    pages: int | None = None,
    progress: weights.Progress | None = None,
) -> None:
    """Writes graph.json, the weights and manifest.json into the folder `out`.

    `model` is a model, or a folder in the Hub's layout. `dtype` is f32, f16 or bf16, by default the
    model's own. One run takes up to `max_tokens` tokens of up to `max_sequences` sequences, each of
    which has up to `context` tokens (by default as many as the model was made for). The cache has
    `pages` pages of `page_size` tokens, by default enough for one sequence of the whole context.
    `progress(done, total, name)` is called for each tensor that is written. `plan` has a style for
    patterns of module names, as `tp_plan` of transformers does, and is by default the model's own.

    With `inputs`, `model` is any module: they are tensors by the names of its forward's parameters,
    of which only dtypes and shapes count, and `dynamic_shapes` says which dims are symbols, as that
    of torch.export does: {"x": {0: torch.export.Dim("T", max=512)}}. Its outputs are `output`, or
    `output_0`, ..., or the keys of a dict. There is no cache, and no option of one.

    What is left out, such as a chat template, or costs memory, such as latent attention, is a
    warning of the class `Remark`.

    Raises `CannotExport`, which names all ops that braid has no counterpart for, with module and
    source line; `InvalidArgument` where the model has no plan for `tp` ranks, or where its weights
    do not fit its config.
    """
    if dtype is not None and dtype not in source.DTYPES:
        raise InvalidArgument(f"dtype: found {dtype}; expected one of {', '.join(source.DTYPES)}")
    numbers = {"tp": tp, "max_tokens": max_tokens, "max_sequences": max_sequences}
    numbers |= {"context": context, "pages": pages}
    for name, value in numbers.items():
        if value is not None and value < 1:
            raise InvalidArgument(f"{name}: found {value}; expected a number from 1 on")
    if page_size not in _PAGE_SIZES:
        sizes = ", ".join(map(str, _PAGE_SIZES))
        raise InvalidArgument(f"page_size: found {page_size}; expected one of {sizes}")
    is_model = isinstance(model, nn.Module)
    if inputs is not None:
        if not is_model:
            raise InvalidArgument(f"inputs: found some beside {model}; expected a torch.nn.Module")
        for name, value in {"dtype": dtype, "context": context, "pages": pages}.items():
            if value is not None:
                raise InvalidArgument(f"{name}: found {value} beside inputs; expected none")
        modules.export_module(model, out, inputs, dynamic_shapes, plan, tp, progress)
        return
    found = source.of_model(model, dtype) if is_model else source.of_folder(model, dtype)
    if not isinstance(found.config, PretrainedConfig):
        raise InvalidArgument(
            f"{type(model).__name__}: is no model of transformers; expected `inputs` beside it, a "
            "tensor for each parameter of its forward"
        )
    config = found.config.get_text_config()
    context = _context(found, context or 0)
    room = -(-context // page_size)
    pages = pages or room
    graph = Graph(type(found.model).__name__)
    # Runs that decode have kernels of their own.
    buckets = {"buckets": [max_sequences]} if max_sequences < max_tokens else {}
    rows = graph.symbol("T", max=max_tokens, **buckets)
    sequences = graph.symbol("S", max=max_sequences)
    if tp > 1:
        graph.group("tp", tp)
    for name, shape in (
        ("tokens", [rows]),
        ("positions", [rows]),
        ("slots", [rows]),
        ("page_table", [sequences, room]),
        ("lengths", [sequences]),
        ("starts", [f"{sequences}+1"]),
    ):
        graph.input(name, "i32", shape)

    cuts = apply(found.model, chosen(found.model, plan, found.plan), tp)
    caches: dict[str, None] = {}

    def cache(name: str, shape: list[Extent], of: str) -> str:
        if name not in caches:
            graph.input(name, of, [pages, page_size, *shape], "state", per_rank=tp > 1)
            caches[name] = None
            lowering.dtypes[name], lowering.shapes[name] = of, [pages, page_size, *shape]
        return name

    program = trace(found.model, max_tokens, max_sequences, context)
    names = ("tokens", "positions", "starts")
    lowering = Lowering(
        graph, program, names, found.names(), found.buffers, cuts, cache, apart="T"
    )
    (logits,) = lowering.run({"T": ("tokens", 0), "S": ("starts", 0)})
    lowering.finish({"logits": logits})
    Rewriting(lowering).run()

    sizes = config.to_dict()
    rank_of_latent = sizes.get("kv_lora_rank")
    if rank_of_latent and caches:
        whole = sum(math.prod(each["shape"][2:]) for each in graph.inputs if each["name"] in caches)
        own = rank_of_latent + sizes.get("qk_rope_head_dim", 0)
        warnings.warn(
            f"{type(found.model).__name__}: its latent attention is exported expanded: a layer's cache "
            f"holds {2 * whole // len(caches)} elements for each token on each rank, not {own}",
            Remark,
            stacklevel=2,
        )

    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.json").write_text(graph.to_json(indent=1) + "\n")
    written = weights.write(folder, graph, found, cuts, tp, progress)
    if not is_model:
        for name in _COPIED:
            if (pathlib.Path(model) / name).is_file():
                shutil.copyfile(pathlib.Path(model) / name, folder / name)
    manifest: dict[str, Any] = {
        "braid_model": FORMAT,
        "architecture": type(found.model).__name__,
        "graph": "graph.json",
        "weights": written,
        "ranks": tp,
        "vocabulary": config.vocab_size,
        "max_tokens": max_tokens,
        "max_sequences": max_sequences,
        "context": context,
        "page_size": page_size,
        "pages": pages,
        "caches": list(caches),
        "end_of_text": _end_of_text(found),
    }
    if not is_model:
        try:
            manifest |= chat.of_folder(pathlib.Path(model))
        except ValueError as error:
            warnings.warn(f"the folder is without its chat template: {error}", Remark, stacklevel=2)
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def _context(found: source.Source, wanted: int) -> int:
    """The tokens of a sequence: those that are wanted, or as many as the model was made for."""
    longest = found.config.get_text_config().max_position_embeddings
    picked = keys_that_are_picked(found.model)
    if picked is None or (wanted or longest) <= picked:
        return wanted or longest
    name = type(found.model).__name__
    if wanted:
        raise InvalidArgument(
            f"context: found {wanted}; expected at most {picked}, as many keys as the sparse attention "
            f"of {name} picks: it is exported where it picks all"
        )
    warnings.warn(
        f"{name}: its sparse attention picks {picked} keys and is exported where these are all: the "
        f"context is {picked} tokens, not {longest}",
        Remark,
        stacklevel=3,
    )
    return picked


def _end_of_text(found: source.Source) -> list[int]:
    ids = getattr(found.model, "generation_config", found.config).eos_token_id
    return ids if isinstance(ids, list) else [] if ids is None else [ids]


class _Module(types.ModuleType):
    """`braid.export(...)` is this module's function."""

    def __call__(self, *arguments: Any, **options: Any) -> None:
        export(*arguments, **options)


sys.modules[__name__].__class__ = _Module
