"""Single ops of PyTorch, exported in modules of many outputs, against eager: edge values, broadcasts."""

import math
import tempfile
import unittest

import braid
import numpy as np
import torch
import torch.nn.functional as F
from checks import Checked, Many

torch.set_num_threads(1)

EDGES = [
    0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3, -7, 1e-8, -1e-8, 1e-4, -1e-4, 0.9999, -0.9999,
    1.2e-38, 20.7, -20.7, 80, -80, 89.1, -89.1, -104, 8388607.5, -1e9, 1e30, -1e30,
    math.inf, -math.inf, math.nan,
]  # fmt: skip
ELEMENTS = {
    "ceil": torch.ceil, "trunc": torch.trunc, "frac": torch.frac, "log2": torch.log2,
    "log10": torch.log10, "exp2": torch.exp2, "expm1": torch.expm1, "log1p": torch.log1p,
    "cosh": torch.cosh, "sinh": torch.sinh, "tan": lambda x: torch.tan(x.clamp(-1.5, 1.5)),
    "elu": F.elu, "celu": lambda x: F.celu(x, 0.5), "selu": F.selu, "leaky_relu": F.leaky_relu,
    "hardtanh": F.hardtanh, "relu6": F.relu6, "hardswish": F.hardswish, "mish": F.mish,
    "hardsigmoid": F.hardsigmoid, "softsign": F.softsign, "logsigmoid": F.logsigmoid,
    "threshold": lambda x: F.threshold(x, 0.1, 7.0), "softshrink": F.softshrink,
    "remainder": lambda x: x % 2.0, "remainder_of_minus": lambda x: x % -4.0,
    "fmod": lambda x: torch.fmod(x, 2.0), "fmod_of_minus": lambda x: torch.fmod(x, -1.0),
    "plus_zero": lambda x: 1 / (x + 0), "minus_zero": lambda x: 1 / (x - 0),
    "reciprocal": torch.reciprocal, "nan_to_num": torch.nan_to_num,
    "fill": lambda x: x.clone().fill_(2.5) + 0 * x.nan_to_num(0, 0, 0),
    "where": lambda x: torch.where(x > 0, x, 1.0), "lerp": lambda x: torch.lerp(x, x * 0.5, 0.25),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5),
    "addcdiv": lambda x: torch.addcdiv(x, x, x * x + 1, value=2),
    "xlogy": lambda x: torch.xlogy(x, x), "rsub": lambda x: torch.rsub(x, 2.0, alpha=3),
}  # fmt: skip


def _with_diagonal(x):
    result = x.clone()
    result[1].diagonal().copy_(x[0, 0])
    return result


