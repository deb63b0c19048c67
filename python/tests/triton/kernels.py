"""Kernels of the usual kinds, as one writes them for a GPU, and functions that launch them."""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256)
    return out


@triton.jit
def softmax_kernel(x, out, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr,
                   STAGES: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        v = tl.load(x + row * x_stride + at, mask=inside, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * out_stride + at, e / tl.sum(e, axis=0), mask=inside)


def softmax(x):
    """As many blocks as a GPU holds at a time, by the registers and the shared memory that they take."""
    rows, columns = x.shape
    out = torch.empty_like(x)
    warps, block = 8, triton.next_power_of_2(columns)
    driver = triton.runtime.driver.active
    properties = driver.utils.get_device_properties(driver.get_active_torch_device().index)
    kernel = softmax_kernel.warmup(x, out, x.stride(0), out.stride(0), rows, columns, BLOCK=block,
                                   STAGES=2, num_warps=warps, grid=(1,))
    kernel._init_handles()
    threads = properties["warpSize"] * warps
    held = properties["max_num_regs"] // (kernel.n_regs * threads)
    held = min(held, properties["max_shared_mem"] // max(kernel.metadata.shared, 1))
    blocks = min(properties["multiprocessor_count"] * held, rows)
    kernel[(blocks, 1, 1)](x, out, x.stride(0), out.stride(0), rows, columns, block, 2)
    return out


@triton.jit
def leaky(v):
    return tl.where(v >= 0, v, 0.01 * v)


@triton.autotune(
    configs=[
        triton.Config({"M": 64, "N": 64, "K": 32, "GROUP": 4}, num_stages=3, num_warps=4),
        triton.Config({"M": 128, "N": 64, "K": 32, "GROUP": 4}, num_stages=3, num_warps=8),
    ],
    key=["m", "n", "k"],
)
@triton.heuristics({"EVEN": lambda args: args["k"] % args["K"] == 0})
@triton.jit
def matmul_kernel(a, b, c, m, n, k, a_stride, b_stride, c_stride, M: tl.constexpr, N: tl.constexpr,
                  K: tl.constexpr, GROUP: tl.constexpr, EVEN: tl.constexpr,
                  ACTIVATION: tl.constexpr):
    # Blocks that run at one time share columns of b, GROUP rows of blocks high.
    tiles_n = tl.cdiv(n, N)
    group = tl.program_id(0) // (GROUP * tiles_n)
    high = min(tl.cdiv(m, M) - group * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    rows = ((group * GROUP + within % high) * M + tl.arange(0, M)) % m
    columns = (within // high * N + tl.arange(0, N)) % n
    inner = tl.arange(0, K)
    left = a + rows[:, None] * a_stride + inner[None, :]
    right = b + inner[:, None] * b_stride + columns[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(tl.cdiv(k, K)):
        if EVEN:
            total = tl.dot(tl.load(left), tl.load(right), total)
        else:
            left_in = inner < k - step * K
            total = tl.dot(tl.load(left, mask=left_in[None, :], other=0.0),
                           tl.load(right, mask=left_in[:, None], other=0.0), total)
        left += K
        right += K * b_stride
    if ACTIVATION == "leaky":
        total = leaky(total)
    rows = (group * GROUP + within % high) * M + tl.arange(0, M)
    columns = within // high * N + tl.arange(0, N)
    tl.store(c + rows[:, None] * c_stride + columns[None, :], total.to(c.dtype.element_ty),
             mask=(rows < m)[:, None] & (columns < n)[None, :])


def matmul(a, b, activation=""):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=torch.float16)
    grid = lambda meta: (triton.cdiv(m, meta["M"]) * triton.cdiv(n, meta["N"]),)
    matmul_kernel[grid](a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0),
                        ACTIVATION=activation)
    return c


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, v / (1 - p), 0.0), mask=at < n)


def dropout(x, p, seed):
    out = torch.empty_like(x)
    dropout_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), p, seed, BLOCK=1024)
    return out


