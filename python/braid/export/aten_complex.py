"""How complex numbers are lowered, as rotary embeddings have them: as two tensors of floats."""

import types
from typing import Any

import torch

from . import aten_shapes
from .lower import DTYPES, Complex, Lowering, Unsupported, Value, lowers, lowers_complex

_PARTS = {torch.complex64: torch.float32}


def _part(node: Any) -> Any:
    """The node, as one that gives one of the parts."""
    tensor = node.meta["val"]
    dtype = _PARTS.get(tensor.dtype, tensor.dtype)
    if dtype not in DTYPES:
        raise Unsupported(f"a tensor of {tensor.dtype}")
    return types.SimpleNamespace(
        meta={"val": types.SimpleNamespace(shape=tensor.shape, ndim=tensor.ndim, dtype=dtype)},
        target=node.target,
        args=node.args,
        kwargs=node.kwargs,
        all_input_nodes=node.all_input_nodes,
    )


def _of(low: Lowering, node: Any, op: str, a: Any, b: Any) -> Value:
    return low.elementwise(_part(node), op=op, self_=a, other=b)


@lowers("aten::polar")
def _polar(low: Lowering, node, abs: Value, angle: Value) -> Complex:
    parts = [low.emit_like(_part(node), op, [angle.name], angle) for op in ("cos", "sin")]
    return Complex(*(_of(low, node, "mul", abs, part) for part in parts))


@lowers("aten::complex")
def _complex(low: Lowering, node, real: Value, imag: Value) -> Complex:
    return Complex(real, imag)


@lowers("aten::view_as_complex")
def _view_as_complex(low: Lowering, node, self_: Value) -> Complex:
    return Complex(*(aten_shapes.select(low, _part(node), self_, -1, i) for i in range(2)))


@lowers_complex("aten::view_as_real")
def _view_as_real(low: Lowering, node, self_: Complex) -> Value:
    tensor = node.args[0]  # both parts have its shape
    return aten_shapes.stacked(low, node, [self_.real, self_.imag], [tensor, tensor], -1)


@lowers_complex("aten::cat")
def _cat(low: Lowering, node, tensors: list[Any], dim: int = 0) -> Complex:
    if not all(isinstance(each, Complex) for each in tensors):
        raise Unsupported("cat of complex and other numbers")
    part = _part(node)
    return Complex(
        aten_shapes.cat(low, part, [each.real for each in tensors], dim),
        aten_shapes.cat(low, part, [each.imag for each in tensors], dim),
    )


@lowers_complex("aten::mul")
def _mul(low: Lowering, node, self_: Any, other: Any) -> Complex:
    if not isinstance(self_, Complex):
        self_, other = other, self_
    if not isinstance(other, Complex):
        return Complex(*(_of(low, node, "mul", part, other) for part in (self_.real, self_.imag)))
    products = [
        _of(low, node, "mul", a, b)
        for a in (self_.real, self_.imag)
        for b in (other.real, other.imag)
    ]
    return Complex(
        _of(low, node, "sub", products[0], products[3]),
        _of(low, node, "add", products[1], products[2]),
    )


@lowers_complex("aten::add", "aten::sub")
def _add(low: Lowering, node, self_: Any, other: Any, alpha: float = 1) -> Complex:
    if alpha != 1 or not isinstance(self_, Complex) or not isinstance(other, Complex):
        raise Unsupported("a sum of a complex and a real number")
    op = node.target._schema.name.removeprefix("aten::")
    return Complex(
        _of(low, node, op, self_.real, other.real), _of(low, node, op, self_.imag, other.imag)
    )


@lowers_complex("aten::abs")
def _abs(low: Lowering, node, self_: Complex) -> Value:
    real, imag = (_of(low, node, "mul", part, part) for part in (self_.real, self_.imag))
    squares = _of(low, node, "add", real, imag)
    return low.emit_like(node, "sqrt", [squares.name], squares)


@lowers_complex("aten::conj", "aten::_conj")
def _conj(low: Lowering, node, self_: Complex) -> Complex:
    imag = low.emit_like(_part(node), "neg", [self_.imag.name], self_.imag)
    return Complex(self_.real, imag)


@lowers_complex("aten::to", "aten::_to_copy", "aten::alias", "aten::clone", "aten::contiguous")
@lowers_complex("aten::detach")
def _same(low: Lowering, node, self_: Complex, **_: Any) -> Complex:
    if node.meta["val"].dtype not in _PARTS:
        raise Unsupported(f"complex numbers as {node.meta['val'].dtype}")
    return self_


@lowers_complex(
    "aten::expand", "aten::permute", "aten::reshape", "aten::select", "aten::slice", "aten::squeeze",
    "aten::transpose", "aten::unsqueeze", "aten::view",
)  # fmt: skip
def _of_shape(low: Lowering, node, self_: Complex, **given: Any) -> Complex:
    handler = low.handler_of(node.target._schema.name)
    return Complex(*(handler(low, _part(node), part, **given) for part in (self_.real, self_.imag)))
