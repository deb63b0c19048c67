"""How ATen's ops on single elements are lowered."""

import math
from typing import Any

import torch

from .aten_shapes import expand
from .lower import DTYPES, FLOATS, Lowering, Unsupported, Value, lowers, number


@lowers("aten::_to_copy", "aten::to")
def _to(low: Lowering, node, self_: Value, **_: Any) -> Value:
    return low.cast(self_, DTYPES[node.meta["val"].dtype])


@lowers("aten::type_as")
def _type_as(low: Lowering, node, self_: Value, other: Value) -> Value:
    return low.cast(self_, low.dtypes[other.name])


@lowers("aten::copy")
def _copy(low: Lowering, node, self_: Value, src: Value, **_: Any) -> Value:
    src = expand(low, node, src, node.meta["val"].shape)
    return low.cast(src, DTYPES[node.meta["val"].dtype])


@lowers("aten::rsub")
def _rsub(low: Lowering, node, self_: Value, other: Any, alpha: float = 1) -> Value:
    return low.elementwise(node, op="sub", self_=other, other=self_, alpha=alpha)


@lowers("aten::div")
def _div(
    low: Lowering, node, self_: Any, other: Any, rounding_mode: str | None = None
) -> Value:
    """A quotient of narrow floats by a tensor is rounded to its dtype before it is to an integer, one by a
    number is not: so it is in PyTorch."""
    if rounding_mode is None or DTYPES[node.meta["val"].dtype] not in FLOATS:
        return low.elementwise(
            node, op="div", self_=self_, other=other, rounding_mode=rounding_mode
        )
    if rounding_mode == "floor" and not _is_power_of_two(other):
        raise Unsupported("div of floats that rounds down, by what is no power of two")
    if isinstance(other, (int, float)):
        e = _floats(low, node, self_)
        quotient = e("div", e.x, float(other))
    else:
        e = _Elements(low, node, low.elementwise(node, op="div", self_=self_, other=other))
        quotient = e.x
    if rounding_mode == "trunc":
        return e.result(_trunc_of(e, quotient))
    return e.result(e("where", e.is_true("isinf", quotient), math.nan, e("floor", quotient)))


def _is_power_of_two(given: Any) -> bool:
    return isinstance(given, (int, float)) and given != 0 and math.frexp(abs(given))[0] == 0.5


@lowers("aten::square")
def _square(low: Lowering, node, self_: Value) -> Value:
    name = low.cast_name(self_.name, DTYPES[node.meta["val"].dtype])  # of bools it is i64
    return low.emit_like(node, "mul", [name, name], self_)


@lowers("aten::reciprocal")
def _reciprocal(low: Lowering, node, self_: Value) -> Value:
    return low.emit_like(node, "div", [1.0, self_.name], self_)


@lowers("aten::clamp", "aten::clamp_min", "aten::clamp_max")
def _clamp(low: Lowering, node, self_: Value, **limits: Any) -> Value:
    for name, op in (("min", "maximum"), ("max", "minimum")):
        if isinstance(limits.get(name), (Value, torch.SymInt, torch.SymFloat)):
            self_ = low.elementwise(node, op=op, self_=self_, other=limits.pop(name))
    given = {name: number(value) for name, value in limits.items() if value is not None}
    # What the dtype does not hold cuts nothing: PyTorch refuses what would cut all.
    dtype = low.dtypes[self_.name]
    attrs = {name: value for name, value in given.items() if value == number(value, dtype)}
    if not attrs:
        return self_
    return low.emit_like(node, "clamp", [self_.name], self_, **attrs)


@lowers("aten::gelu")
def _gelu(low: Lowering, node, self_: Value, approximate: str) -> Value:
    return low.emit_like(node, "gelu", [self_.name], self_, approximate=approximate)


@lowers("aten::softplus")
def _softplus(low: Lowering, node, self_: Value, beta: float, threshold: float) -> Value:
    return low.emit_like(node, "softplus", [self_.name], self_, beta=beta, threshold=threshold)


def _filled(low: Lowering, node, value: Any) -> Value:
    tensor = node.meta["val"]
    dtype = DTYPES[tensor.dtype]
    value = low.scalar(value)
    if isinstance(value, Value):
        return Value(low.cast(value, dtype).name, (None,) * tensor.ndim)
    value = number(value, dtype)
    return Value(low.emit("full", [], dtype, [], value=value, dtype=dtype), (None,) * tensor.ndim)


