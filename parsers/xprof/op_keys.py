"""Which instruction of which program each device row ran: the pair (program id, op name).

Module and op name are no key: several programs may share the name of a module and the names of its ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview.building import NO_KEY

from .details import NONE
from .distinct import distinct_pairs
from .lanes import Lane, Owner, lane_of
from .programs import OpKey, Origins
from .rows import NULL, integers, labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .programs import Programs
    from .rows import PlaneRows

_DELIMITER = "\u001f"
_MANY = (_DELIMITER, "::", ";")


def find_origins(parts: list[PlaneRows], programs: Programs, row_count: int) -> tuple[Origins, NDArray[np.uint32]]:
    """The distinct XLA ops of a file, and for each row the index of its op or :data:`.details.NONE`."""
    origin_of = np.full(row_count, NONE, np.uint32)
    keys: dict[OpKey, int] = {}
    for rows in parts:
        if rows.place.owner in (Owner.NONE, Owner.OTHER):
            continue
        program_id = integers(rows.plane, "program_id")
        if program_id is None:
            continue
        codes, names = _op_names(rows)
        chosen = np.flatnonzero((program_id != NULL) & (codes > 0) & rows.keep)
        if not len(chosen):
            continue
        pairs, inverse = distinct_pairs(program_id[chosen], codes[chosen])
        table = np.array(
            [keys.setdefault(OpKey(program, _last(names[code])), len(keys)) for program, code in pairs], np.uint32
        )
        origin_of[rows.base + chosen] = table[inverse]
    return Origins(programs, keys), origin_of


def _op_names(rows: PlaneRows) -> tuple[NDArray[np.uint32], list[str]]:
    """Code of the op of each row, 0 for none, and the texts of the codes."""
    if rows.place.owner is not Owner.TPU:
        codes, names = labels(rows.plane, "hlo_op")
        if rows.place.owner is Owner.HOST:
            codes = np.where(rows.device == NO_KEY, np.uint32(0), codes)
        return codes, [name or "" for name in names]
    codes = np.zeros(len(rows), np.uint32)
    for line in rows.plane.lines:
        if lane_of(rows.place, line) is Lane.OPS:
            codes[line.first : line.stop] = rows.plane.name_of[line.first : line.stop] + np.uint32(1)
    return codes, ["", *(entry.display_name or entry.name for entry in rows.plane.names)]


def _last(name: str) -> str:
    """The op itself: nested computations are recorded as a list from outside to inside."""
    for mark in _MANY:
        name = name.rpartition(mark)[2] or name
    return name
