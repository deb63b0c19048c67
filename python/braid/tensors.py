"""Arrays of NumPy and of whoever speaks DLPack, as the C interface takes them."""

import ctypes
from typing import Any, NamedTuple, Sequence

import numpy as np

from . import library
from .errors import InvalidArgument, MissingEnvironment

# NumPy has no type of its own for the others; ml_dtypes has.
_NUMPY = {
    "f32": "float32",
    "f16": "float16",
    "i32": "int32",
    "i64": "int64",
    "i8": "int8",
    "u8": "uint8",
    "bool": "bool",
}
_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
_BY_NAME = {name: dtype for dtype, name in (_NUMPY | _ML_DTYPES).items()}
# DLPack's type codes and bits (dlpack.h).
_BY_DLPACK = {
    (0, 32): "i32",
    (0, 64): "i64",
    (0, 8): "i8",
    (1, 8): "u8",
    (2, 16): "f16",
    (2, 32): "f32",
    (4, 16): "bf16",
    (6, 8): "bool",
    (10, 8): "f8e4m3",
    (12, 8): "f8e5m2",
}


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class HostTensor(NamedTuple):
    """A tensor in host memory, and what keeps that memory alive."""

    view: library.Tensor
    shape: tuple[int, ...]
    owner: Any


def numpy_dtype(dtype: str) -> np.dtype:
    """NumPy's dtype for one of a graph; f8 needs the package ml_dtypes."""
    if dtype in _NUMPY:
        return np.dtype(_NUMPY[dtype])
    try:
        import ml_dtypes
    except ImportError:
        raise MissingEnvironment(
            f"{dtype}: NumPy has no such dtype; install ml_dtypes, or bind a DLPack tensor"
        ) from None
    return np.dtype(getattr(ml_dtypes, _ML_DTYPES[dtype]))


def described(address: int, dtype: str, shape: tuple[int, ...], owner: Any) -> HostTensor:
    """Row-major memory at an address, which `owner` keeps."""
    extents = (ctypes.c_int64 * len(shape))(*shape)
    view = library.Tensor(address, dtype.encode(), len(shape), extents, None)
    return HostTensor(view, tuple(shape), owner)


def dlpack(tensor: Any) -> tuple[Any, ctypes.c_void_p]:
    """The capsule of a tensor with `__dlpack__`, and the DLManagedTensor in it."""
    capsule = tensor.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return capsule, ctypes.c_void_p(pointer(capsule, b"dltensor"))


def _is_row_major(shape: Sequence[int], strides: Any) -> bool:
    """PyTorch states the strides of every tensor."""
    step = 1
    for d in reversed(range(len(shape))):
        if strides and shape[d] != 1 and strides[d] != step:
            return False
        step *= shape[d]
    return True


def host_tensor(value: Any) -> HostTensor:
    """A NumPy array, what has `__dlpack__` in host memory, or nested lists of numbers. What is not
    row-major is copied if it is NumPy's or PyTorch's, and refused by the library otherwise."""
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        capsule, managed = dlpack(value)
        tensor = ctypes.cast(managed, ctypes.POINTER(_DLTensor)).contents
        dtype = _BY_DLPACK.get((tensor.code, tensor.bits))
        if dtype is None or tensor.lanes != 1 or tensor.device_type != 1:
            raise InvalidArgument(
                f"tensor: is DLPack's type {tensor.code} of {tensor.bits} bits on device "
                f"{tensor.device_type}; expected a dtype of braid's in host memory"
            )
        shape = tuple(tensor.shape[: tensor.ndim])
        if not _is_row_major(shape, tensor.strides) and hasattr(value, "contiguous"):
            return host_tensor(value.contiguous())
        view = library.Tensor(
            (tensor.data or 0) + tensor.byte_offset,
            dtype.encode(),
            tensor.ndim,
            tensor.shape,
            None if _is_row_major(shape, tensor.strides) else tensor.strides,
        )
        return HostTensor(view, shape, (value, capsule))
    array = np.ascontiguousarray(value)
    if array.dtype.name not in _BY_NAME:
        raise InvalidArgument(
            f"tensor: is {array.dtype.name}; expected one of {', '.join(_BY_NAME)}"
        )
    shape = np.shape(value)  # that of a number, too, which is one dim by then
    return described(array.ctypes.data, _BY_NAME[array.dtype.name], shape, array)
