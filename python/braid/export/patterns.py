"""What models write as several ops and braid has as one: rms norms and rotary embeddings."""

import dataclasses
from typing import Any, Iterator

from .lower import Lowering

Found = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Op:
    """A node with this op. Operands are such nodes, numbers, or the names of variables, which take any
    value; of `add` and `mul` they may come in either order. `bind` names the node itself. Without the
    node, an `optional` one is its operand. `part` is the result that is used."""

    op: str
    operands: tuple[Any, ...]
    bind: str = ""
    optional: bool = False
    part: str = ""


def _op(op: str, *operands: Any, bind: str = "", part: str = "") -> _Op:
    return _Op(op, operands, bind=bind, part=part)


def _maybe(op: str, operand: Any) -> _Op:
    return _Op(op, (operand,), optional=True)


def _normed(squares: _Op) -> _Op:
    mean = _op("mean", squares, bind="mean")
    scale = _maybe("view", _op("rsqrt", _op("add", mean, "eps")))
    return _op("mul", "x", scale, bind="scaled")


# As models of several families write it, the longest first.
_RMS_NORMS = [
    pattern
    for normed in (_normed(_op("pow", "x", 2)), _normed(_op("mul", "x", "x")))
    for pattern in (
        _op("to", _op("mul", "weight", normed)),  # OLMo 2
        _op("mul", "weight", _maybe("to", normed)),  # Llama; Gemma, with a weight of 1 + w
        _op("to", normed),
        normed,
    )
]

_TURNED = _op("cat", _op("neg", _op("slice", "x", bind="high")), _op("slice", "x", bind="low"))
_ROTATED = _op("add", _op("mul", "x", "cos"), _op("mul", _TURNED, "sin"))
_A, _B = _op("split", "x", part="0", bind="low"), _op("split", "x", part="1", bind="low")
_ROTATED_HALVES = _op(
    "cat",
    _op("sub", _op("mul", _A, "cos"), _op("mul", _B, "sin")),
    _op("add", _op("mul", _B, "cos"), _op("mul", _A, "sin")),
)
_PAIRS = _op(
    "cat",
    _op("view", _op("neg", _op("slice", "x", bind="high"))),
    _op("view", _op("slice", "x", bind="low")),
    bind="pairs",
)
_ROTATED_PAIRS = _op("add", _op("mul", "x", "cos"), _op("mul", _op("view", _PAIRS), "sin"))
_TWICE_IN_PAIRS = _op("view", _op("expand", _op("view", "x"), bind="wide"))
# Ops that keep it true that the halves, or the neighbours, of a row are equal.
_OF_EACH_ELEMENT = {"cos", "sin", "to", "mul", "view"}


