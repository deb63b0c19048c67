"""Triton's driver for the cpu device."""

import ctypes
import dataclasses
import gc
import inspect
import itertools
import os
import re
import struct
import subprocess
import tempfile
import threading
import time
import warnings
from typing import Any, Callable, Iterator, Sequence

import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase, expand_signature
from triton.backends.nvidia import compiler as nvidia_compiler
from triton.backends.nvidia import driver as nvidia_driver
from triton.runtime.errors import PTXASError

from .. import errors, kernel
from ..world import Stream, World
from .records import Finding, KernelError, KernelReport, Report, SanitizerWarning, Source, finding

_PREPARED_FOR = "A100"  # where no device is named


class _Session:
    """What a call of `use` sets up: a world with one rank, and what its launches left. Calls with the
    same arguments share one: Triton keeps what it compiled for a session, and so the session, for as
    long as the kernel's function lives."""

    _numbers = itertools.count()
    _known: dict[tuple[str | None, bool, str, int], "_Session"] = {}

    @classmethod
    def of(cls, *arguments: Any) -> "_Session":
        session = cls._known.get(arguments) or cls._known.setdefault(arguments, cls(*arguments))
        with session.lock:
            session.clear()
        return session

    def __init__(self, sanitize: str | None, count: bool, device: str, threads: int):
        self.number = next(self._numbers)
        self.device = kernel.device_info(device)
        self.checks, self.counts = sanitize is not None, count
        self.world = World(1, "cpu", threads=threads, sanitize=sanitize, count=count)
        self.stream = Stream(self.world, 0)
        self.lock = threading.Lock()
        self.estimated_ms = 0.0
        self.clear()

    def clear(self) -> None:
        self.kernels: dict[tuple[Source, tuple[int, ...]], KernelReport] = {}
        self.findings: list[Finding] = []
        self.notes: list[Finding] = []

    def launch(
        self,
        loaded: kernel.Kernel,
        source: Source,
        grid: tuple[int, int, int],
        shared_bytes: int,
        addresses: Sequence[int],
        tensors: Callable[[], Iterator[tuple[str, torch.Tensor]]],
    ) -> None:
        """Runs a kernel to its end. `tensors` are its arguments, by name."""
        failure = None
        with self.lock:
            lent = _lend(self.world, tensors()) if self.checks else []
            start = time.perf_counter()
            try:
                loaded.launch(
                    self.stream,
                    (grid[0] * source.ctas, *grid[1:]),
                    (32 * source.warps,),
                    addresses,
                    shared_bytes=shared_bytes,
                    cluster=(source.ctas,),
                )
                self.stream.synchronize()
            except errors.Error as error:
                failure = error
            milliseconds = (time.perf_counter() - start) * 1e3
            for memory in lent:
                memory.close()
            found = self._note(loaded, source, grid, milliseconds)
        text = "\n".join(map(str, found))
        if failure is not None:
            raise KernelError(text or _in_python(str(failure), loaded.ptx)) from failure
        if found:
            warnings.warn(text, SanitizerWarning, stacklevel=_levels_to_caller())

    def _note(
        self, loaded: kernel.Kernel, source: Source, grid: tuple[int, int, int], milliseconds: float
    ) -> list[Finding]:
        entry = self.kernels.setdefault((source, grid), KernelReport(source, grid))
        entry.launches += 1
        entry.milliseconds += milliseconds
        found = []
        if self.counts:
            entry.counts = loaded.counts(self.device.name)
            self.estimated_ms += (entry.estimate_us or 0) / 1e3
        if self.checks:
            seen = kernel.findings(self.world)
            found = [finding(one, source) for one in seen["findings"]]
            self.findings += found
            self.notes += [finding(one, source) for one in seen["notes"]]
        if self.checks or self.counts:
            kernel.forget(self.world)
        return found


def _in_python(message: str, ptx: str) -> str:
    """A message with the place in Python instead of that in the PTX."""

    def place(found: re.Match[str]) -> str:
        before = "\n".join(ptx.split("\n")[: int(found.group(1))])
        places = re.findall(r"\.loc\s+(\d+) (\d+) \d+(?:.*inlined_at (\d+) (\d+))?", before)
        if not places:
            return found.group(0)
        file, line, caller, caller_line = places[-1]
        path = re.search(rf'\.file\s+{caller or file} "([^"]*)"', ptx)
        name = os.path.basename(path.group(1)) if path else "?"
        return f"({name}:{caller_line or line})"

    return re.sub(r"\(ptx:(\d+)\)", place, message)


_INNER = os.path.dirname(triton.__file__), os.path.dirname(__file__)


