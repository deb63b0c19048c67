"""Kernels of matrix products, and what they must compute."""

import numpy as np
import triton
import triton.language as tl
from harness import Case, InPlace, Out, bf16, e4m3, e5m2
from rows import exact_softmax, normal, random


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  GROUP: tl.constexpr, PRECISION: tl.constexpr):
    """Blocks in groups of rows; a ring of shared tiles where num_stages asks for one."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * columns) * GROUP
    size = min(rows - first, GROUP)
    m = (first + pid % (GROUP * columns) % size) * BM + tl.arange(0, BM)
    n = pid % (GROUP * columns) // size * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    at_a = a + (m % M)[:, None] * K + k[None, :]
    at_b = b + k[:, None] * N + (n % N)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, tl.cdiv(K, BK)):
        x = tl.load(at_a, mask=k[None, :] < K - start * BK, other=0.0)
        y = tl.load(at_b, mask=k[:, None] < K - start * BK, other=0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION)
        at_a += BK
        at_b += BK * N
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * N + n[None, :], total.to(c.dtype.element_ty), mask=inside)


def matmul(name, dtype, out, shape=(100, 96, 144), tile=(64, 64, 32), stages=3, warps=4,
           precision="ieee", **more):
    m, n, k = shape
    a, b = (normal(m, k) / 4).astype(dtype), (normal(k, n) / 4).astype(dtype)
    want = a.astype(np.float64) @ b.astype(np.float64)
    blocks = -(-m // tile[0]) * -(-n // tile[1])
    return Case(f"matmul_{name}", matmul_kernel, [a, b, Out(want, out), m, n, k],
                {"BM": tile[0], "BN": tile[1], "BK": tile[2], "GROUP": 2, "PRECISION": precision},
                (blocks,), {"num_stages": stages, "num_warps": warps}, **more)


def tensor_float(values):
    """Cut to what a tensor core reads of an f32."""
    return (values.view(np.uint32) & 0xFFFFE000).view(np.float32)


def matmul_tf32():
    case = matmul("tf32", np.float32, np.float32, precision="tf32")
    a, b = (tensor_float(x) for x in case.arguments[:2])
    case.arguments[:3] = [a, b, Out(a.astype(np.float64) @ b.astype(np.float64), np.float32)]
    return case


@triton.jit
def split_k_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                   SPLIT: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * BK, K, SPLIT * BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :])
        y = tl.load(b + k[:, None] * N + n[None, :])
        total += tl.dot(x, y)
    tl.atomic_add(c + m[:, None] * N + n[None, :], total, sem="relaxed")


def split_k():
    a, b = normal(32, 256, dtype=bf16), normal(256, 64, dtype=bf16)
    want = a.astype(np.float64) @ b.astype(np.float64)
    return Case("split_k", split_k_kernel,
                [a, b, InPlace(np.zeros((32, 64), np.float32), want), 32, 64, 256],
                {"BM": 32, "BN": 32, "BK": 32, "SPLIT": 4}, (1, 2, 4))


@triton.jit
def attention_kernel(q, k, v, out, logsums, scale, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                     CAUSAL: tl.constexpr):
    head = tl.program_id(1) * T * D
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(q + head + m[:, None] * D + d[None, :])
    best = tl.full((BM,), -float("inf"), dtype=tl.float32)
    sums = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, D), dtype=tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else T
    for start in range(0, end, BN):
        n = start + tl.arange(0, BN)
        y = tl.load(k + head + n[None, :] * D + d[:, None])
        s = tl.dot(x, y) * (scale * 1.4426950408889634)
        if CAUSAL:
            s = tl.where(m[:, None] >= n[None, :], s, -float("inf"))
        new = tl.maximum(best, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        shrink = tl.math.exp2(best - new)
        sums = sums * shrink + tl.sum(p, 1)
        z = tl.load(v + head + n[:, None] * D + d[None, :])
        total = tl.dot(p.to(z.dtype), z, total * shrink[:, None])
        best = new
    tl.store(out + head + m[:, None] * D + d[None, :], (total / sums[:, None]).to(out.dtype.element_ty))
    tl.store(logsums + tl.program_id(1) * T + m, best * 0.6931471805599453 + tl.log(sums))


def exact_attention(q, k, v, scale, causal):
    """Of [heads, t, d]: the output, and the logarithms of the sums."""
    t = q.shape[1]
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * scale
    if causal:
        scores = np.where(np.tril(np.ones((t, t), bool)), scores, -np.inf)
    logsums = np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1)) + scores.max(-1)
    return exact_softmax(scores) @ v.astype(np.float64), logsums


def attention(causal, dtype=np.float16, warps=4):
    heads, t, d = 2, 128, 64
    q, k, v = (normal(heads, t, d, dtype=dtype) for _ in range(3))
    scale = float(np.float32(1 / 8))
    want, logsums = exact_attention(q, k, v, scale, causal)
    # The probabilities are rounded before the second product.
    output = InPlace(np.full((heads, t, d), np.nan, dtype), want, 5e-4 if dtype == np.float16 else 4e-3)
    name = "attention_causal_" if causal else "attention_"
    return Case(name + np.dtype(dtype).name, attention_kernel,
                [q, k, v, output, Out(logsums, np.float32), scale, t],
                {"D": d, "BM": 64, "BN": 32, "CAUSAL": causal}, (t // 64, heads),
                {"num_warps": warps, "num_stages": 2})


@triton.jit
def int4_kernel(a, packed, scales, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                GROUP: tl.constexpr):
    """Weights of 4 bits, two of neighbouring k in a byte, with a scale for each GROUP of k."""
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :])
        half = start // 2 + tl.arange(0, BK // 2)
        bytes = tl.load(packed + half[None, :] + n[:, None] * (K // 2))
        low = (bytes & 15).to(tl.int8) - 8
        high = (bytes >> 4).to(tl.int8) - 8
        w = tl.trans(tl.interleave(low, high)).to(tl.float16)
        scale = tl.load(scales + (k[:, None] // GROUP) * N + n[None, :])
        total += tl.dot(x, w * scale)
    tl.store(c + m[:, None] * N + n[None, :], total)


def int4_matmul():
    m, n, k, group = 16, 64, 128, 32
    a = normal(m, k, dtype=np.float16)
    w = random.integers(0, 16, (n, k))
    packed = (w[:, ::2] | w[:, 1::2] << 4).astype(np.uint8)
    scales = random.uniform(0.01, 0.1, (k // group, n)).astype(np.float16)
    weights = ((w.T - 8).astype(np.float16) * np.repeat(scales, group, axis=0)).astype(np.float64)
    return Case("int4_matmul", int4_kernel,
                [a, packed, scales, Out(a.astype(np.float64) @ weights, np.float32), n, k],
                {"BM": 16, "BN": 32, "BK": 64, "GROUP": group}, (2,))


@triton.jit
def int8_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :])
        y = tl.load(b + n[None, :] * K + k[:, None])
        total = tl.dot(x, y, total)
    tl.store(c + m[:, None] * N + n[None, :], total)


def int8_matmul(name, tile, **more):
    a = random.integers(-128, 128, (64, 128)).astype(np.int8)
    b = random.integers(-128, 128, (64, 128)).astype(np.int8)
    want = a.astype(np.int64) @ b.astype(np.int64).T
    return Case(f"int8_matmul_{name}", int8_kernel, [a, b, Out(want, np.int32), 64, 64, 128],
                {"BM": tile[0], "BN": tile[1], "BK": 64}, (64 // tile[0], 64 // tile[1]), **more)


@triton.jit
def descriptor_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Through tensor descriptors, which are tensor copies where the hardware has them."""
    of_a = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    of_b = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    of_c = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(of_a.load([m, k]), of_b.load([k, n]), total)
    of_c.store([m, n], total.to(tl.bfloat16))


