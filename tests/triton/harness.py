"""Compiles Triton kernels and runs their PTX on the cpu device, under the sanitizer."""

import dataclasses
import json
import pathlib
import re
import subprocess
from collections.abc import Callable

import ml_dtypes
import numpy as np
import triton
from safetensors.numpy import save_file
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

bf16 = ml_dtypes.bfloat16
e5m2 = ml_dtypes.float8_e5m2
e4m3 = ml_dtypes.float8_e4m3fn

# By dtype: Triton's name, braid's name, and how far a result may lie from the reference in float64.
DTYPES = {
    np.dtype(np.float64): ("fp64", "f64", 1e-12),
    np.dtype(np.float32): ("fp32", "f32", 1e-5),
    np.dtype(np.float16): ("fp16", "f16", 2e-4),
    np.dtype(bf16): ("bf16", "bf16", 1e-3),
    np.dtype(e4m3): ("fp8e4nv", "f8e4m3", 0),
    np.dtype(e5m2): ("fp8e5", "f8e5m2", 0),
    np.dtype(np.int8): ("i8", "i8", 0),
    np.dtype(np.uint8): ("u8", "u8", 0),
    np.dtype(np.int16): ("i16", "i16", 0),
    np.dtype(np.int32): ("i32", "i32", 0),
    np.dtype(np.int64): ("i64", "i64", 0),
}


@dataclasses.dataclass
class Out:
    """A buffer that nobody wrote, and what it is to hold (`want`, in float64 or exact integers)."""

    want: np.ndarray
    dtype: np.dtype


@dataclasses.dataclass
class InPlace:
    """A buffer that the kernel changes."""

    before: np.ndarray
    want: np.ndarray
    tolerance: float | None = None


@dataclasses.dataclass
class Described:
    """A matrix, Out or InPlace of which the kernel gets a tensor descriptor."""

    of: object
    block: tuple


@dataclasses.dataclass
class Case:
    name: str
    kernel: Callable
    arguments: list  # in the kernel's order: arrays, Out, InPlace, Described, int or float
    constants: dict
    grid: tuple = (1,)
    options: dict = dataclasses.field(default_factory=dict)
    capabilities: tuple = (80, 90, 100)
    refused: dict = dataclasses.field(default_factory=dict)  # by capability: what braid must say
    finding: str = ""  # of a kernel that is wrong: what the sanitizer must say


@dataclasses.dataclass
class Ptx:
    path: pathlib.Path
    entry: str
    threads: int
    shared: int
    hidden: int  # parameters that Triton adds
    maps: list  # what it says of the tensor maps of its descriptors, in order


def bare(argument):
    return argument.of if isinstance(argument, Described) else argument


def dtype_of(argument):
    argument = bare(argument)
    if isinstance(argument, Out):
        return np.dtype(argument.dtype)
    return (argument.before if isinstance(argument, InPlace) else argument).dtype


def spelled(argument):
    if isinstance(argument, float):
        return "fp32"
    if isinstance(argument, int):
        return "i32"
    name = DTYPES[dtype_of(argument)][0]
    return f"tensordesc<{name}{list(argument.block)}>" if isinstance(argument, Described) else "*" + name


def compile_ptx(case, capability, directory):
    names = [n for n in case.kernel.arg_names if n not in case.constants]
    signature = dict(zip(names, map(spelled, case.arguments), strict=True))
    signature |= {name: "constexpr" for name in case.constants}
    # Buffers are aligned, and sizes are known to be multiples of 16, as Triton's launcher finds.
    attributes = {
        (case.kernel.arg_names.index(name),): [["tt.divisibility", 16]]
        for name, argument in zip(names, case.arguments, strict=True)
        if isinstance(argument, (np.ndarray, Out, InPlace)) or
        (isinstance(argument, int) and argument % 16 == 0)
    }
    of_language = GluonASTSource if isinstance(case.kernel, GluonJITFunction) else ASTSource
    source = of_language(case.kernel, {n: signature[n] for n in case.kernel.arg_names}, case.constants,
                       attributes)
    kernel = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=case.options)
    text = kernel.asm["ptx"]
    path = directory / f"{case.name}_{capability}.ptx"
    path.write_text(text)
    entry = re.search(r"\.entry\s+(\w+)", text).group(1)
    threads = int(re.search(r"\.reqntid\s+(\d+)", text).group(1))
    parameters = text.partition(".entry")[2].partition(")")[0].count(".param")
    # Behind each map come two extents and two strides.
    known = len(names) + 4 * sum(isinstance(argument, Described) for argument in case.arguments)
    return Ptx(path, entry, threads, kernel.metadata.shared, parameters - known,
               list(kernel.metadata.tensordesc_meta))


