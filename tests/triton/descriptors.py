"""Kernels that get tensor descriptors from the host, which are tensor maps by value, for sm_90."""

import numpy as np
import triton
import triton.language as tl
from harness import Case, Described, InPlace, Out, bf16, e4m3
from products import exact_attention
from rows import normal


@triton.jit
def matmul_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, NK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = a.load([m, k])
        y = b.load([n, k]).T if NK else b.load([k, n])
        total = tl.dot(x, y, total)
    c.store([m, n], total.to(c.dtype))


def matmul(name, dtype, out, shape, tile, stages=3, warps=4, nk=False):
    m, n, k = shape
    bm, bn, bk = tile
    a, b = (normal(m, k) / 4).astype(dtype), (normal(k, n) / 4).astype(dtype)
    want = a.astype(np.float64) @ b.astype(np.float64)
    b, of_b = (b.T.copy(), (bn, bk)) if nk else (b, (bk, bn))
    return Case(f"host_matmul_{name}", matmul_kernel,
                [Described(a, (bm, bk)), Described(b, of_b), Described(Out(want, out), (bm, bn)), k],
                {"BM": bm, "BN": bn, "BK": bk, "NK": nk}, (-(-m // bm), -(-n // bn)),
                {"num_stages": stages, "num_warps": warps}, capabilities=(90,))


@triton.jit
def persistent_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                      GROUP: tl.constexpr, SPECIALIZE: tl.constexpr):
    """Few blocks take the tiles in turn; loads of the next one may go on beside stores of this one."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), rows * columns, tl.num_programs(0), flatten=True,
                         warp_specialize=SPECIALIZE):
        first = tile // (GROUP * columns) * GROUP
        size = min(rows - first, GROUP)
        m = (first + tile % (GROUP * columns) % size) * BM
        n = tile % (GROUP * columns) // size * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(a.load([m, k]), b.load([n, k]).T, total)
        c.store([m, n], total.to(c.dtype))


def persistent(name, dtype, shape, tile, blocks, specialize=False):
    m, n, k = shape
    bm, bn, bk = tile
    a, b = (normal(m, k) / 4).astype(dtype), (normal(n, k) / 4).astype(dtype)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    return Case(f"host_persistent_{name}", persistent_kernel,
                [Described(a, (bm, bk)), Described(b, (bn, bk)), Described(Out(want, dtype), (bm, bn)),
                 m, n, k],
                {"BM": bm, "BN": bn, "BK": bk, "GROUP": 2, "SPECIALIZE": specialize}, (blocks,),
                {"num_stages": 3, "num_warps": 4}, capabilities=(90,))


@triton.jit
def attention_kernel(q, k, v, out, logsums, scale, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                     CAUSAL: tl.constexpr):
    head = tl.program_id(1) * T
    start_m = tl.program_id(0) * BM
    m = start_m + tl.arange(0, BM)
    x = q.load([head + start_m, 0])
    best = tl.full((BM,), -float("inf"), dtype=tl.float32)
    sums = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, D), dtype=tl.float32)
    end = start_m + BM if CAUSAL else T
    for start in range(0, end, BN):
        n = start + tl.arange(0, BN)
        s = tl.dot(x, k.load([head + start, 0]).T) * (scale * 1.4426950408889634)
        if CAUSAL:
            s = tl.where(m[:, None] >= n[None, :], s, -float("inf"))
        new = tl.maximum(best, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        shrink = tl.math.exp2(best - new)
        sums = sums * shrink + tl.sum(p, 1)
        z = v.load([head + start, 0])
        total = tl.dot(p.to(z.dtype), z, total * shrink[:, None])
        best = new
    out.store([head + start_m, 0], (total / sums[:, None]).to(out.dtype))
    tl.store(logsums + head + m, best * 0.6931471805599453 + tl.log(sums))


def attention(causal, dtype):
    heads, t, d = 2, 128, 64
    q, k, v = (normal(heads, t, d, dtype=dtype) for _ in range(3))
    scale = float(np.float32(1 / 8))
    want, logsums = exact_attention(q, k, v, scale, causal)

    def flat(x, rows):
        return Described(x.reshape(heads * t, d), (rows, d))

    # The probabilities are rounded before the second product.
    output = InPlace(np.full((heads * t, d), np.nan, dtype), want.reshape(heads * t, d),
                     5e-4 if dtype == np.float16 else 4e-3)
    name = "host_attention_causal_" if causal else "host_attention_"
    return Case(name + np.dtype(dtype).name, attention_kernel,
                [flat(q, 64), flat(k, 32), flat(v, 32), Described(output, (64, d)),
                 Out(logsums.reshape(-1), np.float32), scale, t],
                {"D": d, "BM": 64, "BN": 32, "CAUSAL": causal}, (t // 64, heads),
                {"num_warps": 4, "num_stages": 2}, capabilities=(90,))


def cases():
    return [matmul("small", bf16, bf16, (64, 64, 64), (64, 32, 32)),
            matmul("deep", np.float16, np.float32, (128, 64, 320), (128, 64, 64), warps=8),
            # Its last tiles reach beyond the matrices.
            matmul("partial", bf16, bf16, (72, 80, 144), (64, 64, 64)),
            matmul("nk", bf16, np.float32, (64, 64, 128), (64, 64, 64), nk=True),
            matmul("e4m3", e4m3, np.float32, (64, 64, 128), (64, 64, 64), nk=True),
            persistent("bf16", bf16, (192, 128, 128), (64, 64, 64), 2),
            persistent("specialized", np.float16, (192, 128, 128), (64, 64, 64), 2, True),
            attention(False, np.float16), attention(True, np.float16), attention(True, bf16)]
