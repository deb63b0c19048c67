"""The files of an export that hold its parameters."""

import pathlib
from typing import Any, Callable

import torch

from .. import safetensors
from ..errors import InvalidArgument
from ..graph import Graph
from .lower import DTYPES
from .plan import Cut
from .source import Source

# What is called for each tensor that is written: those done, all, its name.
Progress = Callable[[int, int, str], None]


def write(
    folder: pathlib.Path,
    graph: Graph,
    found: Source,
    cuts: dict[str, Cut],
    ranks: int,
    progress: Progress | None,
) -> dict[str, Any]:
    """What all ranks share in one file, and what each has of its own in another."""
    parameters = [each for each in graph.inputs if each["kind"] == "parameter"]
    shared = [each for each in parameters if each["name"] not in cuts]
    own = [each for each in parameters if each["name"] in cuts]
    total, done = len(shared) + ranks * len(own), 0

    def entry(of: dict[str, Any], rank: int) -> safetensors.Entry:
        def make() -> Any:
            nonlocal done
            if progress is not None:
                progress(done, total, of["name"])
            done += 1
            piece = found.piece(of["name"], rank, ranks, cuts.get(of["name"])).contiguous()
            if [DTYPES[piece.dtype], *piece.shape] != [of["dtype"], *of["shape"]]:
                raise InvalidArgument(
                    f"{of['name']}: is {piece.dtype}{list(piece.shape)}; expected {of['dtype']}"
                    f"{of['shape']}"
                )
            return piece.view(-1).view(torch.uint8).numpy()

        return safetensors.Entry(of["name"], of["dtype"], of["shape"], make)

    files: dict[str, Any] = {"shared": "shared.safetensors"}
    safetensors.write(folder / files["shared"], [entry(each, 0) for each in shared])
    files["ranks"] = [f"rank{rank}.safetensors" for rank in range(ranks)] if own else []
    for rank, name in enumerate(files["ranks"]):
        safetensors.write(folder / name, [entry(each, rank) for each in own])
    if progress is not None:
        progress(total, total, "")
    return files
