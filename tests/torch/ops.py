"""Ops one by one: all of one dtype in a graph, over the same operands, with elements at the edges."""

import torch
import torch.nn.functional as F

from harness import Case, Node

INF, NAN = float("inf"), float("nan")
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, INF, -INF, NAN]

# An op, and what PyTorch computes of the same operands, as float64 or integers.
OF_ONE = [
    ("cos", torch.cos), ("sin", torch.sin), ("sign", torch.sign), ("floor", torch.floor),
    ("round", torch.round), ("abs", torch.abs), ("relu", torch.relu), ("isnan", torch.isnan),
    ("isinf", torch.isinf), ("isfinite", torch.isfinite), ("tanh", torch.tanh),
    ("sigmoid", torch.sigmoid), ("silu", F.silu), ("gelu", F.gelu), ("exp", torch.exp),
    ("log", torch.log), ("sqrt", torch.sqrt), ("rsqrt", torch.rsqrt), ("erf", torch.erf),
    ("softplus", F.softplus), ("logical_not", torch.logical_not), ("expm1", torch.expm1),
    ("log1p", torch.log1p), ("tan", torch.tan), ("acos", torch.acos), ("asin", torch.asin),
    ("atan", torch.atan), ("cosh", torch.cosh), ("sinh", torch.sinh), ("acosh", torch.acosh),
    ("asinh", torch.asinh), ("atanh", torch.atanh), ("erfc", torch.erfc),
]  # fmt: skip
OF_TWO = [
    ("maximum", torch.maximum), ("minimum", torch.minimum), ("eq", torch.eq), ("ne", torch.ne),
    ("lt", torch.lt), ("ge", torch.ge), ("logical_and", torch.logical_and), ("logical_or", torch.logical_or),
    ("logical_xor", torch.logical_xor), ("div", torch.div), ("mul", torch.mul),
    ("logaddexp", torch.logaddexp), ("atan2", torch.atan2), ("hypot", torch.hypot),
    ("copysign", torch.copysign),
]  # fmt: skip
OF_INTEGERS = [
    ("remainder", torch.remainder), ("fmod", torch.fmod), ("floor_divide", torch.floor_divide),
    ("bitwise_and", torch.bitwise_and), ("bitwise_or", torch.bitwise_or),
    ("bitwise_xor", torch.bitwise_xor), ("bitwise_left_shift", torch.bitwise_left_shift),
    ("bitwise_right_shift", torch.bitwise_right_shift), ("mul", torch.mul), ("maximum", torch.maximum),
]  # fmt: skip


def wide(tensor):
    return tensor.double() if tensor.dtype.is_floating_point else tensor


def with_edges(shape, dtype):
    x = torch.randn(shape).to(dtype)
    x.view(-1)[: len(EDGES)] = torch.tensor(EDGES).to(dtype)
    return x


def elementwise(dtype):
    """Every pair of edge values, and normal numbers."""
    count = len(EDGES)
    edges = torch.tensor(EDGES)
    pairs = torch.stack([edges.repeat(count), edges.repeat_interleave(count)])
    x, y = torch.cat([pairs, 3 * torch.randn(2, 343)], dim=1).to(dtype).view(2, 16, 32)
    case = Case(f"elementwise {dtype}", {"x": x, "y": y}, [], {})
    for op, reference in OF_ONE:
        case.nodes.append(Node(op, op, ["x"]))
        case.expected[op] = reference(wide(x))
    for op, reference in OF_TWO:
        case.nodes.append(Node(op, op, ["x", "y"]))
        case.expected[op] = reference(wide(x), wide(y))
    return case


def integers(dtype):
    x = torch.randint(-50, 50, (16, 32)).to(dtype)
    y = torch.randint(1, 9, (16, 32)).to(dtype) * torch.randint(0, 2, (16, 32)).mul(2).sub(1).to(dtype)
    case = Case(f"integers {dtype}", {"x": x, "y": y}, [], {})
    for op, reference in OF_INTEGERS:
        case.nodes.append(Node(op, op, ["x", "y"]))
        case.expected[op] = reference(x, y)
    return case