def _levels_to_caller() -> int:
    """How far above the calling function somebody else's code is, which launched a kernel."""
    level, frame = 1, inspect.currentframe().f_back
    while frame is not None and frame.f_code.co_filename.startswith(_INNER):
        level, frame = level + 1, frame.f_back
    return level


# --- memory ---------------------------------------------------------------------------------------


def _storage(tensor: torch.Tensor) -> tuple[int, int]:
    """The first and the last address, plus one, of a tensor's memory."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _pointees(table: torch.Tensor, known: list[tuple[int, int, str]]) -> Iterator[torch.Tensor]:
    """The tensors that a tensor of 64-bit integers has addresses of."""
    values = table.view(torch.int64)
    words = [
        word
        for word in values[values >= 1 << 32].unique().tolist()
        if not any(start <= word < end for start, end, _ in known)
    ]
    if words:
        yield from _owners(words)


def _owners(words: list[int]) -> Iterator[torch.Tensor]:
    """The tensors in whose memory these addresses are."""
    for tensor in gc.get_objects():
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            continue
        start, end = _storage(tensor) if tensor.device.type == "cpu" else (0, 0)
        if any(start <= word < end for word in words):
            yield tensor


def _lend(world: World, tensors: Iterator[tuple[str, torch.Tensor]]) -> list[kernel.Lent]:
    """Lends the memory of these tensors, and of those that they have addresses of."""
    ranges: list[tuple[int, int, str]] = []
    tables = []
    for name, tensor in tensors:
        ranges.append((*_storage(tensor), name))
        if tensor.dtype in (torch.int64, torch.uint64):
            tables.append((name, tensor))
    for name, table in tables:
        for tensor in _pointees(table, ranges):
            ranges.append((*_storage(tensor), f"a tensor of {name}"))
    # Tensors may share memory.
    joined: list[tuple[int, int, str]] = []
    for start, end, name in sorted(ranges):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]), joined[-1][2])
        elif start < end:
            joined.append((start, end, name))
    return [kernel.Lent(world, start, end - start, name) for start, end, name in joined]


# --- compiling ------------------------------------------------------------------------------------


def _registers(ptx: str, architecture: int) -> int:
    """Registers of a thread, as Triton's ptxas says."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as text:
        text.write(ptx)
        text.flush()
        command = [
            nvidia_compiler.get_ptxas(architecture).path,
            "-v",
            f"--gpu-name={nvidia_compiler.sm_arch_from_capability(architecture)}",
            text.name,
            "-o",
            os.devnull,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PTXASError(done.stderr)
    used = re.search(r"Used (\d+) registers", done.stderr)
    return int(used.group(1)) if used else 0


def _stages(
    backend: Any = None, stages: Any = None, options: Any = None, language: Any = None, arch: Any = None
) -> tuple[str, str] | None:
    """Triton's hook for stages: the last one gives the PTX, with its registers behind it. Without
    arguments it is asked for what tells such code from other code in the cache."""
    if stages is None:
        return "braid", "braid"

    def binary(ptx: str, metadata: dict[str, Any]) -> bytes:
        return f"{ptx}\n// registers {_registers(ptx, backend.target.arch)}\n".encode()

    stages["cubin"] = binary
    return None


_INLINE_ASSEMBLY = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_PLACE = re.compile(r"^\s*\.loc\b.*$", re.MULTILINE)


def _placed(ptx: str) -> str:
    """The PTX without places in inline assembly, loads and stores among it: LLVM counts a line of
    Python for each of its lines, where all are of the one in front."""
    return _INLINE_ASSEMBLY.sub(lambda inline: _PLACE.sub("", inline.group()), ptx)


# --- launching ------------------------------------------------------------------------------------

_FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}


def _word(kind: str, value: Any) -> int:
    """The value of a parameter of at most 8 bytes."""
    if kind.startswith("*"):
        if value is None or isinstance(value, int):
            return value or 0
        place = getattr(value, "device", None)
        if isinstance(place, torch.device) and place.type != "cpu":
            raise errors.InvalidArgument(f"tensor: lies on {place}; expected one on the CPU")
        return value.data_ptr()
    if kind == "bf16":  # cut off, as Triton's launcher does
        return int.from_bytes(struct.pack("<f", value), "little") >> 16
    if kind in _FLOATS:
        return int.from_bytes(struct.pack(_FLOATS[kind], value), "little")
    return int(value)