@triton.jit
def norm_kernel(x, out, weight, bias, means, scales, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / columns
    v = tl.where(inside, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(v * v, axis=0) / columns + eps)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    w = tl.load(weight + at, mask=inside)
    b = tl.load(bias + at, mask=inside)
    tl.store(out + row * columns + at, v * scale * w + b, mask=inside)


@triton.jit
def norm_back_kernel(dx, dy, dw_parts, db_parts, x, weight, means, scales, locks, columns,
                     PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """dx of a row; dw and db are summed up in PARTS parts, each behind a lock."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    scale = tl.load(scales + row)
    v = (tl.load(x + row * columns + at, mask=inside, other=0).to(tl.float32) - tl.load(means + row)) * scale
    v = tl.where(inside, v, 0.0)
    g = tl.load(dy + row * columns + at, mask=inside, other=0).to(tl.float32)
    wg = tl.load(weight + at, mask=inside, other=0).to(tl.float32) * g
    along = tl.sum(v * wg, axis=0) / columns
    tl.store(dx + row * columns + at, (wg - v * along - tl.sum(wg, axis=0) / columns) * scale, mask=inside)
    part = row % PARTS
    lock, used = locks + part, locks + PARTS + part
    dw_parts += part * columns + at
    db_parts += part * columns + at
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    dw, db = g * v, g
    if tl.load(used) == 0:
        tl.atomic_xchg(used, 1)
    else:
        dw += tl.load(dw_parts, mask=inside)
        db += tl.load(db_parts, mask=inside)
    tl.store(dw_parts, dw, mask=inside)
    tl.store(db_parts, db, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def sum_parts_kernel(dw_parts, db_parts, dw, db, parts, columns, M: tl.constexpr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    sums_w = tl.zeros((M, N), dtype=tl.float32)
    sums_b = tl.zeros((M, N), dtype=tl.float32)
    for first in range(0, parts, M):
        part = first + tl.arange(0, M)
        inside = (part[:, None] < parts) & (at[None, :] < columns)
        sums_w += tl.load(dw_parts + part[:, None] * columns + at[None, :], mask=inside, other=0.0)
        sums_b += tl.load(db_parts + part[:, None] * columns + at[None, :], mask=inside, other=0.0)
    tl.store(dw + at, tl.sum(sums_w, axis=0), mask=at < columns)
    tl.store(db + at, tl.sum(sums_b, axis=0), mask=at < columns)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        rows, columns = x.shape
        out = torch.empty_like(x)
        means, scales = torch.empty(rows), torch.empty(rows)
        block = triton.next_power_of_2(columns)
        norm_kernel[(rows,)](x, out, weight, bias, means, scales, columns, eps, BLOCK=block)
        ctx.save_for_backward(x, weight, means, scales)
        return out

    @staticmethod
    def backward(ctx, dy):
        x, weight, means, scales = ctx.saved_tensors
        rows, columns = x.shape
        parts = 8
        locks = torch.zeros(2 * parts, dtype=torch.int32)
        dw_parts, db_parts = torch.zeros((2, parts, columns)).unbind()
        dw, db, dx = torch.empty_like(weight), torch.empty_like(weight), torch.empty_like(dy)
        norm_back_kernel[(rows,)](dx, dy, dw_parts, db_parts, x, weight, means, scales, locks, columns,
                                  PARTS=parts, BLOCK=triton.next_power_of_2(columns))
        sum_parts_kernel[(triton.cdiv(columns, 128),)](dw_parts, db_parts, dw, db, parts, columns,
                                                       M=8, N=128)
        return dx, dw, db, None


@triton.jit
def attention_kernel(q_map, k_map, v_map, out_map, lengths, scale, tokens, M: tl.constexpr,
                     N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    """One block of queries of one head. The maps are of [heads * tokens, D]."""
    first = tl.program_id(0) * M
    head = tl.program_id(1) * tokens
    q = q_map.load([head + first, 0])
    rows = first + tl.arange(0, M)
    highest = tl.full((M,), -float("inf"), tl.float32)
    weight = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    end = first + M if CAUSAL else tokens
    for start in range(0, end, N):
        s = tl.dot(q, k_map.load([head + start, 0]).T) * (scale * 1.4426950408889634)
        if CAUSAL:
            s = tl.where(rows[:, None] >= start + tl.arange(0, N)[None, :], s, -1e6)
        above = tl.maximum(highest, tl.max(s, axis=1))
        p = tl.exp2(s - above[:, None])
        fade = tl.exp2(highest - above)
        weight = weight * fade + tl.sum(p, axis=1)
        total = tl.dot(p.to(q.dtype), v_map.load([head + start, 0]), total * fade[:, None])
        highest = above
    out_map.store([head + first, 0], (total / weight[:, None]).to(q.dtype))
    tl.store(lengths + head + rows, highest + tl.log2(weight))


def attention(q, k, v, causal):
    heads, tokens, width = q.shape
    out = torch.empty_like(q)
    logs = torch.empty((heads, tokens), dtype=torch.float32)
    block = 64
    maps = [TensorDescriptor.from_tensor(t.view(-1, width), [block, width]) for t in (q, k, v, out)]
    attention_kernel[(tokens // block, heads)](*maps, logs, width**-0.5, tokens, M=block, N=block,
                                               D=width, CAUSAL=causal)
    return out, logs


@triton.jit
def rows_of(first, B: tl.constexpr, D: tl.constexpr):
    return (first + tl.arange(0, B))[:, None] * D + tl.arange(0, D)[None, :]


@triton.jit
def weights_back(q, k, v, dy, log, delta, scale, rows, columns, CAUSAL: tl.constexpr):
    """The weights of a tile, and their gradients before the softmax."""
    p = tl.exp2(tl.dot(q, k.T) * (scale * 1.4426950408889634) - log[:, None])
    if CAUSAL:
        p = tl.where(rows[:, None] >= columns[None, :], p, 0.0)
    return p, p * (tl.dot(dy, v.T) - delta[:, None])


@triton.jit
def attention_back_kernel(q, k, v, dy, dq, dk, dv, logs, deltas, scale, tokens, B: tl.constexpr,
                          D: tl.constexpr, CAUSAL: tl.constexpr):
    """Gradients of a block of keys and values, then of the block of queries with the same number."""
    first = tl.program_id(0) * B
    head = tl.program_id(1) * tokens
    at = tl.arange(0, B)
    mine = rows_of(head + first, B, D)
    keys, values = tl.load(k + mine), tl.load(v + mine)
    sum_k = tl.zeros((B, D), tl.float32)
    sum_v = tl.zeros((B, D), tl.float32)
    for row in range(first if CAUSAL else 0, tokens, B):
        there = rows_of(head + row, B, D)
        query, grad = tl.load(q + there), tl.load(dy + there)
        p, ds = weights_back(query, keys, values, grad, tl.load(logs + head + row + at),
                             tl.load(deltas + head + row + at), scale, row + at, first + at, CAUSAL)
        sum_v = tl.dot(p.to(query.dtype).T, grad, sum_v)
        sum_k = tl.dot(ds.to(query.dtype).T, query, sum_k)
    tl.store(dk + mine, (sum_k * scale).to(keys.dtype))
    tl.store(dv + mine, sum_v.to(keys.dtype))
    query, grad = tl.load(q + mine), tl.load(dy + mine)
    log, delta = tl.load(logs + head + first + at), tl.load(deltas + head + first + at)
    sum_q = tl.zeros((B, D), tl.float32)
    for column in range(0, first + B if CAUSAL else tokens, B):
        there = rows_of(head + column, B, D)
        keys = tl.load(k + there)
        _, ds = weights_back(query, keys, tl.load(v + there), grad, log, delta, scale, first + at,
                             column + at, CAUSAL)
        sum_q = tl.dot(ds.to(keys.dtype), keys, sum_q)
    tl.store(dq + mine, (sum_q * scale).to(query.dtype))


def attention_back(q, k, v, out, logs, dy, causal):
    heads, tokens, width = q.shape
    gradients = [torch.empty_like(t) for t in (q, k, v)]
    deltas = (out.float() * dy.float()).sum(2)
    attention_back_kernel[(tokens // 32, heads)](q, k, v, dy, *gradients, logs, deltas, width**-0.5, tokens,
                                                 B=32, D=width, CAUSAL=causal)
    return gradients


@triton.jit
def asin_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, libdevice.asin(tl.load(x + at, mask=at < n)), mask=at < n)


def asin(x):
    out = torch.empty_like(x)
    asin_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
    return out


@triton.jit
def group_kernel(a_table, b_table, c_table, sizes, count, BLOCKS: tl.constexpr, T: tl.constexpr):
    """Products of several sizes, whose addresses are in tables. Blocks take tiles in turn."""
    tile, first = tl.program_id(0), 0
    for g in range(count):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        tiles_n = tl.cdiv(n, T)
        end = first + tl.cdiv(m, T) * tiles_n
        while tile >= first and tile < end:
            a = tl.load(a_table + g).to(tl.pointer_type(tl.float16))
            b = tl.load(b_table + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_table + g).to(tl.pointer_type(tl.float16))
            rows = (tile - first) // tiles_n * T + tl.arange(0, T)
            columns = (tile - first) % tiles_n * T + tl.arange(0, T)
            inner = tl.arange(0, T)
            total = tl.zeros((T, T), dtype=tl.float32)
            for step in range(0, k, T):
                total = tl.dot(tl.load(a + rows[:, None] * k + (step + inner)[None, :]),
                               tl.load(b + (step + inner)[:, None] * n + columns[None, :]), total)
            tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16))
            tile += BLOCKS
        first = end


def group_matmul(pairs):
    products = [torch.empty((a.shape[0], b.shape[1]), dtype=torch.float16) for a, b in pairs]
    tables = [torch.tensor([t.data_ptr() for t in ts]) for ts in (*zip(*pairs), products)]
    sizes = torch.tensor([(*c.shape, a.shape[1]) for (a, _), c in zip(pairs, products)], dtype=torch.int32)
    group_kernel[(3,)](*tables, sizes, len(pairs), BLOCKS=3, T=32)
    return products


@triton.jit
def persistent_kernel(a_map, b_map, c_map, m, n, k, BLOCKS: tl.constexpr, M: tl.constexpr,
                      N: tl.constexpr, K: tl.constexpr, SPECIALIZE: tl.constexpr):
    tiles_n = tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M) * tiles_n, BLOCKS, flatten=True,
                         warp_specialize=SPECIALIZE):
        row, column = tile // tiles_n * M, tile % tiles_n * N
        total = tl.zeros((M, N), dtype=tl.float32)
        for step in range(tl.cdiv(k, K)):
            total = tl.dot(a_map.load([row, step * K]), b_map.load([column, step * K]).T, total)
        c_map.store([row, column], total.to(tl.float16))


def persistent_matmul(a, b, specialize=False):
    """b is transposed."""
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty((m, n), dtype=torch.float16)
    blocks = min(4, torch.cuda.get_device_properties("cuda").multi_processor_count)
    M, N, K = 128, 64, 64
    maps = [TensorDescriptor.from_tensor(t, box) for t, box in ((a, [M, K]), (b, [N, K]), (c, [M, N]))]
    persistent_kernel[(blocks,)](*maps, m, n, k, BLOCKS=blocks, M=M, N=N, K=K, SPECIALIZE=specialize)
    return c


@triton.jit
def device_map_kernel(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    """A transposition with descriptors that the kernel makes."""
    rows, columns = tl.program_id(0) * M, tl.program_id(1) * N
    read = tl.make_tensor_descriptor(x, [m, n], [n, 1], [M, N])
    write = tl.make_tensor_descriptor(out, [n, m], [m, 1], [N, M])
    write.store([columns, rows], read.load([rows, columns]).T)


def transpose(x):
    out = torch.empty(x.shape[::-1], dtype=x.dtype)
    grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 32))
    device_map_kernel[grid](x, out, *x.shape, M=32, N=32)
    return out


@triton.jit
def pair_kernel(pair, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(pair[0] + at) * pair[1])


@triton.jit
def small_matmul_kernel(a, b, c, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    place = at[:, None] * SIZE + at[None, :]
    tl.store(c + place, tl.dot(tl.load(a + place), tl.load(b + place)))


@gluon.jit
def gluon_copy_kernel(x, out, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(out + at, gl.load(x + at, mask=at < n), mask=at < n)


@gluon.jit
def gluon_matmul_kernel(a_map, b_map, c_map, inner, K: gl.constexpr):
    """One tile by one warp group, with one copy of a and b in flight."""
    a = gl.allocate_shared_memory(a_map.dtype, a_map.block_type.shape, a_map.layout)
    b = gl.allocate_shared_memory(b_map.dtype, b_map.block_type.shape, b_map.layout)
    c = gl.allocate_shared_memory(c_map.dtype, c_map.block_type.shape, c_map.layout)
    arrived = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(arrived, count=1)
    M: gl.constexpr = c_map.block_type.shape[0]
    N: gl.constexpr = c_map.block_type.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    total = gl.zeros((M, N), gl.float32, layout)
    phase = 0
    for at in range(0, inner, K):
        mbarrier.expect(arrived, a_map.block_type.nbytes + b_map.block_type.nbytes)
        tma.async_load(a_map, [0, at], arrived, a)
        tma.async_load(b_map, [at, 0], arrived, b)
        mbarrier.wait(arrived, phase)
        phase ^= 1
        total = warpgroup_mma(a, b, total, is_async=False)
    mbarrier.invalidate(arrived)
    c.store(total.to(c_map.dtype))
    fence_async_shared()
    tma.async_store(c_map, [0, 0], c)
    tma.store_wait(0)


def gluon_matmul(a, b):
    c = torch.empty((64, 64), dtype=torch.float16)
    layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    maps = [GluonDescriptor.from_tensor(t, [64, 64], layout) for t in (a, b, c)]
    gluon_matmul_kernel[(1,)](*maps, a.shape[1], K=64)
    return c


@triton.jit
def asserting_kernel(x, out, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.device_assert(v < 3, "too large")
    tl.store(out + tl.arange(0, BLOCK), v)


@triton.jit
def printing_kernel(x, BLOCK: tl.constexpr):
    tl.device_print("x", tl.load(x + tl.arange(0, BLOCK)))


@triton.jit
def racing_kernel(x, out, BLOCK: tl.constexpr):
    """All blocks write to one place."""
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + at)
    tl.store(out, tl.sum(v, axis=0))


@triton.jit
def beyond_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, v, mask=at < n)
