"""What is asked of the nodes that torch.export leaves."""

from typing import Any

import torch


class Unsupported(Exception):
    """What a handler cannot lower, for `CannotExport` to name."""


def arguments_of(node: torch.fx.Node) -> dict[str, Any]:
    """What a traced op is given, by the names in its schema, `self` as `self_`."""
    result = {}
    for i, argument in enumerate(node.target._schema.arguments):
        given = node.kwargs.get(argument.name, argument.default_value)
        if not argument.kwarg_only and i < len(node.args):
            given = node.args[i]
        result["self_" if argument.name == "self" else argument.name] = given
    return result


def dim_of(dim: int, rank: int) -> int:
    """A dim that counts from the front."""
    return dim + rank if dim < 0 else dim
