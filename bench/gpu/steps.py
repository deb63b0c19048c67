"""The kernels of docs/estimates.md on the GPU: measured times beside estimates that were made without one.

    steps.py --count BRAID        prints the kernels, their launches and BRAID's estimates, as JSON
    steps.py ESTIMATES NVRTC      times them on the GPU: median of launches with a cold L2, and the
                                  relative error of a product's values beside torch's

The estimates are made before anything is measured; a row is added to both or to none.
"""

import ctypes
import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent.parent / "estimates"
sys.path.insert(0, str(HERE))
import run  # noqa: E402

PRODUCTS = ["rows_along_x", "columns_along_x", "shared_tiles", "column_tiles", "square_tiles",
            "wide_tiles_8", "wide_tiles_16", "warp_tiles", "half_tiles", *run.STEPS,
            *run.GROUP_STEPS, "group_tiles"]
ROWS = [*({"kernel": kernel, "device": "H100", "n": 4096} for kernel in PRODUCTS),
        {"kernel": "half_tiles", "device": "H100", "n": 8192},
        {"kernel": "wide_bulk_store", "device": "H100", "n": 8192},
        {"kernel": "add_vectors", "device": "H100", "n": 50_000_000},
        {"kernel": "sum_vector", "device": "H100", "n": 1 << 30}]


def count(braid):
    rows = []
    for row in ROWS:
        found = run.estimate(braid, row)
        rows.append({**row, "launch": run.launch(row), "estimate_ns": found["ns"],
                     "limiter": found["limiter"]})
    print(json.dumps(rows))


class Driver:
    """A few functions of libcuda and NVRTC, in torch's context."""

    def __init__(self, nvrtc):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.nvrtc = ctypes.CDLL(nvrtc)
        self.modules = {}

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {code}")

    def compiled(self, file):
        """An image: PTX as it is, CUDA through NVRTC to machine code."""
        source = (HERE / file).read_bytes()
        if file.endswith(".ptx"):
            return source + b"\0"
        program = ctypes.c_void_p()
        options = [b"-arch=sm_90a", b"-std=c++17", b"-default-device"]
        self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, file.encode(), 0, None, None)
        code = self.nvrtc.nvrtcCompileProgram(program, len(options),
                                              (ctypes.c_char_p * len(options))(*options))
        size = ctypes.c_size_t()
        if code != 0:
            self.nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            self.nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"{file}: {log.value.decode()[:2000]}")
        self.nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        self.nvrtc.nvrtcGetCUBIN(program, image)
        return image

    def function(self, file, name, shared):
        if file not in self.modules:
            module = ctypes.c_void_p()
            self.call("cuModuleLoadData", ctypes.byref(module), self.compiled(file))
            self.modules[file] = module
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.modules[file], name.encode())
        if shared > 48 << 10:
            self.call("cuFuncSetAttribute", function, 8, shared)  # the largest dynamic shared memory
        return function

    def tensor_map(self, address, spec):
        """Of f16 or bf16 in two dimensions: DIMS:STRIDES:BOX:SWIZZLE."""
        dims, strides, box, swizzle = spec[:4]
        dims, box = ([int(extent) for extent in text.split("x")] for text in (dims, box))
        stride = int(strides) if strides else 2 * dims[0]
        raw = ctypes.create_string_buffer(128 + 64)
        start = (ctypes.addressof(raw) + 63) // 64 * 64
        self.call("cuTensorMapEncodeTiled", ctypes.c_void_p(start), 6, 2, ctypes.c_void_p(address),
                  (ctypes.c_uint64 * 2)(*dims), (ctypes.c_uint64 * 1)(stride),
                  (ctypes.c_uint32 * 2)(*box), (ctypes.c_uint32 * 2)(1, 1), 0,
                  {"": 0, "none": 0, "32B": 1, "64B": 2, "128B": 3}[swizzle], 2, 0)
        return raw, start


