"""Files of tensors in the format safetensors: mapped when they are read, and written one tensor at a
time, so that no file needs to fit into memory."""

import json
import math
import mmap
import os
from typing import Any, Callable, Iterable, NamedTuple

import numpy as np

from . import tensors
from .errors import InvalidArgument

# Names and bytes of an element.
_TYPES = {
    "f32": ("F32", 4), "f16": ("F16", 2), "bf16": ("BF16", 2), "f8e4m3": ("F8_E4M3", 1),
    "f8e5m2": ("F8_E5M2", 1), "i32": ("I32", 4), "i64": ("I64", 8), "i8": ("I8", 1),
    "u8": ("U8", 1), "bool": ("BOOL", 1),
}  # fmt: skip
_DTYPES = {name: dtype for dtype, (name, _) in _TYPES.items()}


class Entry(NamedTuple):
    """A tensor to write: `make` returns its row-major bytes, as anything with a buffer."""

    name: str
    dtype: str
    shape: list[int]
    make: Callable[[], Any]


def write(path: str | os.PathLike[str], entries: Iterable[Entry]) -> None:
    entries = list(entries)
    header: dict[str, Any] = {}
    end = 0
    for entry in entries:
        name, size = _TYPES[entry.dtype]
        begin, end = end, end + math.prod(entry.shape) * size
        header[entry.name] = {
            "dtype": name,
            "shape": entry.shape,
            "data_offsets": [begin, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for entry in entries:
            data = memoryview(entry.make()).cast("B")
            begin, end = header[entry.name]["data_offsets"]
            if len(data) != end - begin:
                raise InvalidArgument(
                    f"{entry.name}: has {len(data)} bytes; expected {end - begin}"
                )
            file.write(data)


def read(path: str | os.PathLike[str]) -> dict[str, tensors.HostTensor]:
    """The tensors of a file, which stays mapped as long as any of them is used."""
    with open(path, "rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(memory[:8], "little")
    try:
        header = json.loads(memory[8 : 8 + size])
        whole = np.frombuffer(memory, np.uint8)[8 + size :]
        header.pop("__metadata__", None)
        result = {}
        for name, entry in header.items():
            dtype, shape = _DTYPES[entry["dtype"]], entry["shape"]
            begin, end = entry["data_offsets"]
            data = whole[begin:end]
            if not 0 <= begin <= end or len(data) != math.prod(shape) * _TYPES[dtype][1]:
                raise ValueError(f"the bytes of {name}")
            result[name] = tensors.described(data.ctypes.data, dtype, tuple(shape), data)
        return result
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgument(
            f"{os.fspath(path)}: {error}; expected a file of safetensors"
        ) from None
