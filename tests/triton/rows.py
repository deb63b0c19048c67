"""Kernels that go through rows, and what they must compute."""

import numpy as np
import triton
import triton.language as tl
from harness import Case, InPlace, Out, bf16
from triton.language.extra import libdevice

random = np.random.default_rng(1)


def normal(*shape, dtype=np.float32):
    return random.standard_normal(shape).astype(np.float32).astype(dtype)


@triton.jit
def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def vector_add():
    x, y = normal(2500), normal(2500)
    return Case("vector_add", add_kernel, [x, y, Out(x.astype(np.float64) + y, np.float32), 2500],
                {"BLOCK": 1024}, (3,))


@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * columns + at, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=at < columns)


def exact_softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax(dtype=np.float32, warps=4):
    x = normal(6, 781, dtype=dtype)
    return Case(f"softmax_{np.dtype(dtype).name}", softmax_kernel,
                [x, Out(exact_softmax(x.astype(np.float64)), dtype), 781], {"BLOCK": 1024}, (6,),
                {"num_warps": warps})


@triton.jit
def layer_norm_kernel(x, y, w, b, mean, rstd, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
    m = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
        v = tl.where(at < columns, v - m, 0.0)
        squares += v * v
    r = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        v = (tl.load(x + at, mask=inside, other=0.0).to(tl.float32) - m) * r
        v = v * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside)
        tl.store(y + row * columns + at, v.to(y.dtype.element_ty), mask=inside)


def layer_norm():
    x, w, b = normal(5, 700, dtype=np.float16), normal(700), normal(700)
    wide = x.astype(np.float64)
    mean = wide.mean(axis=1)
    rstd = 1 / np.sqrt(wide.var(axis=1) + 1e-5)
    want = (wide - mean[:, None]) * rstd[:, None] * w + b
    return Case("layer_norm", layer_norm_kernel,
                [x, Out(want, np.float16), w, b, Out(mean, np.float32), Out(rstd, np.float32), 700, 1e-5],
                {"BLOCK": 256}, (5,))


@triton.jit
def rms_norm_kernel(x, y, w, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    v *= tl.rsqrt(tl.sum(v * v, axis=0) / columns + eps)
    w = tl.load(w + at, mask=inside).to(tl.float32)
    tl.store(y + row * columns + at, (v * w).to(tl.bfloat16), mask=inside)


def rms_norm():
    x, w = normal(4, 1000, dtype=bf16), normal(1000, dtype=bf16)
    wide = x.astype(np.float64)
    want = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * w.astype(np.float64)
    return Case("rms_norm", rms_norm_kernel, [x, Out(want, bf16), w, 1000, 1e-6], {"BLOCK": 1024}, (4,),
                {"num_warps": 8})


@triton.jit
def layer_norm_backward_kernel(dy, x, w, dx, dw, locks, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr,
                               BARRIER: tl.constexpr):
    """dw is summed up in ROWS rows, under a lock for each.

    Without BARRIER a warp may read what the next statement writes, as in a tutorial of Triton.
    """
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0)
    g = tl.load(dy + row * columns + at, mask=inside, other=0.0)
    scale = tl.load(w + at, mask=inside, other=0.0)
    mean = tl.sum(v, axis=0) / columns
    centered = tl.where(inside, v - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centered * centered, axis=0) / columns + 1e-5)
    normed = centered * rstd
    scaled = scale * g
    c1 = tl.sum(normed * scaled, axis=0) / columns
    c2 = tl.sum(scaled, axis=0) / columns
    tl.store(dx + row * columns + at, (scaled - (normed * c1 + c2)) * rstd, mask=inside)
    lock = locks + row % ROWS
    sums = dw + (row % ROWS) * columns + at
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    used = tl.load(lock + ROWS)
    if BARRIER:
        tl.debug_barrier()
    part = g * normed
    if used == 0:
        tl.atomic_xchg(lock + ROWS, 1, sem="relaxed")
    else:
        part += tl.load(sums, mask=inside)
    tl.store(sums, part, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def layer_norm_backward(barrier):
    rows, columns, groups = 6, 200, 2
    x, dy, w = normal(rows, columns), normal(rows, columns), normal(columns)
    wide, g = x.astype(np.float64), dy.astype(np.float64)
    rstd = 1 / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)
    normed = (wide - wide.mean(axis=1, keepdims=True)) * rstd
    scaled = g * w
    c1 = (normed * scaled).mean(axis=1, keepdims=True)
    c2 = scaled.mean(axis=1, keepdims=True)
    dw = np.stack([(g * normed)[k::groups].sum(axis=0) for k in range(groups)])
    locks = np.zeros(2 * groups, np.int32)
    return Case("layer_norm_backward" + ("" if barrier else "_without_barrier"), layer_norm_backward_kernel,
                [dy, x, w, Out((scaled - (normed * c1 + c2)) * rstd, np.float32), Out(dw, np.float32),
                 InPlace(locks, np.array([0] * groups + [1] * groups)), columns],
                {"ROWS": groups, "BLOCK": 256, "BARRIER": barrier}, (rows,),
                finding="" if barrier else "missing barrier between a read and this atomic")


