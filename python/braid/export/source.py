"""Where a model and its weights come from: a folder in the layout of the Hub, or a model in memory."""

import contextlib
import copy
import json
import os
import pathlib
from typing import Any, Callable, Iterator, Mapping

import torch
from safetensors import safe_open
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.conversion_mapping import get_checkpoint_conversion_mapping

from ..errors import InvalidArgument
from . import mxfp4
from .plan import Cut

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

# The elements of a tensor in `range` of `dim`, or all where there is no range.
Reader = Callable[[str, int, tuple[int, int] | None], torch.Tensor]


class Source:
    """`model` has its parameters and buffers on the device meta, for a plan to be applied to;
    `buffers` has the buffers' values. What is tied has its first name."""

    def __init__(self, model: nn.Module, read: Reader, dtype: torch.dtype | None):
        self.config = getattr(model, "config", None)
        self.plan: Mapping[str, str] = getattr(model, "tp_plan", None) or {}
        self.buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        metas = {
            id(p): nn.Parameter(p.to("meta", dtype if p.is_floating_point() else None), False)
            for p in model.parameters()
        }
        self.model = copy.deepcopy(model, metas).to("meta")
        self._types = {name: (p.dtype, p.shape) for name, p in self.model.named_parameters()}
        self._read = read

    def names(self) -> Callable[[str], str]:
        """What gives the parameters and buffers of `model`, as it is, their names here, by those that
        they have in the module that is traced."""
        names = {p: name for name, p in self.model.named_parameters()}  # of what is tied the first

        def name_of(path: str) -> str:
            path = path.removeprefix("model.")
            return path if path in self.buffers else names[self.model.get_parameter(path)]

        return name_of

    def piece(self, name: str, rank: int, ranks: int, cut: Cut | None) -> torch.Tensor:
        """A rank's part of a parameter, or a buffer. Only that part is read."""
        if name in self.buffers:
            return self.buffers[name]
        dtype, shape = self._types[name]
        if cut is None:
            return self._read(name, 0, None).to(dtype)
        ranges = cut.ranges(shape[cut.dim], rank, ranks)
        return torch.cat([self._read(name, cut.dim, each) for each in ranges], cut.dim).to(dtype)


def of_model(model: nn.Module, dtype: str | None) -> Source:
    parameters = dict(model.named_parameters())

    def read(name: str, dim: int, part: tuple[int, int] | None) -> torch.Tensor:
        whole = parameters[name].detach()
        return whole if part is None else whole.narrow(dim, part[0], part[1] - part[0])

    return Source(model, read, DTYPES[dtype] if dtype else None)


def of_folder(folder: str | os.PathLike[str], dtype: str | None) -> Source:
    """Reads config.json and the headers of the weights. Nothing is downloaded."""
    folder = pathlib.Path(folder)
    if not (folder / "config.json").is_file():
        raise InvalidArgument(
            f"{folder}: has no config.json; expected a folder in the Hub's layout"
        )
    files = _files(folder)
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    with _parameters_on_meta():
        kept = DTYPES[dtype] if dtype else config.dtype or torch.float32
        model = AutoModelForCausalLM.from_config(config, dtype=kept)
    model.tie_weights()
    mxfp4.keep_packed(model, lambda name: _key_of(model, name, files) is not None, kept)
    names = _checkpoint_names(model, files)
    missing = [name for name, _ in model.named_parameters() if name not in names]
    if missing:
        # Weights that transformers renames or joins as it loads them go through its memory.
        if not get_checkpoint_conversion_mapping(config.model_type):
            raise InvalidArgument(
                f"{folder}: the weights lack {missing[0]}, and {len(missing) - 1} more; expected all "
                f"that {type(model).__name__} has"
            )
        return of_model(
            AutoModelForCausalLM.from_pretrained(folder, dtype="auto", local_files_only=True), dtype
        )
    opened: dict[pathlib.Path, Any] = {}
    shapes = {name: list(p.shape) for name, p in model.named_parameters()}

    def read(name: str, dim: int, part: tuple[int, int] | None) -> torch.Tensor:
        key = names[name]
        path = files[key]
        if path not in opened:
            opened[path] = safe_open(path, "pt")
        tensor = opened[path].get_slice(key)
        is_packed = mxfp4.is_stored(name, tensor.get_dtype())
        if is_packed:
            tensor = mxfp4.read(name, tensor[:])
        found = list(tensor.shape) if is_packed else tensor.get_shape()
        if found != shapes[name]:
            raise InvalidArgument(
                f"{path}: {key} is {found}; expected {shapes[name]} as config.json says"
            )
        return tensor[(slice(None),) * dim + (slice(*part) if part else slice(None),)]

    return Source(model, read, None)


def _files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """The file of each tensor."""
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if index.is_file():
        content = json.loads(index.read_text())["weight_map"]
        return {key: folder / pathlib.PurePath(name).name for key, name in content.items()}
    if single.is_file():
        with safe_open(single, "pt") as file:
            return dict.fromkeys(file.keys(), single)
    found = sorted(path.name for path in folder.iterdir())
    raise InvalidArgument(
        f"{folder}: has no model.safetensors (found {', '.join(found)}); other formats, such as "
        "pickles, are not read: save the model with save_pretrained"
    )


def _checkpoint_names(model: nn.Module, files: dict[str, Any]) -> dict[str, str]:
    """The tensor of each parameter that is there."""
    found = {name: _key_of(model, name, files) for name, _ in model.named_parameters()}
    return {name: key for name, key in found.items() if key is not None}


def _key_of(model: nn.Module, name: str, files: dict[str, Any]) -> str | None:
    """The tensor of this name, which may lack the prefix of a model without a head."""
    prefix = model.base_model_prefix + "."
    keys = (name, name.removeprefix(prefix), prefix + name)
    return next((key for key in keys if key in files), None)


@contextlib.contextmanager
def _parameters_on_meta() -> Iterator[None]:
    """Modules made inside have no memory for their parameters, but buffers as always."""

    def replace(_module: nn.Module, _name: str, parameter: nn.Parameter | None) -> Any:
        return None if parameter is None else nn.Parameter(parameter.to("meta"), False)

    hook = register_module_parameter_registration_hook(replace)
    try:
        yield
    finally:
        hook.remove()
