"""The kernels that are timed and counted on a GPU, those that matter most first.

    shapes.py DIRECTORY           writes each as a graph, DIRECTORY/NAME.json
    shapes.py --counted           prints the names of those whose counts are compared
    shapes.py --count DIR BRAID   prints what BRAID counts of these on the cpu device, as JSON
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Shape(NamedTuple):
    name: str
    # product; residual: one and a matrix; gated: silu of one times another; rows; copy; or attention:
    # causal, of n heads of width k over m tokens
    kind: str
    m: int
    n: int
    k: int = 0
    dtype: str = "bf16"
    transposed: bool = False  # the weight is [N, K]
    counted: bool = False


def product(name, m, n, k, **more):
    return Shape(name, "product", m, n, k, **more)


SHAPES = [
    product("product_4096", 4096, 4096, 4096, counted=True),
    product("decode_1x4096x4096", 1, 4096, 4096, transposed=True, counted=True),
    Shape("rows_8192x4096", "rows", 8192, 4096, counted=True),
    Shape("copy_8192x16384", "copy", 8192, 16384, counted=True),
    product("product_4096_fp8", 4096, 4096, 4096, dtype="f8e4m3", transposed=True, counted=True),
    product("product_4096_nt", 4096, 4096, 4096, transposed=True),
    product("decode_8x14336x4096", 8, 14336, 4096, transposed=True),
    product("decode_8x4096x14336", 8, 4096, 14336, transposed=True),
    product("decode_1x28672x8192", 1, 28672, 8192, transposed=True),
    product("decode_1x7168x16384", 1, 7168, 16384, transposed=True),
    product("decode_1x4096x4096_kn", 1, 4096, 4096),
    product("product_4096x4096x512", 4096, 4096, 512),
    product("product_512x4096x4096", 512, 4096, 4096),
    Shape("residual_4096", "residual", 4096, 4096, 4096),
    Shape("gated_2048x11008x4096", "gated", 2048, 11008, 4096),
    Shape("attention_16x2048x128", "attention", 2048, 16, 128),
    Shape("attention_16x8192x128", "attention", 8192, 16, 128),
    product("product_8192", 8192, 8192, 8192),
    product("product_8192_nt", 8192, 8192, 8192, transposed=True),
]


def tensor(name, shape, dtype="bf16", **more):
    return {"name": name, "dtype": dtype, "shape": shape, **more}


def node(name, op, *inputs, **attrs):
    return {"name": name, "op": op, "inputs": list(inputs), "attrs": attrs}


def graph(name, inputs, nodes, **more):
    """As docs/graph.md has it."""
    return {"braid": 1, "name": name, **more, "inputs": inputs, "nodes": nodes,
            "outputs": [nodes[-1]["name"]]}


def graph_of(shape):
    """A program of one rank."""
    name, kind, m, n, k, dtype, transposed, _ = shape
    if kind == "rows":
        return graph(name, [tensor("x", [m, n]), tensor("g", [n], kind="parameter")],
                     [node("y", "rms_norm", "x", "g", eps=1e-5)])
    if kind == "copy":
        return graph(name, [tensor("x", [m, n])], [node("y", "neg", "x")])
    if kind == "attention":
        return graph(name, [tensor(operand, [1, n, m, k]) for operand in "qkv"],
                     [node("y", "scaled_dot_product_attention", *"qkv", is_causal=True)])
    if kind == "gated":
        weights = [tensor(weight, [k, n], kind="parameter") for weight in ("wg", "wu")]
        return graph(name, [tensor("x", [m, k]), *weights],
                     [node("g", "mm", "x", "wg"), node("u", "mm", "x", "wu"),
                      node("s", "silu", "g"), node("y", "mul", "s", "u")])
    if kind == "residual":
        return graph(name, [tensor("x", [m, k]), tensor("w", [k, n], kind="parameter"),
                            tensor("r", [m, n])],
                     [node("p", "mm", "x", "w"), node("y", "add", "p", "r")])
    inputs = [tensor("x", [m, k], dtype),
              tensor("w", [n, k] if transposed else [k, n], dtype, kind="parameter")]
    nodes = [node("t", "transpose", "w", dim0=0, dim1=1)] if transposed else []
    operands = ["x", "t" if transposed else "w"]
    if dtype == "bf16":
        return graph(name, inputs, nodes + [node("y", "mm", *operands)])
    inputs += [tensor("sx", [], "f32"), tensor("sw", [], "f32", kind="parameter")]
    return graph(name, inputs, nodes + [node("y", "scaled_mm", *operands, "sx", "sw")])


def small_graphs():
    """For tools under which a kernel takes many times as long, and for several ranks."""
    ranks = {"groups": {"tp": {"size": 2}}}
    rows = tensor("x", [64, 1024], per_rank=True)
    weight = tensor("w", [1024, 512], kind="parameter", per_rank=True)
    of_group = {"group": "tp"}
    return [
        graph("small_product", [tensor("x", [256, 512]), tensor("w", [512, 256])],
              [node("y", "mm", "x", "w")]),
        graph("all_reduce", [rows], [
            node("c", "all_reduce", "x", reduce_op="sum", **of_group),
            node("s", "wait_tensor", "c"),
            node("y", "rms_norm", "s", eps=1e-5)], **ranks),
        graph("gather_product", [rows, weight], [
            node("g", "all_gather_into_tensor", "x", **of_group),
            node("s", "wait_tensor", "g"),
            node("y", "mm", "s", "w")], **ranks),
        graph("product_scatter", [rows, weight], [
            node("p", "mm", "x", "w"),
            node("c", "reduce_scatter_tensor", "p", reduce_op="sum", **of_group),
            node("y", "wait_tensor", "c")], **ranks),
    ]


def counts_of(graph, braid):
    """Of a part of the blocks, scaled to all; without the lines of the kernels."""
    run = subprocess.run([braid, "run", graph, "--device", "cpu", "--target", "H100",
                          "--count=H100", "--sample", "--json"],
                         check=True, stdout=subprocess.PIPE, text=True)
    kernels = json.loads(run.stdout)["counts"]
    return [{name: value for name, value in kernel.items() if name != "lines"}
            for kernel in kernels]


def main():
    counted = [shape.name for shape in SHAPES if shape.counted]
    if sys.argv[1] == "--counted":
        print("\n".join(counted))
        return
    if sys.argv[1] == "--count":
        graphs, braid = Path(sys.argv[2]), sys.argv[3]
        print(json.dumps({name: counts_of(graphs / f"{name}.json", braid) for name in counted}))
        return
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for made in [*map(graph_of, SHAPES), *small_graphs()]:
        (directory / f"{made['name']}.json").write_text(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
