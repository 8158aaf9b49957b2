"""Which devices a table shows where there are more than a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from traceview.render.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Row = TypeVar("_Row")

MOST_DEVICES: Final = 16


def most_idle(rows: Sequence[_Row], idle_ns: Callable[[_Row], float]) -> tuple[list[_Row], tuple[str, ...]]:
    """The rows of the devices that stood idle longest, in their order, and a remark on the others.

    Args:
        rows: One row per device.
        idle_ns: How long the device of a row stood idle.
    """
    if len(rows) <= MOST_DEVICES:
        return list(rows), ()
    longest = sorted(range(len(rows)), key=lambda at: (-idle_ns(rows[at]), at))[:MOST_DEVICES]
    left = counted(len(rows) - MOST_DEVICES, "more device")
    remark = f"The {MOST_DEVICES} devices that stood idle longest; {left}: --format json lists all."
    return [rows[at] for at in sorted(longest)], (remark,)
