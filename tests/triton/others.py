"""Kernels that move, count and search, and what they must compute."""

import numpy as np
import triton
import triton.language as tl
from harness import Case, InPlace, Out, bf16, e4m3, e5m2
from rows import normal, random


@triton.jit
def histogram_kernel(x, counts, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=BINS - 1)
    missing = tl.sum((at >= n).to(tl.int32), axis=0)
    bins = tl.arange(0, BINS)
    h = tl.histogram(v, BINS) - tl.where(bins == BINS - 1, missing, 0)
    tl.atomic_add(counts + bins, h)


def histogram():
    x = random.integers(0, 64, 900).astype(np.int32)
    return Case("histogram", histogram_kernel,
                [x, InPlace(np.zeros(64, np.int32), np.bincount(x, minlength=64)), 900],
                {"BINS": 64, "BLOCK": 512}, (2,))


@triton.jit
def transpose_kernel(x, y, ROWS, COLUMNS, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + m[:, None] * COLUMNS + n[None, :], mask=(m[:, None] < ROWS) & (n[None, :] < COLUMNS))
    v = tl.trans(v)
    tl.store(y + n[:, None] * ROWS + m[None, :], v, mask=(n[:, None] < COLUMNS) & (m[None, :] < ROWS))


def transpose(dtype):
    x = normal(80, 48, dtype=dtype)
    return Case(f"transpose_{np.dtype(dtype).name}", transpose_kernel, [x, Out(x.T.copy(), dtype), 80, 48],
                {"BLOCK": 32}, (3, 2))


@triton.jit
def gather_kernel(table, places, y, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of a table; then columns among each other by tl.gather."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    which = tl.load(places + row)
    v = tl.load(table + which * COLUMNS + at)
    v = tl.gather(v, BLOCK - 1 - at, axis=0)
    tl.store(y + row * COLUMNS + at, v)


def gather():
    table = normal(50, 128, dtype=bf16)
    places = random.integers(0, 50, 7).astype(np.int64)
    return Case("gather", gather_kernel, [table, places, Out(table[places][:, ::-1].copy(), bf16)],
                {"COLUMNS": 128, "BLOCK": 128}, (7,))


@triton.jit
def atomics_kernel(x, floats, halves, longs, lesser, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.atomic_max(floats + at % 8, v)
    tl.atomic_add(halves + at % 16, (at % 3).to(tl.float16))
    tl.atomic_add(longs + at % 4, at.to(tl.int64) * 1000000007)
    tl.atomic_min(lesser + at % 8, v)


def atomics():
    x = normal(256)
    at = np.arange(256)

    def by(values, count, how):
        return np.array([how(values[at % count == k]) for k in range(count)])

    return Case("atomics", atomics_kernel,
                [x, InPlace(np.full(8, -100, np.float32), by(x, 8, np.max)),
                 InPlace(np.zeros(16, np.float16), by(at % 3, 16, np.sum)),
                 InPlace(np.zeros(4, np.int64), by(at * 1000000007, 4, np.sum)),
                 InPlace(np.full(8, 100, np.float32), by(x, 8, np.min))], {"BLOCK": 128}, (2,))


@triton.jit
def convert_kernel(x, small, other, back, whole, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(small + at, v.to(small.dtype.element_ty))
    tl.store(other + at, v.to(tl.bfloat16, fp_downcast_rounding="rtz"))
    tl.store(back + at, v.to(small.dtype.element_ty).to(tl.float32))
    tl.store(whole + at, (v * 30).to(tl.int8))


def conversions(dtype, capabilities=(80, 90, 100)):
    x = normal(256)
    small = x.astype(dtype)
    cut = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return Case(f"conversions_{np.dtype(dtype).name}", convert_kernel,
                [x, Out(small, dtype), Out(cut, bf16), Out(small.astype(np.float32), np.float32),
                 Out((x * np.float32(30)).astype(np.int32).astype(np.int8), np.int8)], {"BLOCK": 256},
                capabilities=capabilities)


@triton.jit
def welford(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    part = weight_b / weight
    return mean_a + delta * part, m2_a + m2_b + delta * delta * weight_a * part, weight


@triton.jit
def welford_kernel(x, mean, variance, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    v = tl.load(x + at)
    m, m2, weight = tl.reduce((v, tl.zeros_like(v), tl.full(v.shape, 1.0, tl.float32)), 1, welford)
    tl.store(mean + tl.arange(0, ROWS), m)
    tl.store(variance + tl.arange(0, ROWS), m2 / weight)


def moments():
    x = normal(16, 256)
    wide = x.astype(np.float64)
    return Case("moments", welford_kernel,
                [x, Out(wide.mean(axis=1), np.float32), Out(wide.var(axis=1), np.float32)],
                {"ROWS": 16, "COLUMNS": 256})


@triton.jit
def last_block_kernel(x, parts, arrived, y, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    """Each block leaves its sum; the last one to come adds them up."""
    pid = tl.program_id(0)
    v = tl.load(x + pid * BLOCK + tl.arange(0, BLOCK))
    tl.store(parts + pid, tl.sum(v, axis=0))
    tl.debug_barrier()
    before = tl.atomic_add(arrived, 1)
    if before == BLOCKS - 1:
        tl.store(y, tl.sum(tl.load(parts + tl.arange(0, BLOCKS)), axis=0))


def last_block():
    x = normal(4 * 256)
    wide = x.astype(np.float64).reshape(4, 256)
    return Case("last_block", last_block_kernel,
                [x, Out(wide.sum(axis=1), np.float32), InPlace(np.zeros(1, np.int32), np.array([4])),
                 Out(wide.sum().reshape(1), np.float32)], {"BLOCK": 256, "BLOCKS": 4}, (4,))


def cases():
    return [histogram(), transpose(np.float32), transpose(bf16), gather(),
            atomics(), conversions(e4m3, (90, 100)), conversions(e5m2, (90, 100)),
            conversions(np.float16), moments(), last_block()]