@triton.jit
def rope_kernel(q, cosines, sines, heads, HALF: tl.constexpr):
    """Rotates the halves of each head in place."""
    position = tl.program_id(0)
    at = tl.arange(0, HALF)
    c = tl.load(cosines + position * HALF + at)
    s = tl.load(sines + position * HALF + at)
    for head in range(heads):
        base = q + (position * heads + head) * 2 * HALF
        a = tl.load(base + at).to(tl.float32)
        b = tl.load(base + HALF + at).to(tl.float32)
        tl.store(base + at, (a * c - b * s).to(tl.bfloat16))
        tl.store(base + HALF + at, (b * c + a * s).to(tl.bfloat16))


def rope():
    positions, heads, half = 5, 3, 32
    q = normal(positions, heads, 2 * half, dtype=bf16)
    angles = np.arange(positions)[:, None] * 10000.0 ** (-np.arange(half) / half)
    cosines, sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    a, b = q.astype(np.float64)[..., :half], q.astype(np.float64)[..., half:]
    c, s = cosines[:, None].astype(np.float64), sines[:, None].astype(np.float64)
    want = np.concatenate([a * c - b * s, b * c + a * s], axis=-1)
    return Case("rope", rope_kernel, [InPlace(q, want), cosines, sines, heads], {"HALF": half},
                (positions,), {"num_warps": 4})


@triton.jit
def cross_entropy_kernel(logits, labels, losses, gradient, columns, BLOCK: tl.constexpr):
    """The loss by an online sum, and its gradient."""
    row = tl.program_id(0)
    logits += row * columns
    label = tl.load(labels + row)
    m = -float("inf")
    d = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(logits + at, mask=at < columns, other=-float("inf"))
        new = tl.maximum(m, tl.max(v, axis=0))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(v - new), axis=0)
        m = new
    tl.store(losses + row, m + tl.log(d) - tl.load(logits + label))
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(logits + at, mask=at < columns, other=-float("inf"))
        g = tl.exp(v - m) / d - tl.where(at == label, 1.0, 0.0)
        tl.store(gradient + row * columns + at, g, mask=at < columns)


def cross_entropy():
    x = normal(4, 900)
    labels = random.integers(0, 900, 4).astype(np.int64)
    wide = x.astype(np.float64)
    probabilities = exact_softmax(wide)
    want = -np.log(probabilities[np.arange(4), labels])
    gradient = probabilities.copy()
    gradient[np.arange(4), labels] -= 1
    return Case("cross_entropy", cross_entropy_kernel,
                [x, labels, Out(want, np.float32), Out(gradient, np.float32), 900], {"BLOCK": 512}, (4,))