class Ops(Checked):
    def test_elements(self):
        functions = {name: lambda x, of=of: of(x) for name, of in ELEMENTS.items()}
        self.check(functions, x=torch.tensor(EDGES))

    def test_tensors_without_dims_have_no_say_in_dtypes(self):
        third, least = torch.tensor(1 / 3), torch.tensor(-0.01)
        self.check(
            {
                "minimum": lambda x: torch.minimum(x, least),
                "sum": lambda x: (third + x[:1]) * x,
                "where": lambda x: torch.where(x > least, x * third, x - third),
                "wide": lambda x: x.float() * third + x,
            },
            limit=2e-3,
            x=torch.linspace(-3, 3, 40, dtype=torch.float16),
        )

    def test_a_number_in_bf16_is_an_array(self):
        self.check({"sum": lambda x: x.sum(), "row": lambda x: x * 2}, x=torch.ones(3).bfloat16())

    def test_narrow_integers_stay_narrow(self):
        self.check(
            {
                "plus_one": lambda x, n: x + n,
                "of_equal_elements": lambda x, n: x + torch.full((2,), 1),
                "sum": lambda x, n: x.sum(dtype=torch.int32),
                "prod": lambda x, n: x.prod(0, dtype=torch.int32),
                "cumsum": lambda x, n: x.cumsum(0, dtype=torch.int32),
                "without_a_common_one": lambda x, n: torch.full((2,), 200, dtype=torch.uint8) > x.to(torch.int8),
            },
            x=torch.tensor([2**31 - 1, 5], dtype=torch.int32),
            n=torch.tensor(1),
        )

    def test_multiples_of_narrower_tensors(self):
        self.check(
            {
                "of_8_bits": lambda x, h, u, m: torch.add(x, u, alpha=2),
                "of_signed_ones": lambda x, h, u, m: torch.sub(u.long(), u.to(torch.int8), alpha=3),
                "of_f16": lambda x, h, u, m: torch.add(x, h, alpha=2000),
                "less": lambda x, h, u, m: torch.rsub(u, x, alpha=3),
                "of_bools": lambda x, h, u, m: torch.add(u.to(torch.int8), m, alpha=2),
            },
            x=torch.tensor([0.5, -0.5]),
            h=torch.tensor([60.0, 1.0]).half(),
            u=torch.tensor([200, 100], dtype=torch.uint8),
            m=torch.tensor([True, False]),
        )

    def test_numbers_that_integers_do_not_hold(self):
        self.check(
            {
                "above_less": lambda u, s, n, m: u > -1,
                "below_more": lambda u, s, n, m: s < 1000,
                "wide": lambda u, s, n, m: n == 2**40,
                "same_bits": lambda u, s, n, m: n == 2**32 + 1,
                "next": lambda u, s, n, m: n + 2**31,
                "filled": lambda u, s, n, m: u.masked_fill(m, -1),
                "chosen": lambda u, s, n, m: torch.where(m, u, -1),
                "rest": lambda u, s, n, m: u % -3,
                "quotient": lambda u, s, n, m: s // 1000,
                "ratio": lambda u, s, n, m: u / -1000,
                "less": lambda u, s, n, m: 300 - u,
                "multiple": lambda u, s, n, m: torch.sub(u, u, alpha=-1),
                "like": lambda u, s, n, m: torch.full_like(u, -1) + u,
                "cut": lambda u, s, n, m: u.clamp(-1, 20) + u.clamp(3, 1000),
                "cut_of_signed": lambda u, s, n, m: s.clamp(-1000, 50),
                "scattered": lambda u, s, n, m: u.scatter(0, n[:1].long() - 1, -1),
                "put": lambda u, s, n, m: u.index_fill(0, n[:1].long(), -1),
                "bools": lambda u, s, n, m: (m > -1) == (m < 1000),
                "of_both_signs": lambda u, s, n, m: (u == s) | (u < s),
            },
            u=torch.tensor([1, 200], dtype=torch.uint8),
            s=torch.tensor([1, -56], dtype=torch.int8),
            n=torch.tensor([1, -5], dtype=torch.int32),
            m=torch.tensor([False, True]),
        )

    def test_narrow_floats_with_wide_weights(self):
        self.check(
            {
                "batch_norm": lambda x, of: F.batch_norm(x, *of),
                "group_norm": lambda x, of: F.group_norm(x, 2, *of[1:3]),
                "of_equal_elements": lambda x, of: x[0, :, 0] * torch.full((4,), 1 / 3),
            },
            limit=1e-3,
            x=torch.randn(2, 4, 3).half(),
            of=torch.rand(4, 4) + 0.5,
        )

    def test_elements_of_integers(self):
        self.check(
            {
                "ceil": lambda x: torch.ceil(x),
                "trunc": lambda x: torch.trunc(x),
                "remainder": lambda x: x % 3,
                "fmod": lambda x: torch.fmod(x, -3),
                "log2": lambda x: torch.log2(x.abs() + 1),
                "expm1": lambda x: torch.expm1(x),
                "fill": lambda x: torch.fill(x, 4) + x,
            },
            x=torch.tensor([0, 1, -1, 5, -7, 20]),
        )

    def test_rows(self):
        x = torch.randn(4, 6, 8)
        x[0, 1, 2] = x[1, 2, 5] = math.nan
        x[2, 3, 4] = math.inf
        x[3, 0, 0] = x[3, 0, 7]
        self.check(
            {
                "argmax": lambda x: x.argmax(-1),
                "argmax_of_all": lambda x: x.argmax(),
                "argmin_keepdim": lambda x: x.argmin(1, keepdim=True),
                "max_values": lambda x: x.max(1).values,
                "max_indices": lambda x: x.max(1).indices,
                "min_of_all": lambda x: x.min(),
                "min_keepdim": lambda x: x.min(2, keepdim=True).values,
                "maximum": lambda x: torch.max(x, x[:, :1]),
                "safe_softmax": lambda x: torch.ops.aten._safe_softmax(
                    x.masked_fill(x[..., :1] > 0, -math.inf), -1
                ),
                "log_softmax": lambda x: x.log_softmax(-1),
                "log_softmax_of_columns": lambda x: x.log_softmax(1),
                "logsumexp": lambda x: x.logsumexp(-1),
                "var": lambda x: x.var(-1),
                "var_of_two": lambda x: x.var((0, 2), correction=0, keepdim=True),
                "std": lambda x: x.std(1),
                "norm": lambda x: x.norm(dim=-1),
                "normalize": lambda x: F.normalize(x, dim=-1),
                "layer_norm": lambda x: F.layer_norm(x, (8,)),
                "glu": lambda x: F.glu(x),
                "clamp": lambda x: x.clamp(x[:, :1], x[:, :, 1:2]),
                "clamp_below": lambda x: x.clamp(min=x.amax(-1, keepdim=True)),
                "group_norm": lambda x: F.group_norm(x, 3, x[0, :, 1].nan_to_num(), x[1, :, 2]),
                "batch_norm": lambda x: F.batch_norm(
                    x, x[0, :, 0].nan_to_num(), x[1, :, 0].abs(), x[0, :, 3], x[1, :, 4]
                ),
                "batch_norm_without_weight": lambda x: F.batch_norm(x, x[0, :, 1], x[0, :, 2].abs() + 1),
                "cumsum": lambda x: x.cumsum(1),
            },
            limit=1e-5,
            absolute=1e-6,  # where a mean is taken off, what is left may be small
            x=x,
        )

    def test_weights_that_are_views(self):
        self.check(
            {
                "linear": lambda x, w, i: F.linear(x, w.t()),
                "linear_of_a_copy": lambda x, w, i: F.linear(w, w.t().contiguous(), w.t()),
                "linear_of_equal_rows": lambda x, w, i: F.linear(x, w[:1].expand(4, 4)),
                "linear_of_a_vector": lambda x, w, i: F.linear(x, w[0]) + F.linear(x[0], w[:, 1]),
                "linear_of_columns": lambda x, w, i: F.linear(x[0, :, None], w[:, :1], w[1]),
                "linear_of_zeros": lambda x, w, i: F.linear(torch.zeros_like(x), w) + x,
                "embedding": lambda x, w, i: F.embedding(i, w.t()),
                "layer_norm": lambda x, w, i: F.layer_norm(x, (4,), w[0, :1].expand(4), w[1]),
                "layer_norm_without_weight": lambda x, w, i: F.layer_norm(x, (4,), None, w[0]),
                "layer_norm_of_equal_elements": lambda x, w, i: F.layer_norm(
                    x[:, :1].expand(2, 4), (4,), w[0], w[1]
                ),
                "rms_norm": lambda x, w, i: F.rms_norm(x * 1e-3, (4,)),
                "norms_of_narrower": lambda x, w, i: torch.cat([
                    F.layer_norm(x.bfloat16(), (4,), w[0], w[1]),
                    F.rms_norm(x.bfloat16(), (4,), w[0]),
                ]).float(),
                "rms_norm_in_f16": lambda x, w, i: F.rms_norm(x.half() * 1e-3, (4,)),
            },
            limit=1e-5,
            absolute=1e-6,
            x=torch.randn(2, 4),
            w=torch.randn(4, 4),
            i=torch.tensor([1, 2]),
        )

    def test_equal_numbers_of_other_kinds(self):
        self.check(
            {
                "narrow": lambda x, n: n * 4 + 1,
                "wide": lambda x, n: (n * 4.0) * 0.5,
                "below": lambda x, n: (x * 0.0, (x * -0.0).reciprocal())[1],
                "above": lambda x, n: (x * 0.0).reciprocal(),
            },
            limit=1e-6, absolute=0, x=torch.rand(3) + 1, n=torch.tensor([2**30, 5], dtype=torch.int32),
        )  # fmt: skip

    def test_what_only_looks_like_a_norm_or_a_rotation(self):
        def scale(x, **given):
            return torch.rsqrt(x.pow(2).mean(-1, **given) + 1e-6)

        def rotated(x, c, s):
            a, b = x[..., :8].split(4, -1)
            return torch.cat([a * c - b * s, b * c + a * s], -1)

        def first_of_three(x, c, s):
            a, b, _ = x.split(4, -1)
            return torch.cat([a * c - b * s, b * c + a * s], -1)

        self.check(
            {
                "along_rows": lambda x, y: y[0] * scale(y[0]),
                "of_other_rows": lambda x, y: y.transpose(0, 1) * scale(y)[:, None],
                "turned": lambda x, y: y * scale(y, keepdim=True).transpose(1, 2),
                "norm": lambda x, y: y * scale(y, keepdim=True),
                "of_three": lambda x, y: first_of_three(x, y[0, :2], y[1, :2]),
                "by_columns": lambda x, y: rotated(x, y[0, :2, :1], y[1, :2, :1]),
                "by_numbers": lambda x, y: x[:, :8] * y[0, 0, 0]
                + torch.cat([-x[:, 4:8], x[:, :4]], -1) * y[0, 0, 1],
            },
            limit=1e-5, absolute=1e-6, x=torch.randn(2, 12), y=torch.randn(4, 4, 4),
        )  # fmt: skip

    def test_lists_and_bools(self):
        self.check(
            {
                "rows": lambda x, n: x[[3, 1, 1, 0]],
                "columns": lambda x, n: x[:, [-1, 0]],
                "numbers": lambda x, n: x * torch.tensor([1.5, -2.0, -2.0, 0.0]),
                "signed": lambda x, n: (torch.tensor([0.0, -0.0, 1.0, 2.0]) * x.abs()).reciprocal(),
                "both": lambda x, n: (x > 0) * (x < 1),
                "any": lambda x, n: (x > 0) + (x < -1),
                "ordered": lambda x, n: (x > 0) < (x < 1),
                "higher": lambda x, n: torch.maximum(x > 0, x < -1),
                "powers": lambda x, n: n**2 + (n * 2) ** 3 + n**0,
                "whole": lambda x, n: n.floor() + n.round(),
                "most": lambda x, n: torch.fmax(x.log(), x),
                "least": lambda x, n: torch.fmin(x, x.log()[:1]),
                "cut": lambda x, n: F.pad(x, (-1, 2, 1, -1)),
                "rows_of_two_dims": lambda x, n: F.layer_norm(x.view(2, 2, 4), (2, 4), x[:2], x[2:]),
            },
            limit=1e-5, absolute=1e-6,
            x=torch.randn(4, 4), n=torch.tensor([3, -4, 5], dtype=torch.int32),
        )  # fmt: skip
        for text, function in (
            ("where whose results", lambda x: torch.where(x > 0)[0].sum()),
            ("index with a mask", lambda x: x[x[:, 0] > 0]),
            ("which is data", lambda x: x[:, : x.argmax().item()]),
            ("the output result has no elements", lambda x: x[:, 4:]),
            ("addmm of i64", lambda x: torch.addmm(x.long(), x.long(), x.long())),
        ):
            with self.assertRaisesRegex(braid.CannotExport, text):
                self.check({"result": function}, x=torch.randn(4, 4))

    def test_bools_in_order(self):
        self.check(
            {
                "amax": lambda m: m.amax(0),
                "least": lambda m: m.min(-1).values,
                "first": lambda m: m.max(-1).indices,
                "first_of_none": lambda m: m.min(1, keepdim=True).indices,
                "of_all": lambda m: m.max(),
                "prod": lambda m: m.prod(0),
                "sorted": lambda m: m.sort(-1).values,
                "places": lambda m: m.sort(dim=-1, descending=True, stable=True).indices,
                "topk": lambda m: m.long().topk(1).values,
                "square": lambda m: m.square(),
                "sign": lambda m: m.sign(),
                "most": lambda m: torch.fmax(m, ~m[:1]),
                "so_far": lambda m: m.cummax(1).values,
                "places_so_far": lambda m: m.cummin(0).indices,
            },
            m=torch.tensor([[0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]]).bool(),
        )

    def test_scans_and_medians(self):
        x = torch.randn(3, 4, 5)
        x[0, 1, 2] = x[1, 2, 0] = x[1, 2, 3] = math.nan
        x[2] = x[2].round()
        functions = {
            "cummax": lambda x, n: x.cummax(1)[0],
            "cummax_places": lambda x, n: x.cummax(-1)[1],
            "cummin": lambda x, n: x.cummin(0)[0],
            "cummin_places": lambda x, n: x.cummin(2)[1],
            "of_integers": lambda x, n: n.cummax(0)[0] + n.cummin(0)[1],
            "cumprod": lambda x, n: x.cumprod(1),
            "cumprod_of_integers": lambda x, n: n.cumprod(0),
            "logcumsumexp": lambda x, n: x.logcumsumexp(1),
            "median": lambda x, n: x.median(1)[0],
            "median_of_an_even_number": lambda x, n: x[..., :4].median(-1, keepdim=True)[0],
            "place_of_a_median": lambda x, n: x[:2, 2].median(-1)[1],
            "median_of_all": lambda x, n: x[2].median() + n.median(),
            "nanmedian": lambda x, n: x.nanmedian(-1)[0],
            "place_of_a_nanmedian": lambda x, n: x[:2].nanmedian(-1)[1],
            "nanmedian_of_all": lambda x, n: x.nanmedian(),
        }
        runs = [{"x": x, "n": torch.tensor([3, 1, 3, -7, 1])}]
        runs.append({"x": torch.randn(3, 4, 2).repeat(1, 1, 2), "n": torch.tensor([-1])})
        runs[1]["x"][1, 1, 1] = math.nan
        self.check(functions, limit=1e-5, absolute=1e-6, **runs[0])
        at = {name: functions[name] for name in ("cummax", "cumprod", "median", "nanmedian")}
        lengths = {"x": {2: torch.export.Dim("L", max=9)}, "n": {0: torch.export.Dim("N", max=9)}}
        self.check_runs({**at, "twice": lambda x, n: n * 2}, runs, lengths, 1e-5, 1e-6)
        narrow = {"cumprod": lambda x: x.cumprod(0), "logcumsumexp": lambda x: x.logcumsumexp(0)}
        self.check(narrow, limit=8e-3, x=torch.rand(9).bfloat16() + 0.5)

    def test_quantiles(self):
        x = torch.randn(3, 4, 5)
        x[0, 1, 2] = math.nan
        x[1, 1, 1] = math.inf
        kinds = ("linear", "lower", "higher", "nearest", "midpoint")
        functions = {
            kind: lambda x, kind=kind: x.quantile(0.7, -1, interpolation=kind) for kind in kinds
        }
        functions["of_columns"] = lambda x: torch.quantile(x, 0.995, dim=1, keepdim=True)
        functions["of_all"] = lambda x: torch.quantile(x[2], 0.25, keepdim=True) + x[2].quantile(1)
        functions["half"] = lambda x: x[2].quantile(0.5, 0, interpolation="nearest")
        self.check(functions, x=x)
        with self.assertRaisesRegex(braid.CannotExport, "quantile of a tensor of fractions"):
            self.check({"y": lambda x: x.quantile(x[0, 0, :2].abs())}, x=torch.rand(1, 1, 3))

    def test_quotients_that_are_rounded(self):
        x = torch.tensor(EDGES)
        self.check(
            {
                "down": lambda x: torch.div(x, 2, rounding_mode="floor"),
                "whole": lambda x: x // -0.25,
                "to_zero": lambda x: torch.div(x, x.flip(0), rounding_mode="trunc"),
                "to_zero_by_a_number": lambda x: torch.div(x, 3.7, rounding_mode="trunc"),
                "of_a_number": lambda x: torch.div(7, x, rounding_mode="trunc"),
                "narrow": lambda x: torch.div(x.bfloat16(), 0.3, rounding_mode="trunc"),
                "beside_a_narrow_tensor": lambda x: torch.div(
                    (0 * x.nan_to_num(0, 0, 0) + 35.5).bfloat16(),
                    (0 * x.nan_to_num(0, 0, 0) + 1.9765625).bfloat16(),
                    rounding_mode="trunc",
                ),
                "by_its_number": lambda x: torch.div(
                    (0 * x.nan_to_num(0, 0, 0) + 35.5).bfloat16(), 1.9765625, rounding_mode="trunc"
                ),
                "beside_integers": lambda x: torch.div(torch.arange(33), x, rounding_mode="trunc"),
                "of_integers": lambda x: torch.arange(32) // 4.0,
            },
            limit=0, x=x,
        )  # fmt: skip
        with self.assertRaisesRegex(braid.CannotExport, "rounds down, by what is no power of two"):
            self.check({"result": lambda x: x // 0.3}, x=x)

    def test_sums_of_products_and_diagonals(self):
        self.check(
            {
                "addbmm": lambda x: torch.addbmm(x[0], x, x.mT, beta=0.5, alpha=2),
                "addbmm_of_a_row": lambda x: torch.addbmm(x[0, 0], x, x),
                "diagonal": lambda x: torch.diagonal_scatter(x[0], x[1, 0]),
                "above": lambda x: torch.diagonal_scatter(x, x[1, :3, :3], 1, 1, 2),
                "below": lambda x: torch.diagonal_scatter(x[:, :, :2], x[1, :2, :2], -1, 0, 1),
                "filled": lambda x: x[0].clone().fill_diagonal_(7.0),
                "in_place": lambda x: _with_diagonal(x),
                "ldexp": lambda x: torch.ldexp(x, torch.tensor([1, -2, 0, 3])),
                "rrelu": lambda x: F.rrelu(x),
                "bincount": lambda x: torch.bincount((x * 8).long().abs().flatten(), minlength=64),
                "experts": lambda x: (x[0] * 2).long().abs().clamp(max=3).flatten().bincount(minlength=4),
            },
            limit=1e-5, absolute=1e-5, x=torch.randn(3, 4, 4),
        )  # fmt: skip
        with self.assertRaisesRegex(braid.CannotExport, "bincount with weights or without minlength"):
            self.check({"result": lambda i: i.bincount()}, i=torch.tensor([1, 2]))

    def test_attention_whose_batches_broadcast(self):
        attention = F.scaled_dot_product_attention
        runs = [
            {"q": torch.randn(b, 4, t, 8), "k": torch.randn(b, 1, t, 8), "v": torch.randn(b, 1, t, 6)}
            for b, t in ((2, 5), (1, 1), (3, 9))
        ]
        b, t = torch.export.Dim("B", max=3), torch.export.Dim("T", max=9)
        self.check_runs(
            {
                "one_head": lambda q, k, v: attention(q, k, v, is_causal=True),
                "with_a_mask": lambda q, k, v: attention(q, k, v, attn_mask=(q[..., :1] > 0) | (k[..., 0] < 9)[:, :, None]),
                "one_head_of_values": lambda q, k, v: attention(q, q.flip(1), v),
                "one_batch": lambda q, k, v: attention(q, k[0], v[:1]),
                "one_query": lambda q, k, v: attention(q[:1, :1, :1], k, v),
                "of_matrices": lambda q, k, v: attention(q[0, 0], k[0, 0], v[0, 0]),
                "scaled_by_nothing": lambda q, k, v: attention(q, k, v, scale=0.0),
                "scaled_below": lambda q, k, v: attention(q, k, v, is_causal=True, scale=-0.3),
            },
            runs, {name: {0: b, 2: t} for name in "qkv"}, 1e-5, 1e-6,
        )  # fmt: skip

    def test_attention_behind_the_least_number(self):
        def hidden(q):
            rows = torch.arange(140)
            mask = ((rows < 130) | (rows[:, None] < 2)) * torch.finfo(q.dtype).min
            return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

        self.check({"hidden": hidden}, 1e-5, 1e-6, q=torch.randn(1, 2, 140, 16))

    def test_values_that_a_mask_puts(self):
        def put(x, at, values):
            x = x.clone()
            x[at] = values
            return x

        count = torch.tensor([[True, False, True], [False, False, True]])
        self.check(
            {
                "row": lambda x, m, y: put(x, m, x[0, 0]),
                "row_of_rows": lambda x, m, y: put(x, m, x[0, :1]),
                "number": lambda x, m, y: put(x, m, 2.5),
                "element": lambda x, m, y: put(x, x > 0, y[0, 0]),
                "each": lambda x, m, y: put(x, m, y),
                "each_with_one_element": lambda x, m, y: put(x, m, y[:, :1]),
                "each_element": lambda x, m, y: put(x[..., 0], m, y[:, 1]),
                "of_the_first_dim": lambda x, m, y: put(x, m[:, 0], y[None]),
                "place": lambda x, m, y: put(x, (0, 1), y[0]),
                "dim": lambda x, m, y: put(x, (slice(None), m[0]), 1.5),
            },
            x=torch.randn(2, 3, 4), m=count, y=torch.randn(3, 4),
        )  # fmt: skip

    def test_strides(self):
        x = torch.randn(3, 4, 6)
        self.check(
            {
                "windows": lambda x: x.as_strided((3, 4, 3, 4), (24, 4, 4, 1)),
                "from_a_place": lambda x: x.as_strided((4, 2), (3, 30), 7) * 2,
                "turned": lambda x: x.as_strided((6, 4), (1, 6)) + 1,
                "one": lambda x: x.as_strided((3, 4, 6), (24, 6, 1)),
                "pool": lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 1),
            },
            limit=1e-5, absolute=1e-6, x=x,
        )  # fmt: skip
        runs = [{"x": torch.randn(n, 4, 6)} for n in (3, 1)]
        pool = {"pool": lambda x: F.adaptive_avg_pool1d(x.mT, 1)}
        self.check_runs(pool, runs, {"x": {0: torch.export.Dim("B", max=5)}}, 1e-5, 1e-6)
        with self.assertRaisesRegex(braid.CannotExport, "as_strided of a part of what is in memory"):
            self.check({"y": lambda x: x[1:].as_strided((2,), (1,))}, x=x)

    def test_products_of_integers(self):
        self.check(
            {
                "mm": lambda a, b: a @ b,
                "bmm": lambda a, b: torch.stack([a, -a]) @ torch.stack([b, b + 1]),
                "batches": lambda a, b: a.expand(2, 1, 3, 4) @ torch.stack([b, b + 1]),
                "of_a_vector": lambda a, b: a @ b[:, 0] + a[0] @ b[:, 1],
                "narrow": lambda a, b: a.int() @ (b.int() * 2**30),
                "of_8_bits": lambda a, b: a.to(torch.int8) @ b.to(torch.int8),
                "linear": lambda a, b: F.linear(a, b.T, b[0]),
                "linear_of_rows": lambda a, b: F.linear(a[None].int(), b.T.int()),
                "linear_of_a_vector": lambda a, b: F.linear(a[0], b.T, b[1]) + F.linear(a[1], b[:, 0]),
            },
            a=torch.randint(-(2**40), 2**40, (3, 4)), b=torch.randint(-99, 99, (4, 5)),
        )  # fmt: skip

    def test_dims_of_a_number(self):
        self.check(
            {
                "sum": lambda x: x.sum(0), "max": lambda x: x.max(0)[1], "amax": lambda x: x.amax(-1),
                "var": lambda x: x.var(0, correction=0), "argmin": lambda x: x.argmin(0),
            },
            x=torch.tensor(2.5),
        )  # fmt: skip
        at = torch.zeros((), dtype=torch.int64)
        self.check(
            {
                "squeeze": lambda x, i: x.squeeze(0) * 2, "transpose": lambda x, i: x.transpose(0, -1) * 3,
                "flip": lambda x, i: x.flip(0) + 1, "roll": lambda x, i: x.roll(2) + 2,
                "logsumexp": lambda x, i: x.logsumexp(0), "gather": lambda x, i: x.gather(-1, i) + 3,
                "gather_thrice": lambda x, i: x.gather(0, i.expand(3)),
                "index_select": lambda x, i: x.index_select(0, i[None]) + 4,
                "unfold": lambda x, i: x.unfold(0, 1, 1),
            },
            x=torch.tensor(2.5), i=at,
        )  # fmt: skip
        self.check(
            {
                "gather": lambda x, i: x.gather(0, i), "scatter": lambda x, i: x.scatter(0, i, 5.0),
                "scatter_one": lambda x, i: x.scatter(0, i, x[2]),
                "scatter_add": lambda x, i: x.scatter_add(0, i, x[2]),
                "index_add": lambda x, i: x.index_add(0, i, x[:1]),
                "index_copy": lambda x, i: x.index_copy(0, i, x[2:]),
            },
            x=torch.tensor([0.5, 200.0, 3.0]), i=at + 1,
        )  # fmt: skip
        for function in (
            lambda x: x.softmax(0),
            lambda x: x.cumsum(0),
            lambda x: x.scatter(0, x.long() * 0, 2.0),
            lambda x: x.index_add(0, x.long() * 0, x),
            lambda x: x.index_copy(0, x.long() * 0, x),
            lambda x: x.index_fill(0, x.long() * 0, 2.0),
        ):
            with self.assertRaisesRegex(braid.CannotExport, "of a tensor without dims"):
                self.check({"result": function}, x=torch.tensor(2.5))

    def test_shapes(self):
        self.check(
            {
                "flip": lambda x: x.flip(0, -1),
                "repeat": lambda x: x.repeat(2, 1, 3),
                "repeat_of_one": lambda x: x[:, None].repeat(1, 2, 1, 1),
                "repeat_with_more_dims": lambda x: x.repeat(2, 1, 1, 1),
                "tile": lambda x: x.tile(2),
                "pad": lambda x: F.pad(x, (1, 2, 0, 3), value=-1.0),
                "roll": lambda x: x.roll(1, 1),
                "tril": lambda x: x.tril(),
                "triu": lambda x: x.triu(1),
                "select_scatter": lambda x: x.select_scatter(x[0] * 2, 0, -1),
                "meshgrid": lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij")[1] * 2,
                "movedim": lambda x: x.movedim(0, -1) + 1,
                "unfold": lambda x: x.unflatten(-1, (2, -1)).flatten(0, 1) * 1.5,
                "broadcast_tensors": lambda x: torch.broadcast_tensors(x[:1], x)[0] + x,
                "itself": lambda x: x,
                "transposed": lambda x: x.transpose(0, 2),
                "one": lambda x: x[:1, :1].sum(-1, keepdim=True),
                "bits": lambda x: x.transpose(0, 1).view(torch.int32),
                "bytes": lambda x: x.view(torch.uint8),
                "repeat_interleave": lambda x: x.transpose(0, 1).repeat_interleave(2),
            },
            x=torch.randn(2, 3, 4),
        )

    def test_convolutions(self):
        self.check(
            {
                "deep": lambda x, w, b, y: F.conv1d(x, w[:3, :1], b[:3], padding=2, groups=3),
                "causal": lambda x, w, b, y: F.conv1d(x, w[:3, :1], padding=2, groups=3)[..., :9],
                "of_channels": lambda x, w, b, y: F.conv1d(x, w, b),
                "strided": lambda x, w, b, y: F.conv1d(x, w, stride=2, dilation=2, padding=1),
                "of_pictures": lambda x, w, b, y: F.conv2d(y, w[..., None].expand(-1, -1, -1, 2), b, (2, 1)),
                "of_patches": lambda x, w, b, y: F.conv2d(y, w[..., :2, None].expand(-1, -1, -1, 3), b, (2, 3)),
                "of_equal_bias": lambda x, w, b, y: F.conv1d(x, w, torch.full((5,), 0.5)),
                "of_equal_weights": lambda x, w, b, y: F.group_norm(x, 3, torch.full((3,), 0.5), b[:1].expand(3)),
                "of_runs": lambda x, w, b, y: F.conv1d(x, w, stride=3),
                "of_points": lambda x, w, b, y: F.conv2d(y, w[..., :1, None], b),
                "of_groups": lambda x, w, b, y: F.conv1d(
                    x.repeat(1, 2, 1), w[:4], b[:4], padding=1, groups=2
                ),
                "several_of_a_channel": lambda x, w, b, y: F.conv2d(
                    y, w[:3, :1, :, None].repeat(2, 1, 1, 1), groups=3
                ),
            },
            limit=1e-5,
            absolute=1e-6,
            x=torch.randn(2, 3, 9),
            w=torch.randn(5, 3, 3),
            b=torch.randn(5),
            y=torch.randn(1, 3, 7, 4),
        )

    def test_transposed_convolutions(self):
        line, plane = F.conv_transpose1d, F.conv_transpose2d
        self.check(
            {
                "line": lambda x, y, w, b: line(x, w[..., 0], b),
                "strided": lambda x, y, w, b: line(x, w[..., 0], b, stride=2, padding=1),
                "cut": lambda x, y, w, b: line(x, w[..., 0], stride=3, padding=2, output_padding=2),
                "dilated": lambda x, y, w, b: line(x, w[..., 0], stride=2, dilation=3, padding=7),
                "of_points": lambda x, y, w, b: line(x, w[..., :1, 0], stride=2, output_padding=1),
                "plane": lambda x, y, w, b: plane(y, w, b, (2, 1), (1, 0), (1, 0)),
                "of_groups": lambda x, y, w, b: plane(y, w, b.repeat(2), 2, groups=2),
                "deep": lambda x, y, w, b: plane(y, w[:, :1], stride=2, padding=1, groups=4),
                "of_patches": lambda x, y, w, b: plane(y, w, b, (3, 2)),
            },
            limit=1e-4, absolute=1e-5, x=torch.randn(2, 4, 5), y=torch.randn(1, 4, 5, 3),
            w=torch.randn(4, 3, 3, 2), b=torch.randn(3),
        )  # fmt: skip
        self.check(
            {"narrow": lambda x, w: plane(x.half(), w.half(), stride=2).float()},
            limit=1e-2, absolute=1e-2,  # PyTorch rounds what it adds up
            x=torch.randn(1, 4, 5, 3), w=torch.randn(4, 3, 3, 2),
        )  # fmt: skip
        self.check_runs(
            {"line": lambda x, w: line(x, w, stride=2, padding=1)},
            [{"x": torch.randn(1, 4, n), "w": torch.randn(4, 3, 4)} for n in (5, 1, 40)],
            {"x": {2: torch.export.Dim("T", max=40)}}, limit=1e-5, absolute=1e-5,
        )  # fmt: skip

    def test_pictures_of_other_sizes(self):
        def resized(x, *size, **given):
            return F.interpolate(x, size or None, **given)

        self.check(
            {
                "twice": lambda x: resized(x, scale_factor=2),
                "nearest": lambda x: resized(x, 7, 3),
                "nearest_of_a_scale": lambda x: resized(x, scale_factor=1.7),
                "bilinear": lambda x: resized(x, scale_factor=2, mode="bilinear"),
                "corners": lambda x: resized(x, 7, 9, mode="bilinear", align_corners=True),
                "smaller": lambda x: resized(x, 3, 2, mode="bilinear"),
                "linear": lambda x: resized(x[0], 9, mode="linear"),
                "line": lambda x: resized(x[0], scale_factor=3),
                "bicubic": lambda x: resized(x, 6, 7, mode="bicubic"),
                "narrow": lambda x: resized(x.half(), scale_factor=2).float(),
                "mean": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
                "most": lambda x: F.adaptive_max_pool2d(x[..., 1:], 2),
                "turned": lambda x: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=False),
                "turned_nearest": lambda x: F.grid_sample(
                    x, x[:, 1:, :2].permute(0, 2, 3, 1) * 2, "nearest", "border", align_corners=True
                ),
                "each_normed": lambda x: F.instance_norm(x, weight=x[0, :, 0, 0], bias=x[0, :, 0, 1]),
            },
            limit=1e-5, absolute=1e-5, x=torch.randn(2, 3, 4, 5),
        )  # fmt: skip

    def test_pools_to_a_size_along_a_symbol(self):
        pool, most = F.adaptive_avg_pool2d, F.adaptive_max_pool2d
        runs = [{"x": torch.randn(1, 3, n, 12)} for n in (8, 2, 5)]
        rows = {"x": {2: torch.export.Dim("T", max=30)}}
        functions = {
            "rows": lambda x: pool(x, (1, None)),
            "columns": lambda x: pool(x, (None, 1)),
            "all": lambda x: pool(x, 1),
            "without_a_batch": lambda x: pool(x[0], (1, 12)),
        }
        self.check_runs(functions, runs, rows, limit=1e-5, absolute=1e-6)
        for text, function in (
            (r"adaptive_avg_pool2d to 2 beside or along a symbol; [^\n]*py:\d+: [^\n]*", lambda x: pool(x, 2)),
            ("of an op of the model takes T for 8", lambda x: most(x, (1, None))),
        ):
            with self.assertRaisesRegex(braid.CannotExport, rf"^[^\n]*{text}$"):
                self.check_runs({"y": function}, runs, rows)

    def test_pools(self):
        low = float("-inf")
        self.check(
            {
                "most": lambda x: F.max_pool2d(x, 3, 2, padding=1),
                "most_apart": lambda x: F.max_pool2d(x, (2, 3), (1, 5), dilation=(3, 1), ceil_mode=True),
                "most_of_rows": lambda x: F.max_pool1d(x[0], 4),
                "most_without_a_batch": lambda x: F.max_pool2d(x[1], 3, 2, padding=1),
                "mean_without_a_batch": lambda x: F.avg_pool2d(x[1], 2, count_include_pad=False),
                "most_of_few": lambda x: F.max_pool2d(x.masked_fill(x > -2, low), 2),
                "mean": lambda x: F.avg_pool2d(x, (3, 2), padding=1),
                "mean_of_some": lambda x: F.avg_pool2d(x, 3, 1, padding=1, count_include_pad=False),
                "mean_of_rows": lambda x: F.avg_pool1d(x[0], 2),
                "divided": lambda x: F.avg_pool2d(x, 2, divisor_override=3),
                "narrow": lambda x: F.avg_pool2d(x.half(), 3, 2).float(),
                "all": lambda x: F.adaptive_avg_pool2d(x, 1),
            },
            limit=1e-5,
            absolute=1e-6,
            x=torch.randn(2, 3, 7, 8),
        )
        with self.assertRaisesRegex(braid.CannotExport, "ceil_mode"):
            self.check({"most": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True)}, x=torch.randn(1, 1, 4, 4))

    def test_complex_numbers(self):
        def rotated(x, angle):
            turn = torch.polar(angle.exp(), angle) * 0.5
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * turn[:, None, :]).flatten(2).type_as(x)

        def both(x):
            return torch.complex(x[..., 0], x[..., 1])

        self.check(
            {
                "rotated": lambda x, a: rotated(x, a),
                "product": lambda x, a: torch.view_as_real(both(x) * both(x.flip(0)).transpose(0, 1).mT),
                "sum": lambda x, a: torch.view_as_real(both(x)[:1] + both(x)),
                "difference": lambda x, a: torch.view_as_real(both(x) - both(x).conj()),
                "cat": lambda x, a: torch.view_as_real(torch.cat([both(x), both(x)[:, :1]], 1)),
                "real": lambda x, a: torch.real(both(x) * 2.0),
                "abs": lambda x, a: both(x).abs(),
                "imag": lambda x, a: torch.imag(both(x)[None].squeeze(0)),
            },
            limit=1e-5,
            absolute=1e-6,
            x=torch.randn(3, 3, 8),
            a=torch.randn(3, 4),
        )

    def test_what_has_no_elements(self):
        def written(x, end):
            x = x.clone()
            x[:, :end] = 7.0
            return x

        self.check(
            {
                "cat": lambda x: torch.cat([x[:, :0], x, x[:, 4:]], 1),
                "split": lambda x: x.split([0, 1, 3, 0], 1)[2] * 2.0,
                "split_in_one": lambda x: x.split([4, 0], 1)[0] * 2.0,
                "none_written": lambda x: written(x, 0),
                "some_written": lambda x: written(x, 2),
            },
            x=torch.randn(3, 4),
        )
        with self.assertRaisesRegex(braid.CannotExport, "sum of a tensor without elements"):
            self.check({"sum": lambda x: x[:, :0].sum(1) + x[:, 0]}, x=torch.randn(3, 4))

    def test_numbers_that_a_module_makes(self):
        self.check(
            {
                "erfinv": lambda x: x * torch.erfinv(torch.tensor(0.9) - 0.2),
                "tensor": lambda x: x + torch.tensor(3),
                "lgamma": lambda x: x * torch.lgamma(torch.full((), 4.5)),
                "arange_of_halves": lambda x: x + torch.arange(0.5, 4.5),
                "arange_in_steps": lambda x: x + torch.arange(1, 0.05, -0.3),
                "arange_in_f16": lambda x: torch.arange(0, 3.2, dtype=torch.float16),
            },
            x=torch.randn(3, 4),
        )

    def test_tensors_that_a_module_makes_of_numbers(self):
        def put(x, at):
            made = x.clone()
            made[:, at] = x[:, [1, 2]]
            return made

        self.check(
            {
                "new": lambda x: x * x.new_tensor([1, 2, 3, 4]),
                "as_tensor": lambda x: x * torch.as_tensor([1.0, 2, 2, 4]) + torch.as_tensor(0.5),
                "of_numpy": lambda x: x * torch.tensor(np.arange(4, dtype=np.float32)),
                "of_a_number": lambda x: x * torch.tensor(np.float32(2.5)),
                "of_nothing": lambda x: torch.cat([torch.tensor([]), x, x], dim=-1),
                "put": lambda x: put(x, [0, 3]),
                "put_by_array": lambda x: put(x, np.array([0, 3])),
                "taken": lambda x: x[[True, False, True]],
                "stats": lambda x: F.batch_norm(x, torch.zeros(4), torch.full((4,), 2.0)),
            },
            x=torch.randn(3, 4),
        )

    def test_equal_elements_that_are_more_than_what_they_meet(self):
        self.check(
            {
                "sum": lambda x, y: (x + torch.zeros(2, 5)).sum(),
                "sum_of_rows": lambda x, y: (torch.ones(4, 5) * y[:1]).sum(0),
                "like": lambda x, y: x * torch.ones_like(y),
                "difference": lambda x, y: x - torch.zeros(1).expand(2, 5),
                "integers": lambda x, y: x.long() + torch.zeros(2, 5, dtype=torch.int64),
                "masked": lambda x, y: torch.zeros(2, 5).masked_fill(x > 0, -1e9),
                "joined": lambda x, y: torch.cat([x + torch.zeros(2, 5), y], 1),
                "product": lambda x, y: (x + torch.zeros(2, 5)) @ y.T,
                "length": lambda x, y: (x * x.shape[0] + torch.zeros(2, 5)).sum(1),
                "least": lambda x, y: torch.fmin(x, torch.full((2, 5), 0.5)).sum(1),
                "chosen": lambda x, y: y[torch.tensor([[1], [0]]), torch.full((2, 3), 2)],
            },
            x=torch.randn(2, 1),
            y=torch.randn(2, 5),
        )

    def test_matmuls(self):
        self.check(
            {
                "vectors": lambda x, y: x[0, 0] @ y[0, :, 0],
                "vector_and_matrix": lambda x, y: x[0, 0] @ y,
                "matrix_and_vector": lambda x, y: x @ y[0, :, 0],
                "matrix_and_batch": lambda x, y: x[0] @ y,
                "batch_and_matrix": lambda x, y: x @ y[1],
                "batches": lambda x, y: x @ y,
                "broadcast": lambda x, y: x[:, None] @ y[None],
                "with_itself": lambda x, y: torch.mm(x[0], x[0].T) + torch.bmm(x, x.mT).sum(0),
                "addmv": lambda x, y: torch.addmv(x[0, :, 0], x[0], y[0, :, 0], alpha=2),
                "addmm": lambda x, y: torch.addmm(y[0, 0], x[0], y[0], beta=0.5, alpha=2),
                "baddbmm": lambda x, y: torch.baddbmm(x @ y, x, y, beta=0.5, alpha=2),
                "einsum": lambda x, y: torch.einsum("bij,bjk->bki", x, y),
                "einsum_of_rows": lambda x, y: torch.einsum("bij,bij->bi", x, x),
                "outer": lambda x, y: torch.outer(x[0, 0], y[0, 0]),
                "attention": lambda x, y: F.scaled_dot_product_attention(x, x, x, is_causal=True),
                "masked_attention": lambda x, y: F.scaled_dot_product_attention(
                    x, x, x, attn_mask=(x[:, :, :1] > -9) & torch.ones(5, 5).tril().bool(), scale=0.3
                ),
            },
            limit=1e-5,
            x=torch.rand(2, 5, 8),
            y=torch.rand(2, 8, 6),
        )

    def test_8_bit_integers(self):
        def shifts(x, y):
            return x << 3, x >> 2, x << y, x >> y, torch.bitwise_right_shift(x, y)

        by = torch.tensor([0, 1, 7, 8, 100, -1, -7, 3])
        for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
            self.check(
                {str(i): lambda x, y, i=i: shifts(x, y)[i] for i in range(5)}, limit=0,
                x=torch.randint(-128, 128, (40, 8)).to(dtype),
                y=(by.abs() if dtype == torch.uint8 else by).to(dtype),
            )  # fmt: skip

        def grouped(x, packed, scales):
            """GPTQ's form: 8 numbers of 4 bits in an int32, scales and a zero for 32 rows."""
            by = torch.arange(0, 32, 4, dtype=torch.int32).view(1, 8, 1)
            numbers = torch.bitwise_and(torch.bitwise_right_shift(packed.unsqueeze(1), by), 15)
            return x @ ((numbers.view(4, 32, 24) - 8) * scales.unsqueeze(1)).view(128, 24)

        self.check(
            {
                "int8pack": lambda x, w, s, packed, scales: torch._weight_int8pack_mm(x, w, s),
                "cast": lambda x, w, s, packed, scales: F.linear(x, w.float()) * s,
                "grouped": lambda x, w, s, packed, scales: grouped(x, packed, scales),
            },
            limit=1e-5, absolute=1e-3, x=torch.randn(5, 128),
            w=torch.randint(-128, 128, (24, 128)).to(torch.int8), s=torch.rand(24),
            packed=torch.randint(-(2**31), 2**31, (16, 24)).to(torch.int32), scales=torch.rand(4, 24),
        )  # fmt: skip

    def test_exact_products_of_8_bits(self):
        for rows, inner in ((17, 8), (32, 1024), (32, 3000)):
            x = torch.randint(-128, 128, (rows, inner)).to(torch.int8)
            y = torch.randint(-128, 128, (inner, 16)).to(torch.int8)
            x[:2], y[:, :2] = -128, -128
            self.check({"mm": lambda x, y: torch._int_mm(x, y)}, x=x, y=y)

    def test_distances_bags_and_places(self):
        def bag(x, i, mode, **given):
            return F.embedding_bag(i, x, mode=mode, **given)

        borders = lambda x: x[0].sort().values
        self.check(
            {
                **{
                    f"distance_{p}": lambda x, y, i, p=p: torch.cdist(x[None], y[:, None], p)
                    for p in (0.0, 1.0, 2.0, 3.0, math.inf)
                },
                "distance_of_rows": lambda x, y, i: torch.cdist(x, x[:4]),
                "mean": lambda x, y, i: bag(x, i, "mean"),
                "sum": lambda x, y, i: bag(x, i, "sum"),
                "max": lambda x, y, i: bag(x, i, "max"),
                "weighted": lambda x, y, i: bag(x, i, "sum", per_sample_weights=y[:, :3]),
                "bucketize": lambda x, y, i: torch.bucketize(y, borders(x)),
                "bucketize_right": lambda x, y, i: torch.bucketize(y, borders(y), right=True),
                "searchsorted": lambda x, y, i: torch.searchsorted(
                    x[:2].sort(-1).values, y, side="right"
                ),
                "none": lambda x, y, i: torch.bucketize(y / 0 * 0, borders(x), out_int32=True),
            },
            limit=1e-5, absolute=1e-5, x=torch.randn(6, 4), y=torch.randn(2, 4),
            i=torch.tensor([[0, 5, 2], [1, 1, 3]]),
        )  # fmt: skip
        for function, text in (
            (lambda x, i: bag(x, i.flatten(), "sum", offsets=i[:, 0]), "with offsets"),
            (lambda x, i: bag(x, i, "sum", padding_idx=1), "padding_idx"),
        ):
            with self.assertRaisesRegex(braid.CannotExport, text):
                self.check({"sum": function}, x=torch.randn(6, 4), i=torch.tensor([[0, 5], [3, 1]]))

    def test_8_bit_floats(self):
        e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
        self.check(
            {str(to): lambda x, to=to: x.to(to).float() for to in (e4m3, e5m2)},
            limit=0,
            x=torch.tensor([*EDGES, 447.9, 448, 463.9, 464, 480, 57344, 61440, 2**-9, 2**-10]),
        )

        def product(x, y, of_x, of_y, left=e4m3, right=e4m3, **given):
            return torch._scaled_mm(x.to(left), y.to(right).t(), of_x, of_y, **given)

        def by_rows(x, y, b):
            of_x, of_y = (v.abs().amax(-1, keepdim=True) / 448 for v in (x, y))
            return product(x / of_x, y / of_y, of_x, of_y.t().contiguous(), out_dtype=torch.float32)

        def by_tensors(x, y, b, **given):
            return product(x, y, b.amax(), b.amin().abs(), out_dtype=torch.bfloat16, **given).float()

        def in_blocks(x, y, b):
            of_x = x.view(len(x), -1, 128).abs().amax(-1)
            of_y = y[:128].view(1, 128, -1, 128).abs().amax((1, 3))
            left, right = x.to(e4m3), y[:128].to(e4m3)
            if torch.compiler.is_exporting():  # PyTorch has no kernel for CPUs
                return F.scaled_mm(
                    left, right.t(), of_x, F.ScalingType.BlockWise1x128, of_y.t(),
                    F.ScalingType.BlockWise128x128, output_dtype=torch.float32,
                )  # fmt: skip
            left = left.float() * of_x.repeat_interleave(128, -1)
            return left @ (right.float() * of_y.repeat_interleave(128, -1)).t()

        inputs = {"x": torch.randn(48, 256), "y": torch.randn(144, 256), "b": torch.randn(144)}
        self.check({"rows": by_rows, "in_blocks": in_blocks}, limit=1e-4, absolute=1e-3, **inputs)
        self.check(
            {
                "tensors": by_tensors,
                "bias": lambda x, y, b: by_tensors(x, y, b, bias=b.bfloat16()),
                "mixed": lambda x, y, b: by_tensors(x, y, b, right=e5m2),
            },
            limit=1e-2, absolute=1e-2, **inputs,
        )  # fmt: skip
        with self.assertRaisesRegex(braid.CannotExport, "with a result in f8e4m3"):
            result = lambda x, y, b: product(x, y, b[0], b[1], out_dtype=e4m3).float()
            self.check({"result": result}, **inputs)

    def test_products_of_groups(self):
        def product(x, weight, ends):
            return torch._grouped_mm(x.bfloat16(), weight.bfloat16(), offs=ends)

        inputs = {
            "x": torch.randn(24, 32), "w": torch.randn(3, 16, 32),
            "ends": torch.tensor([5, 5, 24], dtype=torch.int32),
        }  # fmt: skip
        self.check(
            {
                "transposed": lambda x, w, ends: product(x, w.transpose(1, 2), ends).float(),
                "plain": lambda x, w, ends: product(x[:, :16].contiguous(), w, ends).float(),
                "batches": lambda x, w, ends: torch._grouped_mm(
                    x.view(3, 8, 32).bfloat16(), w.transpose(1, 2).bfloat16()
                ).float(),
            },
            limit=1e-3, absolute=1e-2, **inputs,
        )  # fmt: skip
        with self.assertRaisesRegex(braid.CannotExport, "_grouped_mm of 2 by 2 dims"):
            parts = lambda x, w, ends: product(x.t(), x, ends).float()
            self.check({"parts": parts}, **inputs)

    def test_updates(self):
        def put(x, *indices, values, accumulate=False):
            return x.index_put(indices, values, accumulate)

        self.check(
            {
                "index_add": lambda x, y, i: x.index_add(0, i[0], y[: len(i[0])], alpha=3),
                "index_add_of_columns": lambda x, y, i: x.index_add(-1, i[0], y[:, :4], alpha=-0.5),
                "put_rows": lambda x, y, i: put(x, i[0], values=y[:4]),
                "put_one_row": lambda x, y, i: put(x, i[0], values=y[0]),
                "put_a_number": lambda x, y, i: put(x, i[0], i[1], values=torch.full_like(y[0, 0], 9)),
                "put_broadcast": lambda x, y, i: put(
                    x, i[0][:, None], i[0][None, :2], values=y[0, :2]
                ),
                "put_adds": lambda x, y, i: put(x, i[1], values=y[:4], accumulate=True),
                "put_at_three": lambda x, y, i: put(
                    x.view(2, 3, 6), i[1] % 2 - 1, i[0][:, None] % 3, i[0] - 6, values=y[:4, :4], accumulate=True
                ),
                "scatter": lambda x, y, i: x.scatter(1, i, y[:2, :4]),
                "scatter_a_number": lambda x, y, i: x.scatter(-1, i, 2.5),
                "scatter_add": lambda x, y, i: x.scatter_add(0, i, y[:2, :4]),
                "gather": lambda x, y, i: x.gather(-1, i),
                "index_select": lambda x, y, i: x.index_select(1, i[1]),
                "places": lambda x, y, i: x[i[0], i[1]],
                "places_broadcast": lambda x, y, i: x[i[0][:, None], i[1][None]],
                "rows_of_matrices": lambda x, y, i: x.view(3, 2, 6)[i[1] % 3, i[0] % 2],
                "a_table_of_rows": lambda x, y, i: x.view(6, 3, 2)[i],
                "masked_fill": lambda x, y, i: x.masked_fill(x > 0, -1.0),
                "masked_fill_by_a_tensor": lambda x, y, i: x.masked_fill(x > 0, torch.tensor(-1e9)),
                "copy_a_row": lambda x, y, i: x.clone().copy_(y[:1]),
                "copy_a_row_and_add": lambda x, y, i: x.clone().copy_(y[:1]).sum(0),
                "index_copy": lambda x, y, i: x.index_copy(-1, i[0], y[:, :4]),
                "rows_from_the_end": lambda x, y, i: x[i[0] - 3],
                "columns_from_the_end": lambda x, y, i: x[:, i[0] - 6],
                "a_table_from_the_end": lambda x, y, i: x[i - 4],
                "places_from_the_end": lambda x, y, i: x[i[0] - 3, (i[1] - 3).int()],
            },
            x=torch.randn(6, 6),
            y=torch.randn(6, 6),
            i=torch.tensor([[0, 3, 5, 1], [2, 2, 4, 2]]),
        )

    def test_updates_by_what_they_update(self):
        self.check(
            {
                "scatter": lambda x, i: (x * 2).scatter(1, i, x * 2),
                "scatter_of_an_input": lambda x, i: x.scatter(1, i, x),
                "of_a_mask": lambda x, i: (x > 0).scatter(1, i, x > 0),
                "by_indices": lambda x, i: i.scatter(1, i, i.flip(1)),
                "index_copy": lambda x, i: x.index_copy(1, i[0], x),
                "scatter_add": lambda x, i: x.scatter_add(1, i, x.view(-1).view(3, 999)),
            },
            x=torch.randn(3, 999), i=torch.stack([torch.randperm(999) for _ in range(3)]),
        )  # fmt: skip

    def test_masks_that_take_the_next_element(self):
        def run(b, t):
            mask, last = torch.rand(b, t) > 0.5, torch.full((b, t, 4), -1e30).half()
            return {"x": torch.randn(b, t, 4), "m": mask, "y": torch.randn(b * t * 4 + 3), "z": last}

        functions = {
            "rows": lambda x, m, y, z: x.masked_scatter(m[..., None], y),
            "elements": lambda x, m, y, z: x.masked_scatter(x > 0, y * 2),
            "narrow": lambda x, m, y, z: z.masked_scatter(z * 0 == 0, y.half()).float(),
        }
        self.check(functions, **run(2, 3))
        two = {"x": {0: torch.export.Dim("B", max=4), 1: torch.export.Dim("T", max=9)}}
        two["m"] = two["x"]
        runs = [{k: v for k, v in run(*size).items() if k != "z"} for size in ((3, 5), (1, 1), (4, 9))]
        for each in runs:
            each["y"] = torch.randn(150)
        functions = {"rows": lambda x, m, y: x.masked_scatter(m[..., None], y)}
        self.check_runs(functions, runs, two)

    def test_elements_that_meet_at_a_place(self):
        functions = {
            f"{how}{' alone' * (not too)}": lambda x, i, y, n, how=how, too=too: x.scatter_reduce(
                1, i, y, how, include_self=too
            )
            for how in ("sum", "prod", "mean", "amax", "amin")
            for too in (True, False)
        }
        functions |= {
            "turned": lambda x, i, y, n: x.t().scatter_reduce(-2, i.t(), y.t(), "amax"),
            "of_some_rows": lambda x, i, y, n: x.scatter_reduce(1, i[:2], y, "sum"),
            "of_some_columns": lambda x, i, y, n: x.scatter_reduce(0, i % 4, y, "mean", include_self=False),
            "of_a_corner": lambda x, i, y, n: x.expand(3, 4, 7).scatter_reduce(
                -1, i[None, :3], y.expand(2, 4, 6), "amin"
            ),
            "integers": lambda x, i, y, n: n.scatter_reduce(0, i[0], n[:5] * 3, "amin"),
            "sum_of_integers": lambda x, i, y, n: n.scatter_reduce(0, i[0], n[:5] * 3, "sum"),
            "narrow": lambda x, i, y, n: x.half().scatter_reduce(1, i, y.half(), "amax").float(),
            "third": lambda x, i, y, n: x.kthvalue(3).values,
            "second_of_columns": lambda x, i, y, n: x.kthvalue(2, dim=0, keepdim=True).indices,
        }
        self.check(functions, limit=1e-5, absolute=1e-6, x=torch.randn(4, 7), i=torch.randint(7, (4, 5)),
                   y=torch.randn(4, 6), n=torch.randint(-9, 9, (7,)))  # fmt: skip
        with self.assertRaisesRegex(braid.CannotExport, r"scatter_reduce of or by .*; .*py:\d+: .*$"):
            self.check({"y": lambda x, i: x.scatter_reduce(0, i, i * 0.5, "sum")}, x=torch.randn(7),
                       i=torch.tensor(3))  # fmt: skip

    def test_indices_of_any_dims(self):
        def added(x, at, values):
            return torch.ops.aten.index_put(x, [None, None, at], values, True)

        def written(x, at, values):
            x = x.clone()
            x[at] = values
            return x

        every = slice(None)
        functions = {
            "columns": lambda x, i, p: x[:, i],
            "last": lambda x, i, p: x[..., i - 3],
            "neighbours": lambda x, i, p: x[:, i, i[0]],
            "apart": lambda x, i, p: x[i % 2, :, i[:1]],
            "turned": lambda x, i, p: x.transpose(0, 2)[:, i.int()],
            "element": lambda x, i, p: x[p] + x[:, p][:2, None, 0, None],
            "element_of_elements": lambda x, i, p: x[0, p, i[0, 1]],
            "selected": lambda x, i, p: x.index_select(-1, p + 2),
            "put_columns": lambda x, i, p: written(x, (every, i), 1.0),
            "put_last": lambda x, i, p: written(x, (every, every, i[0] - 1), x[:, :, :2] * 2),
            "put_apart": lambda x, i, p: written(x, (i[0] - 1, every, i[0]), x[0, None, :, 1]),
            "put_neighbours": lambda x, i, p: written(x, (every, i, i[0]), x[:, :2, 1:3]),
            "put_element": lambda x, i, p: written(x, (every, p), x[:, 0] * 3),
            "put_row": lambda x, i, p: written(x, p, 2.0),
            "put_adds": lambda x, i, p: added(x, i * 0 + 1, x[:, :, :2, None]),
            "filled": lambda x, i, p: x.index_fill(0, i[0] - 1, 3.0),
            "filled_columns": lambda x, i, p: x.index_fill(-1, i[0] - 2, 0.5),
            "filled_element": lambda x, i, p: x.index_fill(1, p, x[0, 0, 0]),
            "fold": lambda x, i, p: F.fold(x.repeat(1, 1, 3), (4, 4), (2, 1)),
            "patches": lambda x, i, p: F.unfold(x[:, None], (2, 3), padding=1, stride=2),
            "nearest": lambda x, i, p: F.interpolate(x[None], (5, 3), mode="nearest-exact"),
        }  # fmt: skip
        self.check(functions, limit=1e-5, absolute=1e-6, x=torch.randn(2, 4, 4),
                   i=torch.tensor([[0, 1], [3, 2]]), p=torch.tensor(-1))  # fmt: skip
        del functions["fold"], functions["patches"], functions["nearest"]
        runs = [
            {"x": torch.randn(2, n, 4), "i": torch.tensor([[0, 1], [3, 2]]), "p": torch.tensor(p)}
            for n, p in ((9, -2), (5, 1))
        ]
        rows = {"x": {1: torch.export.Dim("T", min=4, max=40)}}
        self.check_runs(functions, runs, rows, limit=1e-5, absolute=1e-6)

    def test_shapes_of_dims_of_any_extent(self):
        functions = {
            "last_row_written": lambda x, y: x.select_scatter(x[:, 0] * 2, 1, -1),
            "row_of_a_length": lambda x, y: x.select_scatter(x[:, 0] * 2, 1, x.shape[1] - 2),
            "flip": lambda x, y: x.flip(1),
            "flip_of_both": lambda x, y: x.transpose(0, 1).flip(0, -1),
            "repeat": lambda x, y: x.repeat(2, 1, 3),
            "repeat_columns": lambda x, y: x.repeat(1, 2, 1),
            "repeat_by_a_length": lambda x, y: y.repeat(x.shape[1], 2),
            "repeat_once": lambda x, y: x[:1, :1].repeat(1, x.shape[1], 1),
            "repeat_of_equal_rows": lambda x, y: x[:, :1].expand(2, 3, 4).repeat(1, 2, 1),
            "shifted": lambda x, y: F.pad(x, (0, 0, 1, -1)) - F.pad(x, (0, 0, -2, 2), value=0.5),
            "roll": lambda x, y: x.roll((1, -3), (1, 2)),
            "roll_of_all": lambda x, y: x[0].roll(-5),
            "unfold": lambda x, y: x.unfold(1, 3, 1),
            "unfold_in_steps": lambda x, y: x.transpose(1, 2).unfold(-2, 2, 2),
            "diagonal": lambda x, y: (x @ x.mT).diagonal(0, -2, -1),
            "diagonal_below": lambda x, y: x.diagonal(-1, 2, 0),
            "diagonal_above": lambda x, y: x.diagonal(2, dim1=0, dim2=2) * 2,
            "trace": lambda x, y: torch.trace(x[0] @ x[0].T),
            "var": lambda x, y: x.var(1),
            "var_of_all": lambda x, y: x.var(),
            "var_keepdim": lambda x, y: x.transpose(0, 1).var((0, -1), correction=0, keepdim=True),
            "std": lambda x, y: x.std((1, 2)),
            "std_less": lambda x, y: x.std(-2, correction=2),
            "var_mean": lambda x, y: torch.stack(torch.var_mean(x, 1)),
            "std_mean": lambda x, y: torch.stack(torch.std_mean(x, -1)),
            "narrow": lambda x, y: x.half().var(1).float() + x.half().mean(1).float() * 0,
        }  # fmt: skip
        limits = {"limit": 1e-3, "absolute": 1e-5}
        self.check(functions, **limits, x=torch.randn(2, 5, 4), y=torch.randn(2, 3))
        runs = [{"x": torch.randn(2, n, 4), "y": torch.randn(2, 3)} for n in (5, 4, 33)]
        rows = {"x": {1: torch.export.Dim("T", min=4, max=40)}}
        self.check_runs(functions, runs, rows, **limits)

    def test_lengths_as_numbers(self):
        rows = torch.export.Dim("T", max=40)

        def run(n):
            numbers = torch.randint(-99, 99, (n, 4))
            return {"x": torch.randn(n, 4), "n": numbers, "i": torch.tensor(3)}

        self.check_runs(
            {
                "times": lambda x, n, i: x * x.shape[0],
                "over": lambda x, n, i: x / x.shape[0],
                "less": lambda x, n, i: x.shape[0] - x,
                "scaled": lambda x, n, i: x * (1.0 / x.shape[0]) + x * x.shape[0] ** -0.5,
                "numel": lambda x, n, i: x.sum() / x.numel(),
                "integers": lambda x, n, i: n * n.shape[0] + n // n.shape[0],
                "narrow": lambda x, n, i: (n[:, 0].to(torch.int8) + n.shape[0]) * 2,
                "quotient": lambda x, n, i: n / n.shape[0],
                "half": lambda x, n, i: (x.half() / (x.shape[0] * 7 + 2049)).float() * 1e3,
                "mask": lambda x, n, i: torch.arange(40) < x.shape[0],
                "where": lambda x, n, i: torch.where(x > 0, x, x.shape[0]),
                "filled": lambda x, n, i: x.masked_fill(x > 0, x.shape[0]),
                "full": lambda x, n, i: torch.full((3,), x.shape[0]),
                "tensor": lambda x, n, i: torch.log(torch.tensor(x.shape[0])) * x,
                "clamp": lambda x, n, i: n.clamp(max=x.shape[0]),
                "element": lambda x, n, i: x * i.item() + torch.full((4,), i.item() + 1),
            },
            [run(5), run(1), run(33)],
            {"x": {0: rows}, "n": {0: rows}},
            limit=1e-5, absolute=1e-6,
        )  # fmt: skip

    def test_a_place_outside_is_an_error_and_no_element_of_another_row(self):
        given = {"x": torch.randn(3, 4), "i": torch.tensor([0, 1]), "j": torch.tensor([3, -4])}
        with tempfile.TemporaryDirectory() as folder:
            braid.export(Many({"y": lambda x, i, j: x[i, j]}), folder, inputs=given)
            executable = braid.load_exported(folder, "cpu")
        executable.run(given)
        for j in ([4, 0], [0, -5]):
            with self.assertRaisesRegex(braid.Error, "index"):
                executable.run({**given, "j": torch.tensor(j)})

    def test_what_is_not_there_is_refused(self):
        dropped = lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
        for function, text in (
            (lambda x: x // 3, "div of floats that rounds down, by what is no power of two"),
            (dropped, "attention with dropout_p"),
            (lambda x: x.double().sum(-1).float(), "a tensor of torch.float64"),
        ):
            with self.assertRaisesRegex(braid.CannotExport, text):
                self.check({"refused": function}, x=torch.randn(1, 3, 4))

    def test_steps_along_a_symbol_are_refused_where_they_stand(self):
        runs, dims = [{"x": torch.randn(2, 9)}], {"x": {1: torch.export.Dim("T", min=4, max=99)}}
        with self.assertRaisesRegex(braid.CannotExport, "steps of 2 along T, which rounds; .*py:[0-9]+: "):
            self.check_runs({"some": lambda x: x[:, ::2]}, runs, dims)

    def test_what_pytorch_refuses_is_one_line_with_its_place(self):
        line = r"^Many: torch\.export: \w+: [^\n]*; [^\n]*test_ops\.py:\d+: [^\n]*x\.sum\(\) > 0[^\n]*$"
        with self.assertRaisesRegex(braid.CannotExport, line):
            self.check({"decides": lambda x: x + 1 if x.sum() > 0 else x}, x=torch.randn(2, 3))

    def test_what_is_not_exact_is_refused(self):
        x = torch.ones(3)
        for function in (lambda x: x % 0.3, lambda x: torch.fmod(x, x), lambda x: x % 0.5):
            with self.assertRaisesRegex(braid.CannotExport, "by what is no power of two from 1 on"):
                self.check({"remainder": function}, x=x)


if __name__ == "__main__":
    unittest.main()