def prepared(driver, row):
    """What launches the row, and the tensors of its buffers."""
    import torch
    types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    file, grid, block, shared, arguments = row["launch"]
    function = driver.function(file, row["kernel"], shared)
    tensors, kept, pointers = [], [], []

    def buffer(kind, count):
        # The last buffer of a product is its result: a map and the address behind it are of one.
        if len(tensors) == 3:
            return tensors[2]
        tensors.append((torch.randn(int(count), device="cuda") / 8).to(types[kind]))
        return tensors[-1]

    for argument in arguments:
        what, *rest = argument.split(":")
        if what == "tensormap":
            raw, start = driver.tensor_map(buffer(rest[1], rest[2]).data_ptr(), rest[3:])
            if not file.endswith(".ptx"):
                kept.append(raw)
                pointers.append(start)
                continue
            # Its parameter is an address.
            there = torch.frombuffer(bytearray(ctypes.string_at(start, 128)), dtype=torch.uint8).cuda()
            value = ctypes.c_uint64(there.data_ptr())
            kept += [there, value]
            pointers.append(ctypes.addressof(value))
            continue
        value = (ctypes.c_int(int(rest[0])) if what == "i32" else
                 ctypes.c_uint64(buffer(rest[0], rest[1]).data_ptr()))
        kept.append(value)
        pointers.append(ctypes.addressof(value))
    packed = (ctypes.c_void_p * len(pointers))(*pointers)
    dims = [([int(x) for x in text.split(",")] + [1, 1])[:3] for text in (grid, block)]
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def launch():
        driver.call("cuLaunchKernel", function, *dims[0], *dims[1], shared, stream, packed, None)

    launch.kept = kept
    return launch, tensors


def value_error(tensors, n):
    """Of the third buffer as a product of the first two, in whatever order the kernel writes."""
    import torch
    a, b, c = (tensor.view(-1, n) for tensor in tensors)
    peers = [torch.mm(a, b.t()), torch.mm(a, b)] if a.shape == b.shape else [torch.mm(a, b.t())]
    errors = [(torch.linalg.norm(c.float() - peer.float()) / torch.linalg.norm(peer.float())).item()
              for peer in [*peers, *(peer.t() for peer in peers)] if peer.shape == c.shape]
    return min(errors, key=lambda error: (error != error, error))


def measure(rows, nvrtc):
    try:
        import torch
        from triton.testing import do_bench
    except ImportError as missing:
        print(f"no PyTorch to launch with: {missing}")
        return False
    torch.zeros(1, device="cuda")
    driver = Driver(nvrtc)
    print(f"{'kernel':<26}{'n':>11}{'measured us':>13}{'estimate us':>13}{'ratio':>7}{'error':>10}",
          flush=True)
    ratios, failed = [], False
    for row in rows:
        name, n = row["kernel"], row["n"]
        try:
            launch, tensors = prepared(driver, row)
            if n <= 8192:
                tensors[2].fill_(float("nan"))
            launch()
            torch.cuda.synchronize()
            error = f"{value_error(tensors, n):10.1e}" if n <= 8192 else f"{'-':>10}"
            us = do_bench(launch, warmup=10, rep=60, return_mode="median") * 1e3
        except Exception as problem:  # the others go on
            print(f"{name:<26}{n:>11}  {str(problem).splitlines()[0]}", flush=True)
            failed = True
            continue
        ratio = row["estimate_ns"] / 1e3 / us
        ratios.append(max(ratio, 1 / ratio) - 1)
        print(f"{name:<26}{n:>11}{us:13.1f}{row['estimate_ns'] / 1e3:13.1f}{ratio:7.2f}{error}"
              f"  {row['limiter']}", flush=True)
    if ratios:
        print(f"{len(ratios)} rows: median error {100 * statistics.median(ratios):.0f} %, the "
              f"largest {100 * max(ratios):.0f} %")
    return failed


if __name__ == "__main__":
    if sys.argv[1] == "--count":
        count(sys.argv[2])
    else:
        sys.exit(measure(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]))
