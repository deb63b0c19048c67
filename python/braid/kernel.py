"""Kernels of the caller's own, as PTX, and what the cpu device sees of them."""

import ctypes
import json
from typing import Any, NamedTuple, Sequence

from . import library
from .world import Stream, World


class DeviceInfo(NamedTuple):
    """A GPU that counts can be for."""

    name: str
    architecture: int  # 90: sm_90
    multiprocessors: int
    shared_bytes: int  # most of one block
    ghz: float  # clock of the multiprocessors


def device_info(name: str) -> DeviceInfo:
    """Describes one of the devices of `braid run --count`, such as "H100"."""
    info = library.DeviceInfo()
    library.call("braid_describe_device", name.encode(), ctypes.byref(info))
    return DeviceInfo(name, info.architecture, info.multiprocessors, info.shared_bytes, info.ghz)


class Kernel(library.Owner):
    """The entry of a PTX text, loaded on a rank. `file` is what findings call the text; `registers`
    of each thread are for estimates, 0 where they are unknown."""

    def __init__(
        self, world: World, ptx: str, entry: str, *, rank: int = 0, file: str = "", registers: int = 0
    ):
        source = library.KernelSource(
            bytes=ctypes.sizeof(library.KernelSource),
            ptx=ptx.encode(),
            entry=entry.encode(),
            file=file.encode(),
            registers=registers,
        )
        handle = library.created("braid_kernel_load", world._handle, rank, ctypes.byref(source))
        super().__init__(handle, "braid_kernel_destroy")
        self.world = world
        self.ptx = ptx

    def launch(
        self,
        stream: Stream,
        grid: Sequence[int],
        block: Sequence[int],
        addresses: Sequence[int],
        *,
        shared_bytes: int = 0,
        cluster: Sequence[int] = (1,),
    ) -> None:
        """Enqueues a launch. The value of parameter i lies at `addresses[i]`, and is copied."""
        how = library.Launch(
            bytes=ctypes.sizeof(library.Launch),
            grid=tuple(grid),
            block=tuple(block),
            cluster=tuple(cluster),
            shared_bytes=shared_bytes,
            args=ctypes.cast((ctypes.c_void_p * len(addresses))(*addresses), ctypes.c_void_p),
            count=len(addresses),
        )
        library.call("braid_kernel_launch", self._handle, stream._handle, ctypes.byref(how))

    def counts(self, device: str) -> dict[str, Any] | None:
        """What its launches did since `forget`, and the estimate of one on a device: the JSON of
        `braid run --count`. None where there was no launch."""
        text = ctypes.c_char_p()
        library.call("braid_kernel_counts", self._handle, device.encode(), ctypes.byref(text))
        return None if text.value is None else json.loads(text.value)


class Lent(library.Owner):
    """Host memory that kernels of a rank may use as long as this is there, for a world that checks
    accesses. Findings call it `name`."""

    def __init__(self, world: World, address: int, size: int, name: str, rank: int = 0):
        place, length = ctypes.c_void_p(address), ctypes.c_size_t(size)
        handle = library.created(
            "braid_memory_lend", world._handle, rank, place, length, name.encode()
        )
        super().__init__(handle, "braid_memory_destroy")


def findings(world: World) -> dict[str, list[dict[str, Any]]]:
    """The findings and the notes of the sanitizer since `forget`: the JSON of `braid ptx`."""
    text = ctypes.c_char_p()
    library.call("braid_findings", world._handle, ctypes.byref(text))
    return json.loads(text.value or b"{}")


def forget(world: World) -> None:
    """Forgets findings and counts of a world that checks or counts."""
    library.call("braid_forget", world._handle)


def tensor_map(
    world: World,
    address: int,
    type: int,
    dims: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    swizzle: int,
    nan_fill: bool = False,
) -> bytes:
    """The 128 bytes by which kernels of the cpu device know a tensor map. The arguments are those of
    cuTensorMapEncodeTiled: the innermost dim comes first, and `strides` are those of the others, in
    bytes."""
    encoded = ctypes.create_string_buffer(128)
    arrays = (
        (ctypes.c_uint64 * len(dims))(*dims),
        (ctypes.c_uint64 * len(strides))(*strides),
        (ctypes.c_uint32 * len(box))(*box),
    )
    spec = library.TensorMap(
        bytes=ctypes.sizeof(library.TensorMap),
        data=address,
        type=type,
        rank=len(dims),
        dims=ctypes.addressof(arrays[0]),
        strides=ctypes.addressof(arrays[1]),
        box=ctypes.addressof(arrays[2]),
        swizzle=swizzle,
        nan_fill=nan_fill,
    )
    library.call("braid_tensor_map_encode", world._handle, ctypes.byref(spec), encoded)
    return encoded.raw