def descriptors(name, shape, tile, stages, warps):
    m, n, k = shape
    a, b = (normal(m, k) / 4).astype(bf16), (normal(k, n) / 4).astype(bf16)
    want = a.astype(np.float64) @ b.astype(np.float64)
    return Case(f"descriptors_{name}", descriptor_kernel, [a, b, Out(want, bf16), m, n, k],
                {"BM": tile[0], "BN": tile[1], "BK": tile[2]}, (m // tile[0], n // tile[1]),
                {"num_stages": stages, "num_warps": warps})


@triton.jit
def rows_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Forgets that the last step of k may be a part of one."""
    m, n = tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        total += tl.dot(tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + k[:, None] * BN + n[None, :]))
    tl.store(c + m[:, None] * BN + n[None, :], total)


def without_a_mask():
    a, b = normal(16, 40, dtype=np.float16), normal(40, 32, dtype=np.float16)
    return Case("without_a_mask", rows_kernel, [a, b, Out(np.zeros((16, 32)), np.float32), 40],
                {"BM": 16, "BN": 32, "BK": 32}, finding="in no allocation")


def cases():
    return [matmul("bf16", bf16, bf16),
            matmul("f16", np.float16, np.float32, stages=4),
            matmul("f16_wide", np.float16, np.float16, (64, 128, 64), (32, 128, 32), 2, 8),
            matmul("f32", np.float32, np.float32, (64, 64, 64), (32, 32, 16)),
            matmul("e5m2", e5m2, np.float32, (64, 64, 64)),
            matmul("e4m3", e4m3, np.float32, (64, 64, 64), capabilities=(90, 100)),
            matmul_tf32(), split_k(), attention(False), attention(True), attention(True, bf16, 8),
            int4_matmul(), int8_matmul("small", (32, 64)),
            int8_matmul("wide", (64, 32)),
            descriptors("small", (64, 64, 64), (64, 32, 32), 3, 4),
            descriptors("deep", (128, 64, 320), (128, 64, 64), 3, 8), without_a_mask()]
