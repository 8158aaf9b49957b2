"""The recorded shape of an op's first tensor."""

from __future__ import annotations

import json


def first_shape(dims: str | None) -> tuple[int, ...] | None:
    """Shape of the first argument, or ``None`` if it is not recorded or no shape of integers.

    Args:
        dims: ``dims`` of :data:`traceview.schema.INPUTS`: JSON text, a list with the dimension list of each argument.
    """
    if dims is None:
        return None
    try:
        arguments = json.loads(dims)
    except ValueError:
        return None
    first = arguments[0] if isinstance(arguments, list) and arguments else None
    if not isinstance(first, list) or not first or not all(type(size) is int for size in first):
        return None
    return tuple(first)