@lowers("aten::full", "aten::full_like", "aten::new_full")
def _full(low: Lowering, node, fill_value: Any, **_: Any) -> Value:
    return _filled(low, node, fill_value)


@lowers("aten::scalar_tensor")
def _scalar(low: Lowering, node, s: Any, **_: Any) -> Value:
    return _filled(low, node, s)


@lowers("aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::new_empty", "aten::empty")
@lowers("aten::empty_permuted")
def _zeros(low: Lowering, node, **_: Any) -> Value:
    return _filled(low, node, 0)


@lowers("aten::ones", "aten::ones_like", "aten::new_ones")
def _ones(low: Lowering, node, **_: Any) -> Value:
    return _filled(low, node, 1)


@lowers("aten::arange")
def _arange(low: Lowering, node, end: Any, start: Any = 0, step: Any = 1, **_: Any) -> Value:
    tensor = node.meta["val"]
    dtype, shape = DTYPES[tensor.dtype], low.extents(tensor.shape)
    if low.is_apart(shape[0]):
        if step != 1 or shape != low.shapes["positions"]:
            raise Unsupported("arange over the tokens, which belong to several sequences")
        name = low.cast_name("positions", dtype)  # what a model of one sequence means
        if start != 0:
            name = low.emit("add", [name, number(start)], dtype, shape)
        low.places.add(name)
        return Value(name, (0,))
    given = [each for each in (start, end, step) if isinstance(each, float)]
    if dtype in FLOATS and not all(map(float.is_integer, given)):  # a graph's has integers alone
        places = low.emit("arange", [], "f32", shape, start=0, end=shape[0], step=1, dtype="f32")
        made = low.emit("mul", [places, number(step)], "f32", shape)
        made = low.emit("add", [made, number(start)], "f32", shape)
        return Value(low.cast_name(made, dtype), (0,))
    attrs = {"start": low.extent(start), "end": low.extent(end), "step": low.extent(step)}
    return Value(low.emit("arange", [], dtype, shape, dtype=dtype, **attrs), (0,))


def _is_float(low: Lowering, value: Value) -> bool:
    return low.dtypes[value.name] in FLOATS


class _Elements:
    """Writes an expression of one tensor in f32, or of integers as they are. Operands are names and
    numbers."""

    def __init__(self, low: Lowering, node: Any, x: Value):
        self._low, self._node, self._value = low, node, x
        self.dtype = "f32" if _is_float(low, x) else low.dtypes[x.name]
        self.x = low.cast_name(x.name, self.dtype)

    def __call__(self, op: str, *operands: Any) -> str:
        return self._low.emit(op, operands, self.dtype, self._low.shapes[self.x])

    def is_true(self, op: str, *operands: Any) -> str:
        return self._low.emit(op, operands, "bool", self._low.shapes[self.x])

    def result(self, name: str) -> Value:
        """Rounded once to the traced dtype."""
        dtype = DTYPES[self._node.meta["val"].dtype]
        return Value(self._low.cast_name(name, dtype), self._value.axes)


def _floats(low: Lowering, node: Any, x: Value) -> _Elements:
    """The same of a function that makes floats of integers."""
    return _Elements(low, node, x if _is_float(low, x) else low.cast(x, "f32"))


def _ceil_of(e: _Elements, x: str) -> str:
    return e("neg", e("floor", e("neg", x)))


def _trunc_of(e: _Elements, x: str) -> str:
    return e("where", e.is_true("lt", x, 0.0), _ceil_of(e, x), e("floor", x))


@lowers("aten::ceil", "aten::trunc", "aten::fix")
def _rounded(low: Lowering, node, self_: Value) -> Value:
    if not _is_float(low, self_):
        return self_
    e = _Elements(low, node, self_)
    is_ceil = node.target._schema.name == "aten::ceil"
    return e.result(_ceil_of(e, e.x) if is_ceil else _trunc_of(e, e.x))