def _flat(nested: Any, types: Any) -> Iterator[tuple[str, Any]]:
    """Types and values of parameters, without tuples and constants. Who launches what is compiled
    may leave out constants at the end."""
    values = iter(nested)
    for kind in types:
        if kind == "constexpr":
            next(values, None)
            continue
        value = next(values)
        if isinstance(kind, tuple):
            yield from _flat(value, kind)
        else:
            yield kind, value


def _tensors(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in an argument: in tuples, in descriptors, and behind what has an address."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (tuple, list)):
        for number, part in enumerate(value):
            yield from _tensors(f"{name}[{number}]", part)
    elif hasattr(value, "base"):
        yield from _tensors(name, value.base)
    elif callable(getattr(value, "data_ptr", None)):
        yield from ((name, owner) for owner in _owners([value.data_ptr()]))


class _Launcher:
    """Launches one compiled kernel, with the arguments that Triton's own launcher takes."""

    def __init__(self, src: Any, metadata: Any):
        signature = dict(src.signature)
        maps = getattr(metadata, "tensordesc_meta", None)
        self._types = tuple(expand_signature(signature.values(), maps, "nvTmaDesc"))
        self._expanded = nvidia_driver.wrap_handle_tensordesc(self._launch, signature, maps)
        self._names = list(signature)
        self._scratch = metadata.global_scratch_size, metadata.profile_scratch_size
        self._source = _source(src, metadata)
        self._session = _active().session

    def __call__(
        self, x: int, y: int, z: int, stream: int, loaded: kernel.Kernel, packed: Any,
        launch_metadata: Any, enter: Any, leave: Any, *args: Any,
    ) -> None:
        if x * y * z == 0:
            return
        if enter is not None:
            enter(launch_metadata)
        self._expanded((x, y, z), loaded, packed, args, args)
        if leave is not None:
            leave(launch_metadata)

    def _launch(
        self, grid: tuple[int, int, int], loaded: kernel.Kernel, packed: Any, args: Any, flat: Any
    ) -> None:
        _, ctas, shared_bytes = packed
        blocks = grid[0] * grid[1] * grid[2] * ctas
        scratch = [torch.empty(blocks * size, dtype=torch.int8) for size in self._scratch]
        parameters = [*_flat(flat, self._types), *(("*i8", memory) for memory in scratch)]
        words = (ctypes.c_uint64 * len(parameters))()
        maps = []  # keeps what addresses point to
        addresses = []
        for place, (kind, value) in enumerate(parameters):
            if kind == "nvTmaDesc":
                maps.append(ctypes.create_string_buffer(value, len(value)))
                addresses.append(ctypes.addressof(maps[-1]))
                continue
            words[place] = _word(kind, value)
            addresses.append(ctypes.addressof(words) + 8 * place)

        def tensors() -> Iterator[tuple[str, torch.Tensor]]:
            for name, value in zip(self._names, args):
                yield from _tensors(str(name), value)
            yield from (("scratch", memory) for memory in scratch)

        self._session.launch(loaded, self._source, grid, shared_bytes, addresses, tensors)


def _source(src: Any, metadata: Any) -> Source:
    function = getattr(src, "fn", None)
    constants = []
    for path, value in getattr(src, "constants", {}).items():
        name = path if isinstance(path, str) else function.arg_names[path[0]]
        constants.append((name, str(value)))
    return Source(
        metadata.name,
        function.fn.__code__.co_filename if function else "",
        function.def_file_line_number if function else 0,
        tuple(constants),
        metadata.num_warps,
        metadata.num_ctas,
    )


class _Utils:
    """What Triton calls CUDA's driver for."""

    def __init__(self, session: _Session):
        self._session = session

    def load_binary(
        self, name: str, binary: bytes, shared_bytes: int, device: int
    ) -> tuple[kernel.Kernel, kernel.Kernel, int, int, int]:
        """Returns module, function, registers, spilled bytes and the most threads of a block."""
        text = binary.decode()
        registers = int(text.rsplit("// registers ", 1)[1])
        loaded = kernel.Kernel(
            self._session.world, _placed(text), name, file=f"{name}.ptx", registers=registers
        )
        return loaded, loaded, registers, 0, 1024

    def unload_module(self, loaded: kernel.Kernel) -> None:
        loaded.close()

    def get_device_properties(self, device: int | None) -> dict[str, int]:
        info = self._session.device
        return {
            "max_shared_mem": info.shared_bytes,
            "max_num_regs": 65536,
            "multiprocessor_count": info.multiprocessors,
            "warpSize": 32,
            "sm_clock_rate": int(info.ghz * 1e6),
        }

    def fill_tma_descriptor_tiled(
        self, address: int, swizzle: int, size: int, type: int, block: Sequence[int],
        shape: Sequence[int], strides: Sequence[int], padding: int,
    ) -> bytes:
        return kernel.tensor_map(
            self._session.world,
            address,
            type,
            shape[::-1],
            [stride * size for stride in reversed(strides[:-1])],
            block[::-1],
            swizzle,
            padding == 1,
        )


class _Event:
    """A point in time, for triton.testing.do_bench. Launches are over when they return."""

    def __init__(self, enable_timing: bool = False):
        self._at = 0.0

    def record(self) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: "_Event") -> float:
        return (end._at - self._at) * 1e3


