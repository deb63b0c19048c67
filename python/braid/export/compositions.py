"""Ops that are a few others, and that PyTorch does not write so itself."""

import math
import warnings

import torch
from torch._decomp import decomposition_table
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ..errors import CannotExport, Remark

aten = torch.ops.aten
_ADAPTIVE_POOL = decomposition_table[aten._adaptive_avg_pool2d.default]


def _masked_scatter(self, mask, source):
    """Each element that the mask takes is the next one of the source."""
    taken = mask.expand(self.shape).flatten()
    places = (taken.long().cumsum(0) - 1).clamp(min=0)
    found = source.to(self.dtype).flatten()[places]
    return torch.where(taken, found, self.flatten()).view(self.shape)


def _scatter_reduce(self, dim, index, src, reduce, *, include_self=True):
    """Looks for all places among all indices along the dim, as `index_add` does in a graph. Of other dims
    it takes as much as there are indices."""
    if index.ndim == 0:
        raise CannotExport("scatter_reduce of or by a tensor without dims")
    part, rests = self, []
    for d in range(index.ndim):
        count = index.shape[d]
        src = src.narrow(d, 0, count)
        if d != dim % self.ndim and count != self.shape[d]:
            rests.append((d, part.narrow(d, count, self.shape[d] - count)))
            part = part.narrow(d, 0, count)
    own, src, index = (each.movedim(dim, -1) for each in (part, src, index))
    hits = index[..., None] == torch.arange(own.shape[-1], device=own.device)
    wide = torch.float32 if own.dtype.is_floating_point else own.dtype
    src, old = src[..., None].to(wide), own.to(wide)
    if reduce in ("sum", "mean"):
        made, count = torch.where(hits, src, 0).sum(-2).to(wide), hits.sum(-2)
        made = made + old if include_self else made
        if reduce == "mean":
            if not wide.is_floating_point:
                raise CannotExport("scatter_reduce with the mean of integers")
            made = made / (count + include_self).clamp(min=1)
    elif reduce == "prod":
        made = torch.where(hits, src, 1).prod(-2).to(wide)
        made = made * old if include_self else made
    else:
        most = reduce == "amax"
        limits = torch.finfo(wide) if wide.is_floating_point else torch.iinfo(wide)
        none = limits.min if most else limits.max
        if wide.is_floating_point:
            none = float("-inf") if most else float("inf")
        made = torch.where(hits, src, none)
        made = made.amax(-2) if most else made.amin(-2)
        if include_self:
            made = torch.maximum(made, old) if most else torch.minimum(made, old)
    made = made if include_self else torch.where(hits.any(-2), made, old)
    made = made.to(self.dtype).movedim(-1, dim)
    for d, rest in reversed(rests):
        made = torch.cat([made, rest], d)
    return made