def along_dims(dtype):
    """Ties, NaN and infinities among what is compared, along each dim."""
    x = with_edges((6, 20, 12), dtype)
    if dtype.is_floating_point:
        x = torch.where(torch.rand(x.shape) < 0.5, x.float().round(), x.float()).to(dtype)
    finite = torch.randn(6, 20, 12).to(dtype)
    index = torch.randint(0, 6, (6, 20, 12))
    picks = torch.randint(0, 20, (7,))
    mask = torch.rand(6, 20, 12) < 0.3
    inputs = {"x": x, "f": finite, "index": index, "picks": picks, "mask": mask}
    case = Case(f"along dims {dtype}", inputs, [], {})

    def add(name, op, operands, attrs, *results):
        case.nodes.append(Node(name, op, operands, attrs))
        for i, result in enumerate(results):
            case.expected[f"{name}:{i}" if len(results) > 1 else name] = result

    for dim in (0, 1, 2, -1):
        at = {"dim": dim}
        d = f"{dim}".replace("-", "m")
        add(f"argmax{d}", "argmax", ["x"], {"dim": [dim]}, wide(x).argmax(dim))
        add(f"argmin{d}", "argmin", ["x"], {"dim": [dim]}, wide(x).argmin(dim))
        add(f"amax{d}", "amax", ["x"], {"dim": [dim]}, wide(x).amax(dim))
        add(f"any{d}", "any", ["mask"], {"dim": [dim]}, mask.any(dim))
        add(f"all{d}", "all", ["mask"], {"dim": [dim], "keepdim": True}, mask.all(dim, keepdim=True))
        add(f"cumsum{d}", "cumsum", ["f"], at, wide(finite).cumsum(dim))
        add(f"log_softmax{d}", "log_softmax", ["f"], at, wide(finite).log_softmax(dim))
        add(f"softmax{d}", "softmax", ["f"], at, wide(finite).softmax(dim))
        add(f"gather{d}", "gather", ["x", "index"], at, wide(x).gather(dim, index))
        add(f"take{d}", "take_along_dim", ["x", "index"], at, wide(x).take_along_dim(index, dim))
        for down in (False, True):
            values, places = wide(x).sort(dim=dim, descending=down, stable=True)
            add(f"sort{d}{down}", "sort", ["x"], {**at, "descending": down}, values, places)
            add(f"argsort{d}{down}", "argsort", ["x"], {**at, "descending": down}, places)
            # Which of several equal elements PyTorch's topk names is open.
            first = places.narrow(dim, 0, 5)
            add(f"topk{d}{down}", "topk", ["x"], {**at, "k": 5, "largest": down},
                wide(x).gather(dim, first), first)  # fmt: skip
    add("select", "index_select", ["x", "picks"], {"dim": 1}, wide(x).index_select(1, picks))
    add("fill", "masked_fill", ["x", "mask", 2.5], {}, wide(x).masked_fill(mask, 2.5))
    add("one_hot", "one_hot", ["picks"], {"num_classes": 20}, F.one_hot(picks, 20))
    add("sum", "sum", ["f"], {}, wide(finite).sum())
    add("prod", "prod", ["f"], {"dim": [2]}, wide(finite).prod(2))
    return case


def writes(dtype):
    """Each place once where elements replace others, several times where they are added."""
    x, part = torch.randn(20, 6, 10).to(dtype), torch.randn(8, 6, 10).to(dtype)
    once = torch.randperm(20)[:8]
    often = torch.randint(0, 20, (8,))
    each = torch.stack([torch.randperm(20)[:8] for _ in range(60)]).T.view(8, 6, 10)
    any_of = torch.randint(0, 20, (8, 6, 10))
    rows, columns = torch.randint(-20, 20, (7,)), torch.randint(-6, 6, (7,))
    pair = torch.randn(7, 10).to(dtype)
    counted = torch.randint(0, 12, (500,))
    inputs = {"x": x, "part": part, "once": once, "often": often, "each": each.contiguous(),
              "any": any_of, "rows": rows, "columns": columns, "pair": pair, "counted": counted}  # fmt: skip
    case = Case(f"writes {dtype}", inputs, [], {})

    def add(op, operands, attrs, result):
        name = f"{op}{len(case.nodes)}"
        case.nodes.append(Node(name, op, operands, attrs))
        case.expected[name] = result

    at = {"dim": 0}
    whole, some, two = wide(x), wide(part), wide(pair)
    add("index_copy", ["x", "once", "part"], at, whole.index_copy(0, once, some))
    add("index_add", ["x", "often", "part"], at, whole.index_add(0, often, some))
    add("scatter", ["x", "each", "part"], at, whole.scatter(0, each, some))
    add("scatter", ["x", "each"], {**at, "value": 1.5}, whole.scatter(0, each, 1.5))
    add("scatter_add", ["x", "any", "part"], at, whole.scatter_add(0, any_of, some))
    add("slice_scatter", ["x", "part"], {**at, "start": 2, "end": 18, "step": 2},
        whole.slice_scatter(some, 0, 2, 18, 2))  # fmt: skip
    add("index_put", ["x", "once", "part"], {}, whole.index_put((once,), some))
    add("index_put", ["x", "rows", "columns", "pair"], {"accumulate": True},
        whole.index_put((rows, columns), two, accumulate=True))  # fmt: skip
    add("bincount", ["counted"], {"minlength": 12}, torch.bincount(counted, minlength=12))
    if dtype == torch.float32:  # of others the edges of bins are rounded elsewhere
        add("histc", ["x"], {"bins": 16, "min": -2.0, "max": 2.0},
            torch.histc(x, 16, -2, 2).double())  # fmt: skip
    return case


def cases():
    floats = (torch.float32, torch.float16, torch.bfloat16)
    return (
        [elementwise(dtype) for dtype in floats]
        + [integers(dtype) for dtype in (torch.int8, torch.int32, torch.int64)]
        + [along_dims(dtype) for dtype in floats]
        + [writes(dtype) for dtype in floats]
    )
