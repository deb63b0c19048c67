"""Dims that are products of symbols, `x.view(B * T, C)`, against eager at several sizes of both."""

import unittest

import braid
import torch
import torch.nn.functional as F
import transformers
from checks import Checked
from torch import nn
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

B, T = torch.export.Dim("B", max=9), torch.export.Dim("T", max=9)
SIZES = [(3, 5), (1, 1), (1, 4), (4, 1), (9, 9)]


def given(b, t):
    return {"x": torch.randn(b, t, 8), "i": torch.randint(8, (b, t)), "w": torch.randn(8, 8)}


def rows(x):
    return x.reshape(-1, x.shape[-1])


def elements(of):
    """Functions of rows, numbers and a matrix, whose results are given their dims back."""

    def function(x, i, w, of):
        result = of(rows(x), i.view(-1), w)
        return result.view(*i.shape, *result.shape[1:])

    return {name: lambda x, i, w, f=f: function(x, i, w, f) for name, f in of.items()}


class Folds(Checked):
    def checked(self, functions, limit=1e-5, absolute=2e-5):
        dims = {"x": {0: B, 1: T}, "i": {0: B, 1: T}}
        self.check_runs(functions, [given(*size) for size in SIZES], dims, limit, absolute)

    def refused(self, function, text):
        with self.assertRaisesRegex(braid.CannotExport, f"^1 ops cannot be exported:\\n.*{text}"):
            self.checked({"refused": function})

    def test_what_acts_on_rows(self):
        self.checked(elements({
            "linear": lambda x, i, w: F.linear(x, w, w[0]),
            "of_8_bits": lambda x, i, w: torch._weight_int8pack_mm(x, (w * 9).to(torch.int8), w[0]),
            "by_a_vector": lambda x, i, w: x @ w[0],
            "linear_by_a_vector": lambda x, i, w: F.linear(x, w[0]),
            "addmm": lambda x, i, w: torch.addmm(w[0], x, w, beta=0.5, alpha=2),
            "pointwise": lambda x, i, w: F.gelu(x) * torch.sigmoid(x[:, :1]) + w[0],
            "softmax": lambda x, i, w: x.softmax(-1).cumsum(1),
            "norms": lambda x, i, w: F.layer_norm(F.rms_norm(x, (8,)), (8,), w[0], w[1]),
            "normalize": lambda x, i, w: F.normalize(x, dim=-1),
            "embedding": lambda x, i, w: F.embedding(i, w) + w[i],
            "elements": lambda x, i, w: w[i, (i + 1) % 8],
            "columns": lambda x, i, w: w.view(2, 4, 8)[:, i % 4].transpose(0, 1),
            "one_hot": lambda x, i, w: F.one_hot(i, 8).cumsum(0),
            "best": lambda x, i, w: x.max(-1).indices + x.topk(3).indices[:, 2] + x.argmax(-1),
            "sort": lambda x, i, w: x.sort(-1, descending=True).values,
            "cat": lambda x, i, w: torch.cat([x.chunk(2, -1)[1], x[:, 1:3], x], -1),
            "stack": lambda x, i, w: torch.stack([x, 2 * x, x + w[0]], 1),
            "pad": lambda x, i, w: F.pad(x, (1, 2)),
            "windows": lambda x, i, w: x.unfold(1, 3, 2),
            "gather": lambda x, i, w: x.gather(1, i[:, None]),
            "scatter": lambda x, i, w: torch.zeros_like(x).scatter(1, i[:, None], 2.0),
            "where": lambda x, i, w: torch.where(i[:, None] > 3, x, -x).masked_fill(x > 1, 0.5),
            "other_dims": lambda x, i, w: x.view(-1, 2, 4).transpose(1, 2).softmax(1).flatten(1),
            "repeated": lambda x, i, w: x.repeat(1, 2) + x.repeat_interleave(2, 1),
            "all_repeated": lambda x, i, w: (
                x.repeat(3, 2)[:, :8].view(3, *i.shape, 8).sum(0).view(-1, 8)
                * torch.arange(i.view(-1).shape[0]).repeat(2).view(2, -1)[1, :, None]
            ),
            "rows_repeated": lambda x, i, w: x.repeat_interleave(2, 0).view(-1, 2, 8),
            "made": lambda x, i, w: torch.zeros(x.shape[0], 4) + torch.arange(x.shape[0])[:, None] * 2,
            "expanded": lambda x, i, w: w[0].expand(x.shape[0], 8) * x,
            "attention": lambda x, i, w: F.scaled_dot_product_attention(*[x.view(-1, 4, 2)] * 3, is_causal=True),
            "backwards": lambda x, i, w: x.flip(0),
        }))  # fmt: skip

    def test_along_the_fold(self):
        self.checked({
            "sum": lambda x, i, w: rows(x).sum(0),
            "mean": lambda x, i, w: rows(x).view(-1, 2, 4).mean((0, 1)),
            "amax": lambda x, i, w: rows(x).amax(0, keepdim=True) - w,
            "var": lambda x, i, w: rows(x).var(0, correction=0),
            "any": lambda x, i, w: (rows(x) > 2).any(0),
            "all_of_it": lambda x, i, w: x.flatten().tanh().mean(),
            "places": lambda x, i, w: (x * torch.arange(x.shape[1]).repeat(x.shape[0]).view(*i.shape, 1)),
            "centred": lambda x, i, w: (rows(x) - rows(x).mean(0, keepdim=True)).view(x.shape),
            "first_and_last": lambda x, i, w: rows(x)[0] + rows(x)[-1],
            "picked": lambda x, i, w: rows(x)[i[0, :1] * 0 + x.shape[0] * x.shape[1] - 1],
            "from_the_end": lambda x, i, w: rows(x)[i[0, :1] * 0 - 1],
            "put": lambda x, i, w: rows(x).index_put((i[0, :1] * 0 - 1,), w[:1]).view(x.shape),
            "added": lambda x, i, w: rows(x).index_add(0, i[0, :1] * 0 + i.numel() - 1, w[:1]).view(x.shape),
            "added_by_number": lambda x, i, w: w.index_add(0, i.view(-1), rows(x), alpha=2),
            "scattered": lambda x, i, w: w.scatter_add(0, i.view(-1, 1).expand(-1, 8), rows(x)),
            "put_and_added": lambda x, i, w: w.index_put((i.view(-1),), rows(x), accumulate=True),
            "put_row": lambda x, i, w: w.index_put((i.view(-1),), x[0, 0], accumulate=True),
            "columns_added": lambda x, i, w: w.index_add(1, i.view(-1), rows(x).t()),
            "squares": lambda x, i, w: rows(x).t() @ rows(x),
            "turned": lambda x, i, w: (w @ rows(x).t()).view(8, *i.shape),
            "pairs": lambda x, i, w: (rows(x) @ rows(x).t()).tanh().sum(),
            "einsum": lambda x, i, w: torch.einsum("btc,btd->cd", x, x),
            "einsum_of_pairs": lambda x, i, w: torch.einsum("btc,suc->bstu", x, x),
            "einsum_of_rows": lambda x, i, w: torch.einsum("btc,sc->bts", x, x[0]),
        }, limit=1e-4, absolute=1e-4)  # fmt: skip

    def test_losses(self):
        def loss(**how):
            return lambda x, i, w: F.cross_entropy(rows(x), i.view(-1), **how)

        self.checked({
            "mean": loss(),
            "sum": loss(reduction="sum", label_smoothing=0.1),
            "ignored": loss(ignore_index=3),
            "picked": lambda x, i, w: rows(x).log_softmax(-1)[torch.arange(i.numel()), i.view(-1) - 8].sum(),
            "squares": lambda x, i, w: F.mse_loss(rows(x), F.embedding(i.view(-1), w)),
        })  # fmt: skip

    def test_heads_as_a_batch(self):
        def attention(x, i, w):
            b, t, _ = x.shape
            q, k, v = (F.linear(x, w[:6].T @ w[:6] * s).view(b, t, 2, 4).transpose(1, 2) for s in (1, 2, 3))
            q, k, v = (each.reshape(b * 2, t, 4) for each in (q, k, v))
            scores = torch.baddbmm(torch.zeros(b * 2, t, t), q, k.transpose(1, 2), alpha=0.5)
            scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -1e9)
            y = torch.bmm(scores.softmax(-1), v)
            return y.view(b, 2, t, 4).transpose(1, 2).reshape(b, t, 8)

        def each_token(x, i, w):  # as a batch of B * T
            q = x.view(-1, 2, 4)
            return torch.bmm(q, q.mT).softmax(-1).bmm(q).view(x.shape)

        def turned(x, i, w):
            y = x.transpose(0, 1).reshape(-1, 8).exp() @ w
            return y.view(x.shape[1], x.shape[0], 8).transpose(0, 1)

        functions = {"attention": attention, "each_token": each_token, "turned": turned}
        self.checked(functions, limit=1e-4, absolute=1e-3)

    def test_pictures_of_every_token(self):
        def picture(of, *shape):
            return lambda x, i, w: of(x.view(-1, *shape), w).flatten(1).view(*i.shape, -1)

        self.checked({
            "line": picture(lambda x, w: F.conv1d(x, w[:6].view(8, 2, 3), w[7], padding=1), 2, 4),
            "plane": picture(lambda x, w: F.conv2d(x, w[:6].view(6, 2, 2, 2), padding=1, stride=2), 2, 2, 2),
            "group_norm": picture(lambda x, w: F.group_norm(x, 2, w[0, :4], w[1, :4]), 4, 2),
            "batch_norm": picture(lambda x, w: F.batch_norm(x, w[0], w[1].abs(), w[2], w[3]), 8),
            "batch_norm_of_planes": picture(
                lambda x, w: F.batch_norm(x, w[0, :2], w[1, :2].abs(), w[2, :2], w[3, :2]), 2, 2, 2
            ),
        })  # fmt: skip

    def test_a_mixture_of_experts_written_by_hand(self):
        class Mixture(nn.Module):
            def __init__(self):
                super().__init__()
                self.router = nn.Linear(8, 4, bias=False)
                self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

            def forward(self, x):
                hidden = x.view(-1, x.shape[-1])
                weights, chosen = self.router(hidden).softmax(-1).topk(2, dim=-1)
                weights = weights / weights.sum(-1, keepdim=True)
                masks = F.one_hot(chosen, num_classes=4).permute(2, 1, 0)
                result = torch.zeros_like(hidden)
                for number, expert in enumerate(self.experts):
                    own = (masks[number].t() * weights).sum(-1, keepdim=True)
                    result = result + expert(hidden) * own
                return {"y": result.view(x.shape)}

        mixture = Mixture()
        runs = [{"x": torch.randn(*size, 8)} for size in SIZES]
        with torch.no_grad():
            self.check_module(mixture, runs, {"x": {0: B, 1: T}}, 1e-5, 1e-5)

    def test_along_all_rows(self):
        def of_ties(x):
            return (rows(x) * 2).round()

        self.checked({
            "argmax": lambda x, i, w: of_ties(x).argmax(0),
            "argmin": lambda x, i, w: rows(x).argmin(0, keepdim=True),
            "largest": lambda x, i, w: rows(x).max(0).values,
            "place": lambda x, i, w: of_ties(x).max(0).indices,
            "least": lambda x, i, w: rows(x).min(0, keepdim=True)[0],
            "softmax": lambda x, i, w: rows(x).softmax(0).view(x.shape),
            "log_softmax": lambda x, i, w: rows(x).log_softmax(0).view(x.shape),
            "of_three": lambda x, i, w: (x[..., None] * w[0]).view(-1, 8).argmax(0),
        })  # fmt: skip
        in_bf16 = lambda x, i, w: rows(x.bfloat16()).softmax(0).view(x.shape)
        self.checked({"in_bf16": in_bf16}, limit=8e-3)

    def test_experts_of_transformers(self):
        class Mixture(nn.Module):
            def __init__(self, of):
                super().__init__()
                self.of = of

            def forward(self, x):
                found = self.of(x)
                return {"y": found[0] if isinstance(found, tuple) else found}

        sizes = {"hidden_size": 8, "intermediate_size": 12, "num_local_experts": 4}
        for of, config in (
            (MixtralSparseMoeBlock, transformers.MixtralConfig(**sizes)),
            (GptOssMLP, transformers.GptOssConfig(**sizes, num_experts_per_tok=2)),
        ):
            with self.subTest(of.__name__), torch.no_grad():
                block = Mixture(of(config)).eval()
                for parameter in block.parameters():
                    parameter.requires_grad_(False).normal_(std=0.5)
                runs = [{"x": torch.randn(*size, 8)} for size in SIZES]
                with self.assertWarnsRegex(braid.errors.Remark, "so that all 4 experts see each token, not 2"):
                    self.check_module(block, runs, {"x": {0: B, 1: T}}, 1e-5, 1e-5)
                self.check_module(block, runs[:1], {"x": {1: T}}, 1e-5, 1e-5)

    def test_what_does_not_go_row_by_row_is_refused(self):
        self.refused(lambda x, i, w: rows(x) * 2, r"the dim T\*B, .*; return it as \[B, T, 8\]")
        self.refused(lambda x, i, w: rows(x).topk(1, 0).indices, r"topk of T\*B, a dim .* goes along that dim")
        self.refused(lambda x, i, w: rows(x).sort(0).values.sum(), r"sort of T\*B, .* along that dim")
        both = lambda x, i, w: (rows(x) + rows(x.transpose(0, 1))).view(x.shape)
        self.refused(both, "add of T.B, .*: a fold of B and T beside one of T and B")
        self.refused(lambda x, i, w: rows(x)[rows(x)[:, 0] > 0].sum(0), "index with a mask")
        self.refused(lambda x, i, w: rows(x)[:, 0].nonzero().sum(0), "nonzero with an extent, which is data")
        put = lambda x, i, w: w.index_put((i,), x)
        self.refused(put, r"index_put to as many places as B \* T")
        put = lambda x, i, w: w.index_put((i.view(-1),), rows(x))
        self.refused(put, r"index_put of T\*B, .*: it writes to as many places")
        cut = lambda x, i, w: rows(x).view(x.shape[1], x.shape[0], 8)
        self.refused(cut, "view of T.B, .*: a view that cuts a fold of B and T and 8 into others")


if __name__ == "__main__":
    unittest.main()
