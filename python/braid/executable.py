"""A compiled graph: tensors in, runs, tensors out."""

import ctypes
import itertools
import os
from typing import TYPE_CHECKING, Any, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from . import library, tensors
from .errors import InvalidArgument
from .graph import extent

if TYPE_CHECKING:
    from .world import Stream, World


class TensorInfo(NamedTuple):
    """An input, parameter or output."""

    name: str
    dtype: str
    shape: tuple[str, ...]  # of each dim, as in a graph: "8", "2*T"
    kind: str  # "activation", "parameter" or "state"; of outputs "output"
    per_rank: bool  # whether ranks have their own


class SymbolInfo(NamedTuple):
    name: str
    min: int
    max: int
    multiple_of: int


class Plan(library.Owner):
    """All launches of a run, for one value of each symbol and the addresses that were bound."""

    def __init__(self, handle: ctypes.c_void_p, values: Mapping[str, int]):
        super().__init__(handle, "braid_plan_destroy")
        self.values = dict(values)


def _listed(function: str, handle: ctypes.c_void_p, of: type) -> Iterator[Any]:
    for index in itertools.count():
        entry: Any = ctypes.POINTER(of)()
        library.call(function, handle, ctypes.c_size_t(index), ctypes.byref(entry))
        if not entry:
            return
        yield entry.contents


def _info(entry: library.TensorInfo, kind: str = "") -> TensorInfo:
    return TensorInfo(
        entry.name.decode(),
        entry.dtype.decode(),
        tuple(entry.shape[i].decode() for i in range(entry.dims)),
        kind or ("activation", "parameter", "state")[entry.parameter],
        bool(entry.per_rank),
    )


