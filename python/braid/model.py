"""What `braid.export` wrote: a module as an executable, and a model decoded greedily, for tests and
a first look. A server does the same in C++, with a scheduler (docs/server.md)."""

import json
import os
import pathlib
from typing import Any, Sequence

import numpy as np

from . import safetensors
from .errors import InvalidArgument
from .executable import Executable
from .graph import Graph
from .world import World


def load_exported(
    folder: str | os.PathLike[str], device: str | None = None, **options: Any
) -> Executable:
    """What `braid.export` wrote of a module, on all its ranks and with its weights: an executable
    whose inputs are those of the export. The options are those of `World`."""
    folder = pathlib.Path(folder)
    manifest = _manifest(folder, "braid_module")
    executable = World(manifest["ranks"], device, **options).compile(folder / manifest["graph"])
    _set_weights(executable, folder, manifest)
    return executable


def _manifest(folder: pathlib.Path, kind: str) -> dict[str, Any]:
    manifest = json.loads((folder / "manifest.json").read_text())
    if manifest.get(kind) != 1:
        found = next(iter(manifest.items()), "nothing")
        raise InvalidArgument(f"{folder}: found a manifest of {found}; expected {kind} 1")
    return manifest


def _set_weights(executable: Executable, folder: pathlib.Path, manifest: dict[str, Any]) -> None:
    executable.plan(**{symbol.name: symbol.min for symbol in executable.symbols})  # of any size
    weights = manifest["weights"]
    for name, tensor in safetensors.read(folder / weights["shared"]).items():
        executable.set(name, tensor)
    for rank, file in enumerate(weights["ranks"]):
        for name, tensor in safetensors.read(folder / file).items():
            executable.set(name, tensor, rank)


class History:
    """Tokens, of which the cache has the keys and values of the first `cached`, in these pages."""

    def __init__(self, tokens: Sequence[int], pages: Sequence[int]):
        self.tokens = list(tokens)
        self.pages = list(pages)
        self.cached = 0


class Model:
    """Loads a folder on all its ranks. `pages` is the size of the cache, by default what the folder
    says; the other options are those of `World`."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        device: str | None = None,
        *,
        pages: int = 0,
        **options: Any,
    ):
        folder = pathlib.Path(folder)
        self.manifest = _manifest(folder, "braid_model")
        graph = Graph.load(folder / self.manifest["graph"])
        self.pages = pages or self.manifest["pages"]
        for entry in graph.inputs:
            if entry["kind"] == "state":
                entry["shape"][0] = self.pages
        # Pages of one sequence.
        self._room = -(-self.manifest["context"] // self.manifest["page_size"])
        # A token has the same bits in a prompt, in any chunk of one, and in decode.
        options["pass_options"] = ["invariant-attention=true", *options.get("pass_options", ())]
        self.world = World(self.manifest["ranks"], device, **options)
        self.executable = self.world.compile(graph)
        _set_weights(self.executable, folder, self.manifest)

    def step(self, sequences: Sequence[History]) -> np.ndarray:
        """Runs what the cache has not seen of all sequences in one call, and returns the logits of
        each one's last token, [sequences, vocabulary]."""
        size = self.manifest["page_size"]
        tokens, positions, slots, starts = [], [], [], [0]
        table = np.zeros((len(sequences), self._room), np.int32)
        for row, sequence in zip(table, sequences):
            row[: len(sequence.pages)] = sequence.pages
            for position in range(sequence.cached, len(sequence.tokens)):
                tokens.append(sequence.tokens[position])
                positions.append(position)
                slots.append(sequence.pages[position // size] * size + position % size)
            starts.append(len(tokens))
            sequence.cached = len(sequence.tokens)
        lengths = [sequence.cached for sequence in sequences]
        inputs = {"tokens": tokens, "positions": positions, "slots": slots, "lengths": lengths,
                  "starts": starts, "page_table": table}  # fmt: skip
        outputs = self.executable.run(
            {name: np.asarray(value, np.int32) for name, value in inputs.items()}
        )
        return outputs["logits"][0]

    def sequences(self, prompts: Sequence[Sequence[int]]) -> list[History]:
        """New sequences that share the whole cache: what it held is overwritten."""
        each = min(self.pages // len(prompts), self._room)
        return [History(p, range(i * each, (i + 1) * each)) for i, p in enumerate(prompts)]

    def generate(self, prompts: Sequence[Sequence[int]], count: int) -> list[list[int]]:
        """The `count` tokens that are most likely behind each prompt, one after the other."""
        sequences = self.sequences(prompts)
        for _ in range(count):
            for sequence, row in zip(sequences, self.step(sequences)):
                sequence.tokens.append(int(row.argmax()))
        return [s.tokens[len(p) :] for s, p in zip(sequences, prompts)]
