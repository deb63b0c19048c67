"""A device and the ranks on it."""

import ctypes
import logging
import os
from typing import Callable, Sequence

from . import library
from .executable import Executable
from .graph import GraphLike, as_json

_log = logging.getLogger("braid")


def _text(value: str | os.PathLike[str] | None) -> bytes | None:
    return None if value is None else os.fsencode(value)


class World(library.Owner):
    """`ranks` ranks in this process, on the device "cuda" or "cpu" (by default cuda where there is a
    GPU). `progress(done, total, what)` is called while an executable compiles. Warnings about speed
    go to the logger "braid". The other options are those of braid_world_options in braid.h."""

    def __init__(
        self,
        ranks: int = 1,
        device: str | None = None,
        *,
        threads: int = 0,
        cache_dir: str | os.PathLike[str] | None = None,
        target: str | None = None,
        timeout_s: float = 0,
        compile_processes: int = 0,
        compile_in_background: bool = False,
        tune_db: str | os.PathLike[str] | None = None,
        pass_options: Sequence[str] = (),
        sanitize: str | None = None,
        count: bool = False,
        progress: Callable[[int, int, str], None] | None = None,
    ):
        self.ranks = ranks
        self._failure: BaseException | None = None

        def report(_: int, done: int, total: int, what: bytes) -> int:
            try:
                if progress is not None:
                    progress(done, total, what.decode())
                return 0
            except BaseException as failure:  # pylint: disable=broad-except
                self._failure = failure
                return 1

        # The library calls them as long as the world lives.
        self._callbacks = (
            library.OnWarning(lambda _, what: _log.warning("%s", what.decode())),
            library.OnProgress(report),
        )
        passes = (ctypes.c_char_p * (len(pass_options) + 1))(*map(str.encode, pass_options))
        options = library.WorldOptions(
            bytes=ctypes.sizeof(library.WorldOptions),
            device=_text(device),
            world=ranks,
            threads=threads,
            cache_dir=_text(cache_dir),
            target=_text(target),
            timeout_s=timeout_s,
            warning=self._callbacks[0],
            progress=self._callbacks[1],
            compile_processes=compile_processes,
            compile_in_background=compile_in_background,
            tune_db=_text(tune_db),
            pass_options=passes,
            sanitize=_text(sanitize),
            count=count,
        )
        handle = library.created("braid_world_open", ctypes.byref(options))
        super().__init__(handle, "braid_world_destroy")

    def compile(self, graph: GraphLike) -> Executable:
        """Compiles a `Graph`, its JSON, or a file of it. An exception of `progress` ends the call."""
        try:
            handle = library.created("braid_compile", self._handle, as_json(graph).encode())
        except library.errors.Cancelled:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure from None
            raise
        return Executable(handle, self)

    def load(self, directory: str | os.PathLike[str]) -> Executable:
        """What `Executable.save` wrote."""
        return Executable(library.created("braid_load", self._handle, _text(directory)), self)

    def memory_estimate(self, graph: GraphLike) -> tuple[int, int]:
        """The bytes that an executable of the graph would allocate on each rank, and those of them
        that a caller saves who binds all inputs and outputs."""
        found, bound = ctypes.c_int64(), ctypes.c_int64()
        library.call(
            "braid_memory_estimate",
            self._handle,
            as_json(graph).encode(),
            ctypes.byref(found),
            ctypes.byref(bound),
        )
        return found.value, bound.value

    def stream(self, rank: int) -> "Stream":
        return Stream(self, rank)

    def metrics(self) -> dict[str, float]:
        """Counters over all executables of the world, since it was opened."""
        metrics = library.Metrics()
        library.call("braid_world_metrics", self._handle, ctypes.byref(metrics))
        return {name: getattr(metrics, name) for name, *_ in library.Metrics._fields_}


class Stream(library.Owner):
    """Work of one rank, in order. With `raw` it is the caller's CUstream, such as
    `torch.cuda.Stream.cuda_stream`, which must outlive it."""

    def __init__(self, world: World, rank: int, raw: int | None = None):
        if raw is None:
            handle = library.created("braid_stream_create", world._handle, rank)
        else:
            address = ctypes.c_void_p(raw)
            handle = library.created("braid_stream_wrap", world._handle, rank, address)
        super().__init__(handle, "braid_stream_destroy")
        self.rank = rank

    def synchronize(self) -> None:
        library.call("braid_stream_synchronize", self._handle)
