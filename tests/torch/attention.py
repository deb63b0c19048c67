"""Dense and paged attention, over lengths and pairs of options."""

import itertools
import random

import torch
import torch.nn.functional as F

from harness import LIMITS_OF_ATTENTION, Case, Node

LENGTHS = (1, 2, 15, 16, 17, 63, 64, 65, 129, 500, 1025, 4097)


def pairwise(options):
    """Rows of one choice for each option, so that every pair of choices is in one of them."""
    wanted = {
        (a, x, b, y)
        for a, b in itertools.combinations(options, 2)
        for x in options[a]
        for y in options[b]
    }
    while wanted:
        tried = [{name: random.choice(of) for name, of in options.items()} for _ in range(64)]

        def new(row):
            return {(a, row[a], b, row[b]) for a, b in itertools.combinations(options, 2)} & wanted

        best = max(tried, key=lambda row: len(new(row)))
        wanted -= new(best)
        yield best


def dense(row):
    dtype, heads, shared = row["dtype"], row["heads"] * row["world"], row["shared"]
    queries, keys, width = row["queries"], row["keys"], row["width"]
    q = torch.randn(2, heads * shared, queries, width).to(dtype)
    k, v = torch.randn(2, 2, heads, keys, width).to(dtype)
    inputs = {"q": q, "k": k, "v": v}
    mask = None
    if row["mask"] == "bool":
        mask = torch.rand(queries, keys) < 0.6
        mask[:, 0] = True  # of a row that sees no key PyTorch makes NaN, braid zeros
    elif row["mask"] == "added":
        mask = torch.randn(2, 1, queries, keys).to(dtype)
    causal = row["mask"] == "causal"
    if mask is not None:
        inputs["mask"] = mask
    reference = F.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), scale=row["scale"], is_causal=causal,
        attn_mask=mask.double() if row["mask"] == "added" else mask, enable_gqa=True,
    )  # fmt: skip
    attrs = {"is_causal": causal, "enable_gqa": True}
    if row["scale"] is not None:
        attrs["scale"] = row["scale"]
    node = Node("o", "scaled_dot_product_attention", list(inputs), attrs)
    cut = {"q": 1, "k": 1, "v": 1, "o": 1} if row["world"] > 1 else {}
    return Case(
        f"dense {row}", inputs, [node], {"o": reference}, LIMITS_OF_ATTENTION, row["world"], cut
    )  # fmt: skip