def read_buffers(path, case, places):
    """What braid left in its buffers, by the case's arguments; `places`: those of braid's. Numpy itself
    does not know all of their types."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    buffers = {}
    for name, tensor in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        first, last = (start + offset for offset in tensor["data_offsets"])
        n = places.index(int(name[3:]))
        buffers[n] = np.frombuffer(data[first:last], dtype_of(case.arguments[n]))
    return buffers


def mapped(buffer, argument, described):
    """The arguments of a descriptor: its map, extents and strides."""
    of = bare(argument)
    rows, columns = (of if isinstance(of, np.ndarray) else of.want).shape
    box = "x".join(map(str, reversed(described["block_size"])))
    swizzle = ("none", "32B", "64B", "128B")[described["swizzle"]]
    return [f"tensormap:{buffer}:{columns}x{rows}::{box}:{swizzle}", f"i32:{rows}", f"i32:{columns}",
            f"i64:{columns}", "i64:1"]


def run_ptx(braid, ptx, case, directory):
    """Returns braid's error or its JSON, and the buffers."""
    inputs = {}
    arguments = []
    places = []
    maps = iter(ptx.maps)
    for n, passed in enumerate(case.arguments):
        argument = bare(passed)
        places.append(len(arguments))
        if isinstance(argument, Out):
            arguments.append(f"poison:{DTYPES[dtype_of(argument)][1]}:{argument.want.size}")
        elif isinstance(argument, int):
            arguments.append(f"i32:{argument}")
        elif isinstance(argument, float):
            arguments.append(f"f32:{argument!r}")
        else:
            before = argument.before if isinstance(argument, InPlace) else argument
            inputs[f"x{n}"] = np.ascontiguousarray(before)
            arguments.append(f"{directory}/in.safetensors:x{n}")
        if isinstance(passed, Described):
            arguments[-1:] = mapped(arguments[-1], passed, next(maps))
    save_file(inputs, directory / "in.safetensors")
    arguments += ["u64:0"] * ptx.hidden
    command = [braid, "ptx", ptx.path, "--entry", ptx.entry, "--block", str(ptx.threads), "--shared",
               str(ptx.shared), "--grid", ",".join(map(str, case.grid)), "--out", directory / "out",
               "--json", "--sanitize"]
    for argument in arguments:
        command += ["--arg", argument]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if result.returncode not in (0, 1) or not result.stdout:
        return result.stderr.strip() or f"exit code {result.returncode}", {}
    return json.loads(result.stdout), read_buffers(directory / "out/buffers.safetensors", case, places)


def wrong_values(case, buffers):
    """What differs from the reference, or nothing."""
    problems = []
    for n, argument in enumerate(map(bare, case.arguments)):
        if not isinstance(argument, (Out, InPlace)):
            continue
        got = buffers[n].reshape(argument.want.shape)
        dtype = dtype_of(argument)
        tolerance = getattr(argument, "tolerance", None)
        if tolerance is None:
            tolerance = DTYPES[dtype][2]
        # The reference is rounded as the kernel rounds its results.
        want = np.asarray(argument.want).astype(dtype).astype(np.float64)
        difference = got.astype(np.float64) - want
        error = np.linalg.norm(difference) / max(np.linalg.norm(want), 1e-30)
        if not error <= tolerance:
            problems.append(f"argument {n} is off by {error:.3g}, at most {tolerance:g} is allowed")
    return problems