class _Interface:
    """The part of torch.cuda that Triton's benchmarks use."""

    Event = _Event

    def synchronize(self) -> None:
        pass

    def current_device(self) -> int:
        return _active().session.number


class _Driver(DriverBase):
    def __init__(self, session: _Session):
        super().__init__()
        self.session = session
        self.utils = _Utils(session)
        self.launcher_cls = _Launcher

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return nvidia_driver.ty_to_cpp(ty)

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.session.device.architecture, 32)

    # A number of its own, so that Triton keeps what it compiled for other sessions apart.
    def get_current_device(self) -> int:
        return self.session.number

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return divmod(self.session.device.architecture, 10)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> _Interface:
        return _Interface()

    def get_benchmarker(self) -> Callable[..., Any]:
        return self._benchmark

    def _benchmark(
        self, call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **_: Any
    ) -> Any:
        """Milliseconds of a call: the estimates of its launches where they are counted, which are
        the same each time, else the time that the cpu device takes."""
        if self.session.counts:
            start = self.session.estimated_ms
            call()
            milliseconds = self.session.estimated_ms - start
        else:
            call()  # compiles
            start = time.perf_counter()
            call()
            milliseconds = (time.perf_counter() - start) * 1e3
        return milliseconds if quantiles is None else [milliseconds] * len(quantiles)

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: Any) -> Any:
        return torch.zeros(size, dtype=torch.int8)

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.int32)

    def clear_cache(self, cache: torch.Tensor) -> None:
        pass


@dataclasses.dataclass
class _CudaProperties:
    """The fields of torch.cuda.get_device_properties that kernels are tuned by."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    shared_memory_per_block_optin: int
    warp_size: int = 32


def _stand_in_for_cuda() -> None:
    """Where PyTorch has no GPU, code that asks for its properties is told those of the device that
    kernels are compiled for."""
    if torch.cuda.is_available():
        return

    def properties(device: Any = None) -> _CudaProperties:
        info = _active().session.device
        major, minor = divmod(info.architecture, 10)
        return _CudaProperties(
            f"NVIDIA {info.name}", major, minor, info.multiprocessors, info.shared_bytes
        )

    torch.cuda.get_device_properties = properties  # type: ignore[assignment]
    torch.cuda.get_device_capability = lambda device=None: _active().get_device_capability()


def use(
    *, sanitize: bool | str = False, count: str | None = None, device: str | None = None,
    threads: int = 0,
) -> None:
    """Makes Triton launch on the cpu device from now on, and starts an empty report.

    `sanitize` checks all accesses, or what a text such as "race,init" names. `count` counts what
    kernels do, and estimates their time on a device, such as "H100". Kernels are compiled for
    `device`, by default that of `count`, else an A100. `threads` of the cpu device: by default one
    per core; checked launches use one.
    """
    checks = sanitize if isinstance(sanitize, str) else "all" if sanitize else None
    session = _Session.of(checks, count is not None, device or count or _PREPARED_FOR, threads)
    if count is not None and device not in (None, count):
        raise errors.InvalidArgument(f"device: found {device}; expected {count}, that of count")
    knobs.runtime.add_stages_inspection_hook = _stages
    triton.runtime.driver.set_active(_Driver(session))
    _stand_in_for_cuda()


def in_use() -> bool:
    """Whether Triton launches on the cpu device."""
    return isinstance(triton.runtime.driver._active, _Driver)


def _active() -> _Driver:
    if not in_use():
        raise errors.InvalidArgument("braid.triton: is not in use; expected a call of use()")
    return triton.runtime.driver.active


def live_findings() -> list[Finding]:
    """What launches add to, for those who look at it in between. `use` and `forget` begin anew."""
    return _active().session.findings


def report() -> Report:
    """The kernels that were launched, and what was found, since `use` or `forget`."""
    session = _active().session
    with session.lock:
        return Report(
            [dataclasses.replace(entry) for entry in session.kernels.values()],
            list(session.findings),
            list(session.notes),
            session.device.name,
        )


def forget() -> None:
    """Empties the report."""
    session = _active().session
    with session.lock:
        session.clear()
