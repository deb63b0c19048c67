"""The kernels that braid makes, as PyTorch runs them on this GPU. Prints JSON.

    torch_peers.py SECONDS DIRECTORY...

Each directory has what was made of one graph: tuned.json (braid tune --device cuda --export) and
plan/program.json (braid compile), whose kernels have their bodies as graphs of ATen's ops. Of each
body: "eager" runs it op by op; "compiled" by torch.compile, most of it in Triton; "triton" likewise
with Triton for its matmuls, too; "cublas" is torch.mm of its matmul's operands and nothing else. Of
a collective it is the rest, on one rank's operand. Times are taken as braid tune takes them: one
launch with a cold L2, in turns, the median. What is left when SECONDS have passed is left out.
"""

import json
import math
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

DEVICE = "cuda"
FLUSH_BYTES = 256 << 20  # more than any L2
TURNS = 15
DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "i64": torch.int64,
    "i32": torch.int32,
    "u8": torch.uint8,
    "bool": torch.bool,
}


class NoForm(Exception):
    """Why PyTorch has nothing for a kernel."""


def extents(shape, symbols):
    return [d if isinstance(d, int) else int(eval(d, {}, dict(symbols))) for d in shape]


def dims(attrs, rank):
    return attrs.get("dim") or list(range(rank))


def last(x):
    return (x.shape[-1],)


# By op: its result of the operands and the attributes.
OPS = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "div": lambda a, b, _: a / b,
    "neg": lambda a, _: -a,
    "relu": lambda a, _: F.relu(a),
    "silu": lambda a, _: F.silu(a),
    "gelu": lambda a, attrs: F.gelu(a, approximate=attrs.get("approximate", "none")),
    "mm": lambda a, b, _: torch.mm(a, b),
    "bmm": lambda a, b, _: torch.bmm(a, b),
    "matmul": lambda a, b, _: torch.matmul(a, b),
    "addmm": lambda bias, a, b, _: torch.addmm(bias, a, b),
    "softmax": lambda a, attrs: torch.softmax(a, attrs.get("dim", -1)),
    "layer_norm": lambda a, g, b, attrs: F.layer_norm(a, last(a), g, b, attrs["eps"]),
    "rms_norm": lambda a, g, attrs: F.rms_norm(a, last(a), g, attrs["eps"]),
    "sum": lambda a, attrs: a.sum(dims(attrs, a.dim()), attrs.get("keepdim", False)),
    "mean": lambda a, attrs: a.mean(dims(attrs, a.dim()), attrs.get("keepdim", False)),
    "view": lambda a, attrs: a.reshape(attrs["shape"]),
    "permute": lambda a, attrs: a.permute(attrs["dims"]),
    "transpose": lambda a, attrs: a.transpose(attrs["dim0"], attrs["dim1"]),
    "to": lambda a, attrs: a.to(DTYPES[attrs["dtype"]]),
    "full": lambda attrs: torch.full(
        attrs.get("shape", []), attrs["value"], dtype=DTYPES[attrs["dtype"]], device=DEVICE
    ),
    "embedding": lambda table, index, _: F.embedding(index, table),
    "all_reduce": lambda a, _: a,
}
MATMULS = {"mm", "bmm", "matmul", "addmm"}


def function_of(body, symbols, seen=None):
    """The body as a function of its inputs; `seen` gets the operands of its matmuls."""
    steps = []
    for node in body["nodes"]:
        if node["op"] not in OPS:
            raise NoForm(f"{node['op']} is not one that this script knows")
        attrs = dict(node.get("attrs") or {})
        if "shape" in attrs:
            attrs["shape"] = extents(attrs["shape"], symbols)
        steps.append((node["name"], node["op"], node.get("inputs", []), attrs))

    def run(*inputs):
        values = {i["name"]: x for i, x in zip(body["inputs"], inputs, strict=True)}
        for name, op, names, attrs in steps:
            operands = [values[operand] for operand in names]
            if seen is not None and op in MATMULS:
                seen.append(operands[-2:])
            values[name] = OPS[op](*operands, attrs)
        return [values[name] for name in body["outputs"]]

    return run