class Executable(library.Owner):
    """Made by `World.compile`, `World.load` and `braid.compile`. Used by one thread at a time.

    `run` does all at once. A server calls its parts: `bind` or `set` for what stays, `plan` for
    each size, then `set`, `launch` and `get` for each step.
    """

    def __init__(self, handle: ctypes.c_void_p, world: "World"):
        super().__init__(handle, "braid_executable_destroy")
        self.world = world
        self.inputs = [_info(e) for e in _listed("braid_input", handle, library.TensorInfo)]
        self.outputs = [
            _info(e, "output") for e in _listed("braid_output", handle, library.TensorInfo)
        ]
        self.symbols = [
            SymbolInfo(e.name.decode(), e.min, e.max, e.multiple_of)
            for e in _listed("braid_symbol", handle, library.SymbolInfo)
        ]
        self._bound: dict[tuple[int, str], Any] = {}

    def bind(self, name: str, tensor: Any, rank: int = 0) -> None:
        """Places an input, parameter or output of a rank in the tensor's own memory, which plans
        from now on use without copies. The tensor has `__dlpack__` and lies on the rank's device:
        NumPy's arrays do on the cpu device. Its first dim may be longer than a plan needs."""
        capsule, managed = tensors.dlpack(tensor)
        library.call("braid_bind_dlpack", self._handle, rank, name.encode(), managed)
        self._bound[rank, name] = (tensor, capsule)

    def plan(self, **symbols: int) -> Plan:
        """Does all that can fail or is slow, for one value of each symbol. Until another plan is
        made or launched, `set` and `get` expect its shapes."""
        handle = library.created("braid_prepare", self._handle, *_values(symbols))
        return Plan(handle, symbols)

    def ready(self, **symbols: int) -> bool:
        """Whether `plan` would return without waiting for a compile in the background."""
        ready = ctypes.c_int32()
        library.call("braid_ready", self._handle, *_values(symbols), ctypes.byref(ready))
        return bool(ready.value)

    def set(self, name: str, value: Any, rank: int | None = None) -> None:
        """Copies an array, a DLPack tensor in host memory or a `HostTensor` into an input of a rank,
        or of all."""
        given = value if isinstance(value, tensors.HostTensor) else tensors.host_tensor(value)
        for each in range(self.world.ranks) if rank is None else (rank,):
            library.call(
                "braid_set_input", self._handle, each, name.encode(), ctypes.byref(given.view)
            )

    def get(self, name: str, shape: Sequence[int], rank: int = 0) -> np.ndarray:
        """A copy of an output of the last run, or of an input or state that it may have changed.
        What is bf16, which NumPy lacks, comes as float32, without a loss."""
        dtype = next((i.dtype for i in self.outputs + self.inputs if i.name == name), None)
        if dtype is None:
            raise InvalidArgument(f"{name}: there is no such tensor; expected an output or input")
        result = np.empty(shape, np.uint16 if dtype == "bf16" else tensors.numpy_dtype(dtype))
        library.call(
            "braid_get_output",
            self._handle,
            rank,
            name.encode(),
            ctypes.c_void_p(result.ctypes.data),
            ctypes.c_size_t(result.nbytes),
        )
        if dtype == "bf16":
            # A shift makes a number of an array without dims.
            return np.asarray(result.astype(np.uint32) << 16).view(np.float32)
        return result

    def launch(self, plan: Plan, streams: "Sequence[Stream]" = ()) -> None:
        """Enqueues a run on all ranks, on one stream for each of them or on the executable's own.
        Every input must be bound, or have been set once; states begin with zeros."""
        handles = (ctypes.c_void_p * len(streams))(*(s._handle for s in streams))
        library.call(
            "braid_run", self._handle, plan._handle, handles, ctypes.c_size_t(len(streams))
        )

    def synchronize(self) -> None:
        """Waits for all runs, and raises the first error of any."""
        library.call("braid_synchronize", self._handle)

    def cancel(self) -> None:
        """Ends all waits for other ranks; any thread may call it. `synchronize` then raises
        `Cancelled` once."""
        library.call("braid_cancel", self._handle)

    def run(self, inputs: Mapping[str, Any], **symbols: int) -> dict[str, list[np.ndarray]]:
        """Sets inputs, runs, and returns the outputs as one array for each rank. An input is an
        array for all ranks, or a list of one for each; one that is left out keeps its last value,
        and must have had one. Symbols that are the whole extent of a dim of an input are found in
        its shape."""
        given: dict[str, list[tensors.HostTensor]] = {}
        for name, value in inputs.items():
            of_ranks = value if isinstance(value, list) else [value]
            if len(of_ranks) not in (1, self.world.ranks):
                raise InvalidArgument(
                    f"{name}: found a list of {len(of_ranks)}; expected an array for each of "
                    f"{self.world.ranks} ranks"
                )
            given[name] = [tensors.host_tensor(each) for each in of_ranks]
        names = {symbol.name for symbol in self.symbols}
        found = dict(symbols)
        for info in self.inputs:
            if info.name in given:
                for name, size in zip(info.shape, given[info.name][0].shape):
                    if name in names:
                        found.setdefault(name, size)
        plan = self.plan(**found)
        for name, of_ranks in given.items():
            if len(of_ranks) == 1:
                self.set(name, of_ranks[0])
            else:
                for rank, value in enumerate(of_ranks):
                    self.set(name, value, rank)
        self.launch(plan)
        self.synchronize()
        return {
            info.name: [
                self.get(info.name, [extent(e, found) for e in info.shape], rank)
                for rank in range(self.world.ranks)
            ]
            for info in self.outputs
        }

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes the plan and its kernels for `World.load`."""
        library.call("braid_save", self._handle, os.fsencode(directory))

    def another(self) -> "Executable":
        """A second instance of the program, for another thread. Both share the parameters."""
        return Executable(library.created("braid_another", self._handle), self.world)


def _values(symbols: Mapping[str, int]) -> tuple[Any, Any, ctypes.c_size_t]:
    count = len(symbols)
    return (
        (ctypes.c_char_p * count)(*map(str.encode, symbols)),
        (ctypes.c_int64 * count)(*symbols.values()),
        ctypes.c_size_t(count),
    )