def _kthvalue(self, k, dim=-1, keepdim=False):
    values, places = torch.topk(self, k, dim, largest=False)
    values, places = (each.narrow(dim, k - 1, 1) for each in (values, places))
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _median(self, dim=-1, keepdim=False):
    """The lower one of two in the middle, or a NaN where there is one."""
    values, places = torch.sort(self, dim)  # which has NaNs last
    return _at(self, values, places, (self.shape[dim] - 1) // 2, dim, keepdim, is_any_none=True)


def _nanmedian(self, dim=-1, keepdim=False):
    values, places = torch.sort(self, dim)
    middle = ((~torch.isnan(self)).sum(dim, keepdim=True) - 1).clamp(min=0) // 2
    return _at(self, values, places, middle, dim, keepdim, is_any_none=False)


def _at(self, values, places, middle, dim, keepdim, is_any_none):
    """What stands in the middle of sorted values, and its place in the tensor."""
    if not isinstance(middle, torch.Tensor):
        middle = torch.full_like(places.narrow(dim, 0, 1), middle)
    values, places = (torch.gather(each, dim, middle) for each in (values, places))
    if is_any_none and self.is_floating_point():
        is_none = torch.isnan(self)
        has_none = is_none.any(dim, keepdim=True)
        places = torch.where(has_none, is_none.to(torch.int32).argmax(dim, keepdim=True), places)
        values = torch.where(has_none, float("nan"), values)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _of_all(composed):
    """The value of what takes a dim, of all elements."""
    return lambda self: composed(self.flatten(), 0)[0]


def _seen(self, dim):
    """The elements along the dim, as the last one of [..., n, n], and which of these come no later than
    each."""
    own = self.movedim(dim, -1)[..., None, :]
    places = torch.arange(own.shape[-1], device=self.device)
    return own, places, places <= places[:, None]


def _extreme_so_far(most):
    def composed(self, dim):
        """With the last place that has it."""
        if self.dtype == torch.bool:
            values, at = composed(self.to(torch.uint8), dim)
            return values.bool(), at
        own, places, seen = _seen(self, dim)
        limits = torch.finfo if self.is_floating_point() else torch.iinfo
        none = limits(self.dtype).min if most else limits(self.dtype).max
        if self.is_floating_point():
            none = float("-inf") if most else float("inf")
        rows = torch.where(seen, own, none)
        values = rows.amax(-1) if most else rows.amin(-1)
        hits = own == values[..., None]
        if self.is_floating_point():
            hits = hits | torch.isnan(own)
        at = torch.where(seen & hits, places, -1).amax(-1)
        return values.movedim(-1, dim), at.movedim(-1, dim)

    return composed


def _cumprod(self, dim, *, dtype=None):
    own, _, seen = _seen(_summed(self, dtype), dim)
    made = torch.where(seen, _wide(own), 1).prod(-1)
    return made.movedim(-1, dim).to(_summed(self, dtype).dtype)


def _logcumsumexp(self, dim):
    own, _, seen = _seen(_wide(self), dim)
    made = torch.where(seen, own, float("-inf")).logsumexp(-1)
    return made.movedim(-1, dim).to(self.dtype)


def _summed(self, dtype):
    """In the dtype of sums and products of all elements."""
    if dtype is None and not self.is_floating_point():
        dtype = torch.int64
    return self if dtype is None else self.to(dtype)


def _wide(self):
    return self.float() if self.is_floating_point() else self


def _addbmm(self, batch1, batch2, *, beta=1, alpha=1):
    """One product, of which the batch is a part of what is added up."""
    left, right = batch1.transpose(0, 1).flatten(1), batch2.flatten(0, 1)
    shape = (left.shape[0], right.shape[1])
    return torch.addmm(self.expand(shape), left, right, beta=beta, alpha=alpha)


def _diagonal_scatter(self, src, offset=0, dim1=0, dim2=1):
    own = self.movedim((dim1, dim2), (-2, -1))
    rows, columns = (torch.arange(n, device=self.device) for n in own.shape[-2:])
    is_on = columns - rows[:, None] == offset
    places = (rows + min(offset, 0)).clamp(0, src.shape[-1] - 1)
    made = torch.where(is_on, src.index_select(-1, places)[..., None].to(self.dtype), own)
    return made.movedim((-2, -1), (dim1, dim2))


def _adaptive_avg_pool2d(self, output_size):
    """Of symbols PyTorch's own makes numbers: of one its mean alone is none, or all that it has."""
    if not any(isinstance(extent, torch.SymInt) for extent in self.shape[-2:]):
        return _ADAPTIVE_POOL(self, output_size)
    for dim, count in zip((-2, -1), output_size):
        if count == 1:
            self = self.mean(dim, keepdim=True)
        elif not statically_known_true(self.shape[dim] == count):
            raise CannotExport(f"adaptive_avg_pool2d to {count} beside or along a symbol")
    return self


def _ldexp(self, other):
    return self * torch.pow(2.0, other)


def _rrelu(self, noise, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    if training:
        raise CannotExport("rrelu of a module that is trained; expected .eval()")
    return torch.nn.functional.leaky_relu(self, (lower + upper) / 2), noise


def _signbit(self):
    return torch.copysign(torch.ones_like(self), self) < 0 if self.is_floating_point() else self < 0


COMPOSITIONS = {
    aten._adaptive_avg_pool2d.default: _adaptive_avg_pool2d,
    aten.addbmm.default: _addbmm,
    aten.cummax.default: _extreme_so_far(True),
    aten.cummin.default: _extreme_so_far(False),
    aten.cumprod.default: _cumprod,
    aten.diagonal_scatter.default: _diagonal_scatter,
    aten.kthvalue.default: _kthvalue,
    aten.ldexp.Tensor: _ldexp,
    aten.logcumsumexp.default: _logcumsumexp,
    aten.masked_scatter.default: _masked_scatter,
    aten.median.default: _of_all(_median),
    aten.median.dim: _median,
    aten.nanmedian.default: _of_all(_nanmedian),
    aten.nanmedian.dim: _nanmedian,
    aten.rrelu_with_noise_functional.default: _rrelu,
    aten.scatter_reduce.two: _scatter_reduce,
    aten.signbit.default: _signbit,
}


def _bincount(input, weights=None, minlength=0):
    """Of numbers below its minlength, such as those of experts: no dim can be as long as the data
    says."""
    if weights is not None or minlength == 0:
        raise CannotExport("bincount with weights or without minlength")
    warnings.warn(f"bincount counts the numbers below its minlength, {minlength}, alone", Remark)
    return (input[:, None] == torch.arange(minlength, device=input.device)).sum(0)


def _fill_diagonal(self, fill_value, wrap=False):
    if self.ndim != 2 or wrap:
        raise CannotExport("fill_diagonal_ of what has not two dims, or that begins anew")
    rows, columns = (torch.arange(n, device=self.device) for n in self.shape)
    return self.masked_fill_(rows[:, None] == columns, fill_value)


def _quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """Its place among the sorted elements is a number of f64, which only the export has."""
    own, along = (input.flatten(), 0) if dim is None else (input, dim)
    count = own.shape[along]
    if not isinstance(q, (int, float)) or not isinstance(count, int):
        raise CannotExport("quantile of a tensor of fractions, or along a symbol")
    at = q * (count - 1)
    below, above = math.floor(at), math.ceil(at)
    part = {"linear": at - below, "lower": 0.0, "higher": 1.0, "midpoint": 0.5}
    part["nearest"] = float(round(at) - below)
    values = torch.sort(own, along)[0]
    below, above = (values.select(along, place) for place in (below, above))
    made = torch.lerp(below, above, part[interpolation])
    made = torch.where(torch.isnan(own).any(along), float("nan"), made)
    if keepdim:
        made = made.view([1] * input.ndim) if dim is None else made.unsqueeze(dim)
    return made


def _set_item(self, at, values):
    """`x[mask] = values`: one value for all that the mask takes, or the next one for each."""
    is_mask = isinstance(at, torch.Tensor) and at.dtype == torch.bool
    if not is_mask or not isinstance(values, torch.Tensor):
        return torch.Tensor.__setitem__(self, at, values)
    behind = self.shape[at.ndim :]
    if values.ndim > len(behind):
        values = values.expand(values.shape[0], *behind)
        places = (at.flatten().long().cumsum(0) - 1).clamp(0, values.shape[0] - 1)
        values = values.index_select(0, places).view(self.shape)
    return self.copy_(torch.where(at.view(*at.shape, *[1] * len(behind)), values, self))


# Functions that are taken before PyTorch traces them.
FUNCTIONS = {
    torch.Tensor.__setitem__: _set_item,
    torch.bincount: _bincount,
    torch.Tensor.bincount: _bincount,
    torch.Tensor.fill_diagonal_: _fill_diagonal,
    torch.quantile: _quantile,
    torch.Tensor.quantile: _quantile,
}
