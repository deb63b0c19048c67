"""The C interface of braid (include/braid/braid.h), loaded by ctypes."""

import ctypes
import functools
import os
import pathlib
import weakref
from typing import Any

from . import errors

OnProgress = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p
)
OnWarning = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class WorldOptions(ctypes.Structure):
    _fields_ = [
        ("bytes", ctypes.c_size_t),
        ("device", ctypes.c_char_p),
        ("world", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("cache_dir", ctypes.c_char_p),
        ("target", ctypes.c_char_p),
        ("timeout_s", ctypes.c_double),
        ("warning", OnWarning),
        ("progress", OnProgress),
        ("allocate", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("compile_processes", ctypes.c_int32),
        ("compile_worker", ctypes.c_char_p),
        ("compile_in_background", ctypes.c_int32),
        ("host", ctypes.c_char_p),
        ("port", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("job", ctypes.c_char_p),
        ("meet_timeout_s", ctypes.c_double),
        ("tune_db", ctypes.c_char_p),
        ("pass_options", ctypes.POINTER(ctypes.c_char_p)),
        ("sanitize", ctypes.c_char_p),
        ("count", ctypes.c_int32),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_char_p),
        ("dims", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class TensorInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("dims", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_char_p)),
        ("parameter", ctypes.c_int32),
        ("per_rank", ctypes.c_int32),
    ]


class SymbolInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("min", ctypes.c_int64),
        ("max", ctypes.c_int64),
        ("multiple_of", ctypes.c_int64),
    ]


class Metrics(ctypes.Structure):
    _fields_ = [
        ("kernels_compiled", ctypes.c_uint64),
        ("kernels_from_cache", ctypes.c_uint64),
        ("compile_ms", ctypes.c_double),
        ("plans", ctypes.c_uint64),
        ("runs", ctypes.c_uint64),
        ("failures", ctypes.c_uint64),
    ]


class KernelSource(ctypes.Structure):
    _fields_ = [
        ("bytes", ctypes.c_size_t),
        ("ptx", ctypes.c_char_p),
        ("entry", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("registers", ctypes.c_int32),
    ]


class Launch(ctypes.Structure):
    _fields_ = [
        ("bytes", ctypes.c_size_t),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("args", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
    ]


class TensorMap(ctypes.Structure):
    _fields_ = [
        ("bytes", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("box", ctypes.c_void_p),
        ("swizzle", ctypes.c_int32),
        ("nan_fill", ctypes.c_int32),
    ]


class DeviceInfo(ctypes.Structure):
    _fields_ = [
        ("architecture", ctypes.c_int32),
        ("multiprocessors", ctypes.c_int32),
        ("shared_bytes", ctypes.c_int32),
        ("ghz", ctypes.c_double),
    ]


def path() -> str:
    """`BRAID_LIBRARY` where it is set, else the libbraid.so that the package holds."""
    return os.environ.get("BRAID_LIBRARY") or str(
        pathlib.Path(__file__).parent / "lib" / "libbraid.so"
    )


@functools.cache
def _load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(path())
    except OSError as error:
        raise errors.MissingEnvironment(
            f"{path()}: {error}; expected braid's library: install the package with its libraries, "
            "or set BRAID_LIBRARY to the path of libbraid.so"
        ) from None
    library.braid_version.restype = ctypes.c_char_p
    library.braid_last_error.restype = ctypes.c_char_p
    return library


def version() -> str:
    return _load().braid_version().decode()


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status, and raises what it failed with. Numbers are passed as
    C ints, unless they are ctypes' own."""
    library = _load()
    if status := getattr(library, name)(*arguments):
        raise errors.BY_STATUS[status](library.braid_last_error().decode())


def created(name: str, *arguments: Any) -> ctypes.c_void_p:
    """The handle that a function leaves where its last argument points."""
    handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle


class Owner:
    """Holds a handle, and destroys it with `close`, at the end of a `with`, or when it is no longer
    used."""

    def __init__(self, handle: ctypes.c_void_p, destroy: str):
        self._handle = handle
        self._finalizer = weakref.finalize(self, getattr(_load(), destroy), handle)

    def close(self) -> None:
        self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