def paged(row):
    dtype, heads, shared, width = row["dtype"], row["heads"] * row["world"], row["shared"], row["width"]
    size, sequences = row["page_size"], row["sequences"]
    lengths, new = [], []
    for _ in range(sequences):
        length = random.choice([n for n in LENGTHS if n <= row["longest"]])
        lengths.append(length)
        kind = row["tokens"]
        new.append(1 if kind == "decode" else length if kind == "prompt" else random.randint(0, length))
    if sum(new) == 0:
        new[0] = 1
    pages = -(-row["longest"] // size)
    free = list(range(sequences * pages))
    random.shuffle(free)
    table = torch.tensor(free, dtype=torch.int32).view(sequences, pages)
    starts = torch.tensor([0, *itertools.accumulate(new)], dtype=torch.int32)
    query = torch.randn(sum(new), heads * shared, width).to(dtype)
    cache = torch.randn(2, sequences * pages, size, heads, width).to(row["cache"] or dtype)
    inputs = {"q": query, "k": cache[0], "v": cache[1], "table": table,
              "lengths": torch.tensor(lengths, dtype=torch.int32), "starts": starts}  # fmt: skip
    sinks = torch.randn(heads * shared).to(dtype) if row["sinks"] else None
    if sinks is not None:
        inputs["sinks"] = sinks
    scales = [1.0, 1.0]
    if row["cache"] is not None:
        inputs["k_scale"], inputs["v_scale"] = torch.rand(2) + 0.5
        scales = [inputs["k_scale"].item(), inputs["v_scale"].item()]
    scale = width**-0.5
    results = []
    for s, (length, count) in enumerate(zip(lengths, new)):
        q = query[starts[s] : starts[s + 1]].double().transpose(0, 1)
        kept = cache.view(torch.uint8) if row["cache"] is not None else cache
        kept = kept[:, table[s].long()].flatten(1, 2)[:, :length].view(cache.dtype)
        k, v = kept.double().permute(0, 2, 1, 3) * torch.tensor(scales).double().view(2, 1, 1, 1)
        scores = q @ k.repeat_interleave(shared, 0).transpose(1, 2) * scale
        if row["softcap"]:
            scores = row["softcap"] * torch.tanh(scores / row["softcap"])
        own = torch.arange(length - count, length).view(-1, 1)
        at = torch.arange(length)
        hidden = at > own
        if row["window"]:
            hidden |= at <= own - row["window"]
        scores = scores.masked_fill(hidden, float("-inf"))
        if sinks is not None:
            column = sinks.double().view(-1, 1, 1).expand(-1, count, 1)
            scores = torch.cat([scores, column], dim=2)
        weights = scores.softmax(2)[:, :, :length]
        results.append((weights @ v.repeat_interleave(shared, 0)).transpose(0, 1))
    attrs = {name: row[name] for name in ("window", "softcap") if row[name]}
    case = Case(
        f"paged {row}", inputs, [Node("o", "paged_attention", list(inputs), attrs)],
        {"o": torch.cat(results)}, LIMITS_OF_ATTENTION, row["world"],
    )  # fmt: skip
    if row["world"] > 1:
        project(case, torch.randn(heads * shared * width, 48).to(dtype) / 16)
    return case


def project(case, weight):
    """Heads on different ranks, and a projection that adds up over the ranks behind them."""
    case.cut = {"q": 1, "k": 2, "v": 2, "sinks": 0, "w": 0, "o": 1}
    case.inputs["w"] = weight
    tokens = case.inputs["q"].shape[0]
    case.nodes += [
        Node("flat", "view", ["o"], {"shape": [tokens, weight.shape[0] // case.world]}),
        Node("part", "mm", ["flat", "w"]),
        Node("sum", "all_reduce", ["part"], {"reduce_op": "sum", "group": "tp"}),
        Node("p", "wait_tensor", ["sum"]),
    ]
    case.expected["p"] = case.expected["o"].flatten(1) @ weight.double()


def appended(dtype, kept):
    """Rows of a cache, some of 8 bits."""
    cache = torch.randn(2, 6, 16, 2, 32).to(kept)
    rows = torch.randn(2, 40, 2, 32).to(dtype)
    slots = torch.randperm(6 * 16)[:40]
    inputs = {"kc": cache[0], "vc": cache[1], "k": rows[0], "v": rows[1], "slots": slots}
    scales = torch.rand(2) * 0.2 + 0.01
    if kept != dtype:
        inputs["k_scale"], inputs["v_scale"] = scales
        largest = torch.finfo(kept).max
        rows = rows.float() / scales.view(2, 1, 1, 1)
        rows = rows.clamp(-largest, largest).to(kept)
    expected = {}
    for name, old, new in zip(("kc", "vc"), cache, rows):
        bits = old.clone().view(torch.uint8).flatten(0, 1)
        bits[slots] = new.contiguous().view(torch.uint8)
        expected[name] = bits.view(kept).view(old.shape)
        if kept == dtype:
            expected[name] = expected[name].double()
    node = Node("a", "append_kv", list(inputs))
    return Case(f"appended {dtype} {kept}", inputs, [node], expected)


def cases():
    common = {
        "dtype": [torch.float32, torch.float16, torch.bfloat16],
        "heads": [1, 2],
        "shared": [1, 3, 8],
        "world": [1, 2, 4],
    }
    of_dense = {
        **common,
        "queries": list(LENGTHS[:-1]),
        "keys": list(LENGTHS[:-1]),
        "width": [16, 40, 64, 80, 128, 256],
        "mask": ["none", "bool", "added", "causal"],
        "scale": [None, 0.3],
    }
    of_paged = {
        **common,
        "sequences": [1, 3, 5],
        "longest": [64, 1025, 4097],
        "tokens": ["decode", "prompt", "mixed"],
        "width": [32, 64, 128],
        "page_size": [16, 32, 64, 128, 256],
        "window": [0, 1, 100],
        "softcap": [0, 5.0],
        "sinks": [False, True],
        "cache": [None, torch.float8_e4m3fn, torch.float8_e5m2],
    }
    longest = {"dtype": torch.float16, "heads": 1, "shared": 1, "queries": 4097, "keys": 4097,
               "width": 64, "mask": "causal", "scale": None, "world": 1}  # fmt: skip
    eight = (torch.float8_e4m3fn, torch.float8_e5m2)
    return (
        [appended(dtype, kept) for dtype in LIMITS_OF_ATTENTION for kept in (dtype, *eight)]
        + [dense(row) for row in [longest, *pairwise(of_dense)]]
        + [paged(row) for row in pairwise(of_paged)]
    )
