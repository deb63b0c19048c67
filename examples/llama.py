#!/usr/bin/env python3
"""Prints a Llama-style decoder as a braid graph: embedding, layers, last norm and logits.

Attention has no scores here: a layer gates its rotated queries with its values, so that the graph
shows what tensor parallelism does to a decoder and nothing else. Weights are split over the ranks
as Megatron does: columns of q, v, gate and up, rows of o and down, an all-reduce after each pair.

    examples/llama.py --layers 32 >llama.json
    braid run llama.json --bind T=8 --check
"""

import argparse
import json

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--layers", type=int, default=32)
parser.add_argument("--hidden", type=int, default=256)
parser.add_argument("--intermediate", type=int, default=704)
parser.add_argument("--head-dim", type=int, default=32)
parser.add_argument("--vocabulary", type=int, default=512)
parser.add_argument("--world", type=int, default=4)
parser.add_argument("--tokens", type=int, default=64, help="the most tokens of one call")
parser.add_argument("--per-rank", action="store_true",
                    help="T counts the tokens of each rank, as sequence_parallel needs")
args = parser.parse_args()

width = args.hidden // args.world  # of one rank's heads
inner = args.intermediate // args.world
heads = width // args.head_dim
rows = f"{args.world}*T" if args.per_rank else "T"
inputs, nodes = [], []


def take(name, shape, dtype="bf16", parameter=True, per_rank=False):
    entry = {"name": name, "dtype": dtype, "shape": shape}
    if parameter:
        entry["kind"] = "parameter"
    if per_rank:
        entry["per_rank"] = True
    inputs.append(entry)
    return name


def node(name, op, operands, **attrs):
    nodes.append({"name": name, "op": op, "inputs": operands, **({"attrs": attrs} if attrs else {})})
    return name


def reduced(name, value):
    partial = node(f"{name}_partial", "all_reduce", [value], reduce_op="sum", group="tp")
    return node(name, "wait_tensor", [partial])


def layer(i, x):
    def weight(name, shape):
        return take(f"l{i}_{name}", shape, per_rank=True)

    def n(name, op, operands, **attrs):
        return node(f"l{i}_{name}", op, operands, **attrs)

    h = n("norm1", "rms_norm", [x, take(f"l{i}_g1", [args.hidden])], eps=1e-5)
    q = n("q", "mm", [h, weight("wq", [args.hidden, width])])
    v = n("v", "mm", [h, weight("wv", [args.hidden, width])])
    q = n("q_heads", "view", [q], shape=[rows, heads, args.head_dim])
    q = n("q_rotated", "rotary_embedding", [q, "cos", "sin"])
    q = n("q_flat", "view", [q], shape=[rows, width])
    mixed = n("mixed", "mul", [q, v])
    o = n("o", "mm", [mixed, weight("wo", [width, args.hidden])])
    x = n("r1", "add", [reduced(f"l{i}_attention", o), x])
    h = n("norm2", "rms_norm", [x, take(f"l{i}_g2", [args.hidden])], eps=1e-5)
    gate = n("gate", "mm", [h, weight("w_gate", [args.hidden, inner])])
    up = n("up", "mm", [h, weight("w_up", [args.hidden, inner])])
    h = n("h", "mul", [n("act", "silu", [gate]), up])
    down = n("down", "mm", [h, weight("w_down", [inner, args.hidden])])
    return n("r2", "add", [reduced(f"l{i}_mlp", down), x])


tokens = take("tokens", [rows], dtype="i64", parameter=False)
for table in ("cos", "sin"):
    take(table, [rows, 1, args.head_dim // 2], parameter=False)
x = node("embedded", "embedding", [take("table", [args.vocabulary, args.hidden]), tokens])
# The stream starts with unit variance, so that a layer changes it and does not replace it.
scale = node("embedding_scale", "full", [], value=args.vocabulary**0.5, dtype="bf16")
x = node("stream", "mul", [x, scale])
for i in range(args.layers):
    x = layer(i, x)
x = node("last_norm", "rms_norm", [x, take("g_last", [args.hidden])], eps=1e-5)
node("logits", "mm", [x, take("w_logits", [args.hidden, args.vocabulary])])

print(json.dumps({
    "braid": 1,
    "name": f"llama_{args.layers}_layers",
    "symbols": {"T": {"min": 1, "max": args.tokens // (args.world if args.per_rank else 1)}},
    "groups": {"tp": {"size": args.world}},
    "inputs": inputs,
    "nodes": nodes,
    "outputs": ["logits"],
}, indent=1))