def random_input(tensor, symbols):
    shape, dtype = extents(tensor["shape"], symbols), DTYPES[tensor["dtype"]]
    if dtype.is_floating_point:
        return (torch.randn(shape, device=DEVICE) / 8).to(dtype)
    return torch.zeros(shape, dtype=dtype, device=DEVICE)


def microseconds(works):
    """Of each of some works, which take turns."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=DEVICE)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = {name: [] for name in works}
    for _ in range(TURNS):
        for name, work in works.items():
            flush.zero_()
            begin.record()
            work()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3)
    return {name: statistics.median(of_work) for name, of_work in times.items()}


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, dynamic=False, fullgraph=True, options=options or None)


def compare(body, symbols, deadline):
    """Microseconds by the way it runs; None where that failed, or no time was left."""
    inputs = [random_input(tensor, symbols) for tensor in body["inputs"]]
    seen = []
    expected = function_of(body, symbols, seen)(*inputs)
    function = function_of(body, symbols)
    ways = {"eager": lambda: function, "compiled": lambda: compiled(function)}
    if seen:
        ways["triton"] = lambda: compiled(
            function, max_autotune=True, max_autotune_gemm_backends="TRITON"
        )
    works, times, remarks = {}, {}, []
    for name, make in ways.items():
        times[name] = None
        if time.monotonic() > deadline:
            remarks.append(f"{name}: no time was left")
            continue
        try:
            made = make()
            for got, wanted in zip(made(*inputs), expected, strict=True):
                # Rounding differs from one order of a sum to another.
                torch.testing.assert_close(got, wanted, rtol=0.05, atol=0.05)
            works[name] = lambda made=made: made(*inputs)
        except Exception as error:  # whatever one way fails with, the others go on
            remarks.append(f"{name}: {str(error).splitlines()[0]}")
    if len(seen) == 1:
        works["cublas"] = lambda: torch.matmul(*seen[0])
    times.update(microseconds(works))
    return times, remarks


def bodies_of(program):
    """Each once, in the order of braid tune."""
    known = {json.dumps(kernel["body"]): kernel["body"] for kernel in program["kernels"]}
    return list(known.values())


def bindings(text):
    return {name: int(value) for name, value in (s.split("=") for s in text.split(",") if s)}


def kernels_of(directory, deadline):
    tuned = json.loads((directory / "tuned.json").read_text())
    bodies = bodies_of(json.loads((directory / "plan" / "program.json").read_text()))
    if len(bodies) != len(tuned["kernels"]):
        raise SystemExit(f"{directory}: {len(bodies)} kernels in the plan, "
                         f"{len(tuned['kernels'])} were tuned")
    for kernel, body in zip(tuned["kernels"], bodies, strict=True):
        ops = "+".join(node["op"] for node in body["nodes"])
        if ops != kernel["ops"]:
            raise SystemExit(f"{directory}: {ops} in the plan, {kernel['ops']} was tuned")
        result = {"graph": tuned["graph"], "name": kernel["name"], "ops": ops,
                  "symbols": kernel["symbols"], "launches": kernel["launches"]}
        for name in ("default", "best"):
            result[f"braid_{name}_us"] = kernel[name] and kernel[name]["ns"] / 1e3
        remarks = [kernel["remark"]] if kernel["remark"] else []
        try:
            times, more = compare(body, bindings(kernel["symbols"]), deadline)
            result.update({f"{name}_us": us for name, us in times.items()})
            remarks += more
        except NoForm as error:
            remarks.append(str(error))
        yield result | {"remarks": remarks}


def against(kernels, way):
    """The geometric mean of how many times as fast braid is, over kernels that have both."""
    ratios = [k[way] / k["braid_best_us"] for k in kernels if k.get(way) and k["braid_best_us"]]
    if not ratios:
        return None
    return {"kernels": len(ratios), "times": math.exp(statistics.fmean(map(math.log, ratios)))}


def main():
    deadline = time.monotonic() + float(sys.argv[1])
    kernels = [k for d in sys.argv[2:] for k in kernels_of(Path(d), deadline)]
    summary = {way: against(kernels, f"{way}_us")
               for way in ("eager", "compiled", "triton", "cublas")}
    gpu = torch.cuda.get_device_name()
    print(json.dumps({"torch": torch.__version__, "gpu": gpu, "braid_best_against": summary,
                      "kernels": kernels}, indent=2))


if __name__ == "__main__":
    main()
