#!/usr/bin/env python3
"""Prints a Llama-style decoder as a braid graph: embedding, layers, last norm, logits.

Flat tokens of several sequences come in, prompts and single tokens alike. A layer appends their keys
and values to pages that are the graph's own state, and attends to all that a sequence has there; so a
server passes only what is new. Weights are split over the ranks as Megatron does: columns of q, k, v,
gate and up, rows of o and down, an all-reduce after each pair. Logits are computed of the last token
of each sequence alone. examples/decode.cpp runs such a graph.

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
parser.add_argument("--sequences", type=int, default=4)
parser.add_argument("--pages", type=int, default=8, help="of each sequence")
parser.add_argument("--page-size", type=int, default=16, help="tokens of a page")
parser.add_argument("--dtype", default="bf16")
parser.add_argument("--stream", type=float, default=8,
                    help="how large the embedding is beside what a layer adds; 8 is as in trained models")
parser.add_argument("--per-rank", action="store_true",
                    help="T counts the tokens of each rank, as sequence_parallel needs")
args = parser.parse_args()

width = args.hidden // args.world  # of one rank's heads
inner = args.intermediate // args.world
heads = width // args.head_dim
kv_heads = max(1, heads // 2)
rows = f"{args.world}*T" if args.per_rank else "T"
inputs, nodes = [], []


def take(name, shape, kind="parameter", dtype=args.dtype, per_rank=False):
    entry = {"name": name, "dtype": dtype, "shape": shape, "kind": kind}
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
    joined = (heads + 2 * kv_heads) * args.head_dim
    qkv = n("qkv", "mm", [h, weight("w_qkv", [args.hidden, joined])])
    qkv = n("heads", "view", [qkv], shape=[rows, heads + 2 * kv_heads, args.head_dim])
    parts = n("parts", "split", [qkv], split_size=[heads, kv_heads, kv_heads], dim=1)
    q = n("q", "rotary_embedding", [f"{parts}:0", "cos", "sin"])
    k = n("k", "rotary_embedding", [f"{parts}:1", "cos", "sin"])
    cache = [args.sequences * args.pages, args.page_size, kv_heads, args.head_dim]
    caches = [take(f"l{i}_{name}", cache, "state", per_rank=True) for name in ("keys", "values")]
    n("append", "append_kv", [*caches, k, f"{parts}:2", "slots"])
    mixed = n("mixed", "paged_attention", [q, *caches, "page_table", "lengths", "starts"])
    mixed = n("flat", "view", [mixed], shape=[rows, width])
    o = n("o", "mm", [mixed, weight("wo", [width, args.hidden])])
    x = n("r1", "add", [reduced(f"l{i}_attention", o), x])
    h = n("norm2", "rms_norm", [x, take(f"l{i}_g2", [args.hidden])], eps=1e-5)
    gate = n("gate", "mm", [h, weight("w_gate", [args.hidden, inner])])
    up = n("up", "mm", [h, weight("w_up", [args.hidden, inner])])
    h = n("h", "mul", [n("act", "silu", [gate]), up])
    down = n("down", "mm", [h, weight("w_down", [inner, args.hidden])])
    return n("r2", "add", [reduced(f"l{i}_mlp", down), x])


tokens = take("tokens", [rows], "activation", "i32")
for name, shape in (("positions", [rows]), ("slots", [rows]),
                    ("page_table", [args.sequences, args.pages]), ("lengths", [args.sequences]),
                    ("starts", [args.sequences + 1])):
    take(name, shape, "activation", "i32")
for name in ("cos", "sin"):
    table = take(f"{name}_table", [args.pages * args.page_size, args.head_dim // 2])
    own = node(f"{name}_rows", "embedding", [table, "positions"])
    node(name, "view", [own], shape=[rows, 1, args.head_dim // 2])
x = node("embedded", "embedding", [take("table", [args.vocabulary, args.hidden]), tokens])
scale = node("embedding_scale", "full", [], value=args.stream * args.vocabulary**0.5,
             dtype=args.dtype)
x = node("stream", "mul", [x, scale])
for i in range(args.layers):
    x = layer(i, x)
ends = node("ends", "slice", ["starts"], dim=0, start=1, end=args.sequences + 1)
# Of a sequence without a token it is one of another, and means nothing.
last = node("last", "clamp", [node("before", "sub", [ends, 1])], min=0)
x = node("last_norm", "rms_norm", [x, take("g_last", [args.hidden])], eps=1e-5)
x = node("last_rows", "embedding", [x, last])
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