class Rewriting:
    """Rewrites a lowered graph in place."""

    def __init__(self, lowering: Lowering):
        self._low = lowering
        self._graph = lowering.graph
        self._made = {node["name"]: node for node in self._graph.nodes}
        self._narrower: dict[tuple[str, bool], str | None] = {}

    def run(self) -> None:
        self._low.forget()
        for node in reversed(self._graph.nodes):  # a part of a norm may look like one
            self._rms_norm(node)
        self._drop_unused()
        old, self._graph.nodes = self._graph.nodes, []
        for node in old:
            self._low.enter(node["name"].rpartition(".")[0])
            self._rotary(node)
            self._graph.nodes.append(node)
        self._drop_unused()
        self._name_anew()

    def _match(self, pattern: Any, value: Any, found: Found) -> Iterator[Found]:
        """All ways in which a value is what the pattern says."""
        if isinstance(pattern, str):
            if pattern not in found:
                yield {**found, pattern: value}
            elif found[pattern] == value:
                yield found
            return
        if not isinstance(pattern, _Op):
            if not isinstance(value, str) and value == pattern:
                yield found
            return
        if pattern.optional:
            skipped = self._match(pattern.operands[0], value, found)
        else:
            skipped = iter(())
        name, _, part = value.partition(":") if isinstance(value, str) else ("", "", "")
        node = self._made.get(name)
        if node is not None and node["op"] == pattern.op and part == pattern.part:
            if pattern.bind:
                found = {**found, pattern.bind: node}
            orders = [node["inputs"]]
            if pattern.op in ("add", "mul"):
                orders.append(node["inputs"][::-1])
            for operands in orders:
                if len(operands) == len(pattern.operands):
                    yield from self._match_all(pattern.operands, operands, found)
        yield from skipped

    def _match_all(self, patterns: Any, values: Any, found: Found) -> Iterator[Found]:
        if not patterns:
            yield found
            return
        for each in self._match(patterns[0], values[0], found):
            yield from self._match_all(patterns[1:], values[1:], each)

    def _rms_norm(self, node: dict[str, Any]) -> None:
        dtype = self._low.dtypes[node["name"]]
        for pattern in _RMS_NORMS:
            for found in self._match(pattern, node["name"], {}):
                shape = self._low.shapes[found["x"]]
                operands = [self._narrow(found["x"], dtype)]
                if "weight" in found:
                    operands.append(found["weight"])
                x, scale = found["scaled"]["inputs"]
                if (
                    isinstance(found["eps"], float)
                    and self._low.shapes[scale if x == found["x"] else x] == [*shape[:-1], 1]
                    and found["mean"]["attrs"]["dim"] == [len(shape) - 1]
                    and all(self._low.dtypes.get(each) == dtype for each in operands)
                    and all(self._low.shapes[each] == shape[-1:] for each in operands[1:])
                ):
                    self._replace(node, "rms_norm", operands, eps=found["eps"])
                    return

    def _narrow(self, value: str, dtype: str) -> str:
        """What a value was before it was widened, if that has the dtype."""
        made = self._made.get(value)
        if made is not None and made["op"] == "to":
            (before,) = made["inputs"]
            if self._low.dtypes[before] == dtype:
                return before
        return value

    def _rotary(self, node: dict[str, Any]) -> None:
        low, dtype = self._low, self._low.dtypes[node["name"]]
        for pattern in (_ROTATED, _ROTATED_HALVES, _ROTATED_PAIRS):
            for found in self._match(pattern, node["name"], {}):
                shape = low.shapes[node["name"]]
                if low.shapes[found["x"]] != shape or not isinstance(shape[-1], int):
                    continue
                if not self._splits_rows(found, shape):
                    continue
                pairs = pattern is _ROTATED_PAIRS
                tables = [found["cos"], found["sin"]]
                if pattern is not _ROTATED_HALVES:
                    tables = [self._once(table, shape[-1] // 2, pairs) for table in tables]
                if None in tables or any(low.dtypes[table] != dtype for table in tables):
                    continue
                if any(low.shapes[table][-1:] != [shape[-1] // 2] for table in tables):
                    continue
                x = low.cast_name(found["x"], dtype)
                attrs = {"interleaved": True} if pairs else {}
                self._replace(node, "rotary_embedding", [x, *tables], **attrs)
                return

    def _splits_rows(self, found: Found, shape: list[Any]) -> bool:
        """Whether the parts are the halves of the last dim, or its elements in turn."""
        last, half = len(shape) - 1, shape[-1] // 2
        low = found["low"]["attrs"]
        if "high" not in found:
            return low == {"dim": last, "split_size": half}
        high = found["high"]["attrs"]
        if low["dim"] != last or high["dim"] != last:
            return False
        parts = [(a["start"], a.get("end", 2 * half), a.get("step", 1)) for a in (low, high)]
        if "pairs" not in found:
            return parts == [(0, half, 1), (half, 2 * half, 1)]
        pairs = found["pairs"]
        return (
            parts == [(0, 2 * half, 2), (1, 2 * half, 2)]
            and pairs["attrs"]["dim"] == last + 1
            and all(self._low.shapes[each][-2:] == [half, 1] for each in pairs["inputs"])
        )

    def _once(self, value: str, width: int, pairs: bool) -> str | None:
        """Rows of this width whose elements the value's rows have twice: in its halves, or as
        neighbours where there are `pairs`. None where they may not."""
        key = (value, pairs)
        if key not in self._narrower:
            self._narrower[key] = self._made_once(value, width, pairs)
        return self._narrower[key]

    def _made_once(self, value: str, width: int, pairs: bool) -> str | None:
        node, shape = self._made.get(value), self._low.shapes[value]
        if node is None or shape[-1:] != [2 * width]:
            return None
        if pairs:
            for found in self._match(_TWICE_IN_PAIRS, value, {}):
                if found["wide"]["attrs"]["shape"][-2:] == [width, 2]:
                    if self._low.shapes[found["x"]] == shape[:-1] + [width]:
                        return found["x"]
        elif node["op"] == "cat":
            for found in self._match(_op("cat", "x", "x"), value, {}):
                return found["x"] if node["attrs"]["dim"] == len(shape) - 1 else None
        tensors = [each for each in node["inputs"] if isinstance(each, str)]
        if node["op"] not in _OF_EACH_ELEMENT or len(tensors) != 1:
            return None
        once = self._once(tensors[0], width, pairs)
        if once is None:
            return None
        attrs = dict(node.get("attrs", {}))
        shape = [*shape[:-1], width]
        self._low.enter(value.rpartition(".")[0])
        if node["op"] == "view":
            attrs["shape"] = shape
        inputs = [once if each == tensors[0] else each for each in node["inputs"]]
        return self._low.emit(node["op"], inputs, self._low.dtypes[value], shape, **attrs)

    def _replace(self, node: dict[str, Any], op: str, operands: list[str], **attrs: Any) -> None:
        node["op"], node["inputs"] = op, operands
        node.pop("attrs", None)
        if attrs:
            node["attrs"] = attrs

    def _drop_unused(self) -> None:
        used = set(self._graph.outputs)
        kept = []
        for node in reversed(self._graph.nodes):
            if node["name"] in used or node["op"] == "append_kv":
                kept.append(node)
                used |= {each.partition(":")[0] for each in node["inputs"] if isinstance(each, str)}
        self._graph.nodes = kept[::-1]
        self._graph.inputs = [
            each
            for each in self._graph.inputs
            if each["kind"] != "parameter" or each["name"] in used
        ]
        self._made = {node["name"]: node for node in self._graph.nodes}

    def _name_anew(self) -> None:
        """After module and op, and numbered where a module has several."""
        names: dict[str, str] = {}
        count: dict[str, int] = {}
        taken = {*self._graph.outputs, *(each["name"] for each in self._graph.inputs)}
        for node in self._graph.nodes:
            if node["name"] in self._graph.outputs:
                names[node["name"]] = node["name"]
                continue
            module = node["name"].rpartition(".")[0]
            stem = name = f"{module}.{node['op']}" if module else node["op"]
            while name in taken:
                count[stem] = count.get(stem, 1) + 1
                name = f"{stem}_{count[stem]}"
            taken.add(name)
            names[node["name"]] = name
        for node in self._graph.nodes:
            node["name"] = names[node["name"]]
            for i, value in enumerate(node["inputs"]):
                if isinstance(value, str):
                    name, colon, part = value.partition(":")
                    node["inputs"][i] = names.get(name, name) + colon + part
