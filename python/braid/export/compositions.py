"""Ops that are a few others, and that PyTorch does not write so itself."""

import torch

from ..errors import CannotExport

aten = torch.ops.aten


def _masked_scatter(self, mask, source):
    """Each element that the mask takes is the next one of the source."""
    taken = mask.expand(self.shape).flatten()
    places = (taken.long().cumsum(0) - 1).clamp(min=0)
    found = source.to(self.dtype).flatten()[places]
    return torch.where(taken, found, self.flatten()).view(self.shape)


def _scatter_reduce(self, dim, index, src, reduce, *, include_self=True):
    """Looks for all places among all indices along the dim, as `index_add` does in a graph."""
    if index.ndim == 0 or any(
        index.shape[d] != self.shape[d] for d in range(self.ndim) if d != dim % self.ndim
    ):
        raise CannotExport("scatter_reduce with fewer indices along other dims than the tensor has")
    for d in range(index.ndim):
        src = src.narrow(d, 0, index.shape[d])
    own, src, index = (each.movedim(dim, -1) for each in (self, src, index))
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
    return made.to(self.dtype).movedim(-1, dim)


def _kthvalue(self, k, dim=-1, keepdim=False):
    values, places = torch.topk(self, k, dim, largest=False)
    values, places = (each.narrow(dim, k - 1, 1) for each in (values, places))
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _signbit(self):
    return torch.copysign(torch.ones_like(self), self) < 0 if self.is_floating_point() else self < 0


COMPOSITIONS = {
    aten.kthvalue.default: _kthvalue,
    aten.masked_scatter.default: _masked_scatter,
    aten.scatter_reduce.two: _scatter_reduce,
    aten.signbit.default: _signbit,
}