@triton.jit
def best_kernel(x, values, places, columns, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K greatest of a row by repeated argmax."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    for k in tl.static_range(K):
        best, where = tl.max(v, axis=0, return_indices=True)
        tl.store(values + row * K + k, best)
        tl.store(places + row * K + k, where)
        v = tl.where(at == where, -float("inf"), v)


def best_of_rows():
    x = normal(3, 300)
    order = np.argsort(-x, axis=1, kind="stable")[:, :4]
    return Case("best_of_rows", best_kernel,
                [x, Out(np.take_along_axis(x, order, 1), np.float32), Out(order, np.int32), 300],
                {"K": 4, "BLOCK": 512}, (3,))


@triton.jit
def top_kernel(x, y, sorted_x, COLUMNS: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS))
    tl.store(y + row * K + tl.arange(0, K), tl.topk(v, K))
    tl.store(sorted_x + row * COLUMNS + tl.arange(0, COLUMNS), tl.sort(v, descending=False))


def top_and_sort():
    x = normal(3, 128)
    ordered = np.sort(x, axis=1)
    return Case("top_and_sort", top_kernel,
                [x, Out(ordered[:, ::-1][:, :8].copy(), np.float32), Out(ordered, np.float32)],
                {"COLUMNS": 128, "K": 8}, (3,))


@triton.jit
def step(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scan_kernel(x, gate, sums, states, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A running sum along rows, and the recurrence h = gate * h + x along columns."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    v = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(v, axis=1))
    _, h = tl.associative_scan((tl.load(gate + at), v), 0, step)
    tl.store(states + at, h)


def scans():
    x = normal(16, 64)
    gate = random.uniform(0.1, 1, (16, 64)).astype(np.float32)
    state = np.zeros(64)
    states = []
    for row, g in zip(x.astype(np.float64), gate.astype(np.float64), strict=True):
        state = g * state + row
        states.append(state)
    return Case("scans", scan_kernel,
                [x, gate, Out(np.cumsum(x.astype(np.float64), axis=1), np.float32),
                 Out(np.array(states), np.float32)], {"ROWS": 16, "COLUMNS": 64})


@triton.jit
def dropout_kernel(x, y, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(keep, v / (1 - p), 0.0), mask=at < n)


def philox(seed, offsets):
    """The first word of Philox4x32-10 for each offset."""
    c = [offsets.astype(np.uint64), *(np.zeros(len(offsets), np.uint64) for _ in range(3))]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & low,
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0].astype(np.uint32)


def dropout():
    x = normal(1000)
    bits = philox(123, np.arange(1000)).view(np.int32).astype(np.int64)
    uniform = np.where(bits < 0, -bits - 1, bits).astype(np.float32) * np.float32(4.6566127342e-10)
    want = np.where(uniform > np.float32(0.3), x.astype(np.float64) / (1 - np.float32(0.3)), 0)
    return Case("dropout", dropout_kernel, [x, Out(want, np.float32), 1000, 0.3, 123], {"BLOCK": 512}, (2,))


@triton.jit
def activation_kernel(x, gelu, silu, other, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(gelu + at, 0.5 * v * (1 + libdevice.erf(v * 0.7071067811865476)))
    tl.store(silu + at, v * tl.sigmoid(v))
    tl.store(other + at, libdevice.tanh(v) + libdevice.pow(tl.abs(v), 1.7) + libdevice.atan2(v, 0.5))


def activations():
    from math import erf
    x = normal(512)
    wide = x.astype(np.float64)
    gelu = 0.5 * wide * (1 + np.vectorize(erf)(wide / np.sqrt(2)))
    other = np.tanh(wide) + np.abs(wide) ** 1.7 + np.arctan2(wide, 0.5)
    return Case("activations", activation_kernel,
                [x, Out(gelu, np.float32), Out(wide / (1 + np.exp(-wide)), np.float32),
                 Out(other, np.float32)], {"BLOCK": 256}, (2,))


def cases():
    return [vector_add(), softmax(), softmax(np.float16, 1), softmax(bf16, 8), layer_norm(), rms_norm(),
            layer_norm_backward(True), layer_norm_backward(False), rope(), cross_entropy(), best_of_rows(),
            top_and_sort(), scans(), dropout(), activations()]