@lowers("aten::pow")
def _pow(low: Lowering, node, self_: Any, exponent: Any) -> Value:
    """Of integers by squares; those of floats are an op."""
    dtype = DTYPES[node.meta["val"].dtype]
    if dtype in FLOATS:
        return low.elementwise(node, op="pow", self_=self_, exponent=exponent)
    if not isinstance(self_, Value) or not isinstance(exponent, int) or not 0 <= exponent < 64:
        raise Unsupported(f"pow in {dtype} whose exponent is no number from 0 to 63")
    e = _Elements(low, node, low.cast(self_, dtype))
    result, square = None, e.x
    while exponent:
        if exponent % 2:
            result = square if result is None else e("mul", result, square)
        exponent //= 2
        square = e("mul", square, square) if exponent else square
    if result is None:
        shape = low.shapes[e.x]
        result = low.emit("full", [], dtype, shape, value=1, dtype=dtype, shape=shape)
    return e.result(result)


@lowers("aten::fmax", "aten::fmin")
def _of_numbers(low: Lowering, node, self_: Value, other: Value) -> Value:
    """A NaN gives way to the other."""
    op = "maximum" if node.target._schema.name == "aten::fmax" else "minimum"
    dtype = DTYPES[node.meta["val"].dtype]
    if dtype not in FLOATS:
        return low.elementwise(node, op=op, self_=self_, other=other)
    whole = low.extents(node.meta["val"].shape)
    (x, y), axes = low.aligned(low.promoted([self_, other]), whole)
    value = Value("", axes)
    best = low.emit_like(node, op, [x, y], value).name
    for each, rest in ((x, y), (y, x)):
        is_none = low.emit("isnan", [each], "bool", low.shapes[each])
        best = low.emit("where", [is_none, rest, best], dtype, low.shapes[best])
    return Value(best, axes)


@lowers("aten::remainder", "aten::fmod")
def _remainder(low: Lowering, node, self_: Any, other: Any) -> Value:
    """Of floats by a power of two from 1 on, for which quotient and product are exact."""
    op = node.target._schema.name.removeprefix("aten::")
    if not (isinstance(self_, Value) and _is_float(low, self_)):
        return low.elementwise(node, op=op, self_=self_, other=other)
    if not _is_power_of_two(other) or abs(other) < 1:
        raise Unsupported(f"{op} of floats by what is no power of two from 1 on")
    e = _Elements(low, node, self_)
    ratio = e("div", e.x, float(other))
    quotient = _trunc_of(e, ratio) if op == "fmod" else e("floor", ratio)
    return e.result(e("sub", e.x, e("mul", quotient, float(other))))


@lowers("aten::log2", "aten::log10")
def _log_of_base(low: Lowering, node, self_: Value) -> Value:
    e = _floats(low, node, self_)
    base = 2 if node.target._schema.name == "aten::log2" else 10
    return e.result(e("mul", e("log", e.x), 1 / math.log(base)))


@lowers("aten::exp2")
def _exp2(low: Lowering, node, self_: Value) -> Value:
    e = _floats(low, node, self_)
    return e.result(e("pow", 2.0, e.x))


@lowers("aten::elu")
def _elu(low: Lowering, node, self_: Value, alpha=1, scale=1, input_scale=1) -> Value:
    e = _Elements(low, node, self_)
    scaled = e("mul", e.x, float(input_scale))
    below = e("mul", e("expm1", scaled), float(alpha * scale))
    above = e("mul", e.x, float(scale))
    return e.result(e("where", e.is_true("le", e.x, 0.0), below, above))


@lowers("aten::leaky_relu")
def _leaky_relu(low: Lowering, node, self_: Value, negative_slope: float = 0.01) -> Value:
    e = _Elements(low, node, self_)
    below = e("mul", e.x, float(negative_slope))
    return e.result(e("where", e.is_true("gt", e.x, 0.0), e.x, below))


@lowers("aten::hardtanh")
def _hardtanh(low: Lowering, node, self_: Value, min_val: Any = -1, max_val: Any = 1) -> Value:
    return _clamp(low, node, self_, min=min_val, max=max_val)


@lowers("aten::fill")
def _fill(low: Lowering, node, self_: Value, value: Any) -> Value:
    if isinstance(value, Value):
        return _copy(low, node, self_, value)
    return _filled(low, node, value)
