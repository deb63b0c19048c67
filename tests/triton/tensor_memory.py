"""Kernels for sm_100 alone: products with scales, and Gluon's, which name tensor memory."""

import numpy as np
import triton
import triton.language as tl
from harness import Case, Out, bf16, e4m3, e5m2
from rows import normal, random
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.blackwell import mbarrier


@triton.jit
def scaled_kernel(a, b, scales_a, scales_b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  PACK: tl.constexpr, PART: tl.constexpr, OF_A: tl.constexpr, OF_B: tl.constexpr):
    """A of [M, K], B of [N, K], PACK elements in a byte and a scale for each PART of k."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start // PACK + tl.arange(0, BK // PACK)
        s = start // PART + tl.arange(0, BK // PART)
        x = tl.load(a + m[:, None] * (K // PACK) + k[None, :])
        y = tl.load(b + n[None, :] * (K // PACK) + k[:, None])
        of_x = tl.load(scales_a + m[:, None] * (K // PART) + s[None, :])
        of_y = tl.load(scales_b + n[:, None] * (K // PART) + s[None, :])
        total = tl.dot_scaled(x, of_x, OF_A, y, of_y, OF_B, total)
    tl.store(c + m[:, None] * N + n[None, :], total)


def e2m1(codes):
    sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[codes & 7]
    return np.where(codes & 8, -sizes, sizes)


def scaled(name, of_a, of_b, tile=(128, 128, 128), shape=(128, 128, 256)):
    m, n, k = shape
    dtypes = {"e4m3": e4m3, "e5m2": e5m2}
    packed, part = of_a == "e2m1", 32

    def operand(rows, kind):
        scales = random.integers(120, 134, (rows, k // part)).astype(np.uint8)
        factors = np.repeat(np.exp2(scales.astype(np.float64) - 127), part, axis=1)
        if kind != "e2m1":
            x = normal(rows, k).astype(dtypes[kind])
            return x, scales, x.astype(np.float64) * factors
        codes = random.integers(0, 16, (rows, k)).astype(np.uint8)
        return codes[:, ::2] | codes[:, 1::2] << 4, scales, e2m1(codes) * factors

    a, scales_a, exact_a = operand(m, of_a)
    b, scales_b, exact_b = operand(n, of_b)
    return Case(f"scaled_{name}", scaled_kernel,
                [a, b, scales_a, scales_b, Out(exact_a @ exact_b.T, np.float32), n, k],
                {"BM": tile[0], "BN": tile[1], "BK": tile[2], "PACK": 2 if packed else 1, "PART": part,
                 "OF_A": of_a, "OF_B": of_b}, (m // tile[0], n // tile[1]), capabilities=(100,))


@gluon.jit
def tiles_kernel(a, b, c, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, VARIANT: gl.constexpr,
                 A_IN_TENSOR: gl.constexpr):
    """Every step waits for its product; what of A is in tensor memory goes there by registers."""
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout(64, 16, 2)
    of_a = gl.allocate_shared_memory(a.dtype.element_ty, [BM, BK], shared)
    of_b = gl.allocate_shared_memory(a.dtype.element_ty, [BN, BK], shared)
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    sums: gl.constexpr = blackwell.TensorMemoryLayout([BM, BN], col_stride=1)
    total = blackwell.allocate_tensor_memory(gl.float32, [BM, BN], sums)
    left: gl.constexpr = blackwell.TensorMemoryLayout([BM, BK], col_stride=1)
    if A_IN_TENSOR:
        in_tensor = blackwell.allocate_tensor_memory(a.dtype.element_ty, [BM, BK], left)
    m = gl.arange(0, BM, layout=gl.SliceLayout(1, rows))
    n = gl.arange(0, BN, layout=gl.SliceLayout(1, rows))
    k = gl.arange(0, BK, layout=gl.SliceLayout(0, rows))
    phase = 0
    for start in range(0, K, BK):
        x = gl.load(a + m[:, None] * K + start + k[None, :])
        y = gl.load(b + n[:, None] * K + start + k[None, :])
        of_b.store(y)
        if A_IN_TENSOR:
            in_tensor.store(gl.convert_layout(x, in_tensor.get_reg_layout()))
            blackwell.fence_async_shared()
            blackwell.tcgen05_mma(in_tensor, of_b.permute((1, 0)), total, use_acc=start != 0)
        else:
            of_a.store(x)
            blackwell.fence_async_shared()
            blackwell.tcgen05_mma(of_a, of_b.permute((1, 0)), total, use_acc=start != 0)
        blackwell.tcgen05_commit(done)
        mbarrier.wait(done, phase)
        phase ^= 1
    mbarrier.invalidate(done)
    result = gl.convert_layout(total.load(total.get_reg_layout(instr_variant=VARIANT)), rows)
    columns = gl.arange(0, BN, layout=gl.SliceLayout(0, rows))
    gl.store(c + m[:, None] * BN + columns[None, :], result)


def tiles(variant, rows=128, a_in_tensor=False):
    n, k = 64, 96
    a, b = (normal(rows, k) / 4).astype(bf16), (normal(n, k) / 4).astype(bf16)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    name = f"gluon_tiles_{rows}_{variant}" + ("_a_in_tensor" if a_in_tensor else "")
    return Case(name, tiles_kernel, [a, b, Out(want, np.float32), k],
                {"BM": rows, "BN": n, "BK": 32, "VARIANT": variant, "A_IN_TENSOR": a_in_tensor},
                capabilities=(100,))


@gluon.jit
def pair_kernel(a, b, c, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    """Two blocks have half of A's rows and half of B's columns each, and multiply together."""
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0], cga_layout=[[1, 0]])
    of_y: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0], cga_layout=[[0, 1]])
    of_a = gl.allocate_shared_memory(a.dtype.element_ty, [BM, BK],
                                     gl.NVMMASharedLayout(64, 16, 2, cga_layout=[[1, 0]]))
    of_b = gl.allocate_shared_memory(a.dtype.element_ty, [BK, BN],
                                     gl.NVMMASharedLayout(64, 16, 2, cga_layout=[[0, 1]]))
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(done, count=1)
    sums: gl.constexpr = blackwell.TensorMemoryLayout([BM // 2, BN], col_stride=1, cga_layout=[[1, 0]],
                                                      two_ctas=True)
    total = blackwell.allocate_tensor_memory(gl.float32, [BM, BN], sums)
    m = gl.arange(0, BM, layout=gl.SliceLayout(1, rows))
    k = gl.arange(0, BK, layout=gl.SliceLayout(0, rows))
    n = gl.arange(0, BN, layout=gl.SliceLayout(0, of_y))
    k_of_y = gl.arange(0, BK, layout=gl.SliceLayout(1, of_y))
    phase = 0
    for start in range(0, K, BK):
        of_a.store(gl.load(a + m[:, None] * K + start + k[None, :]))
        of_b.store(gl.load(b + (start + k_of_y)[:, None] * BN + n[None, :]))
        blackwell.fence_async_shared(cluster=True)
        gl.barrier(cluster=True)
        blackwell.tcgen05_mma(of_a, of_b, total, use_acc=start != 0)
        blackwell.tcgen05_commit(done)
        mbarrier.wait(done, phase)
        phase ^= 1
    columns = gl.arange(0, BN, layout=gl.SliceLayout(0, rows))
    gl.store(c + m[:, None] * BN + columns[None, :], gl.convert_layout(total.load(), rows))


def pair(rows, columns):
    k = 96
    a, b = (normal(rows, k) / 4).astype(bf16), (normal(k, columns) / 4).astype(bf16)
    want = a.astype(np.float64) @ b.astype(np.float64)
    return Case(f"gluon_pair_{rows}", pair_kernel, [a, b, Out(want, np.float32), k],
                {"BM": rows, "BN": columns, "BK": 32}, (2,), {"num_ctas": 2}, capabilities=(100,))


def cases():
    return [scaled("e4m3", "e4m3", "e4m3"), scaled("e5m2_e4m3", "e5m2", "e4m3"),
            scaled("e2m1", "e2m1", "e2m1"),
            tiles("32x32b"), tiles("16x64b"), tiles("16x128b"), tiles("16x256b"), tiles("32x32b", 64),
            tiles("32x32b", a_in_tensor=True), tiles("32x32b", 64, True),
            pair(256, 64), pair(128, 128)]
