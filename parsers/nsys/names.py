"""Names by id: the table ``StringIds``, and texts written beside it.

Names become Categorical through the distinct ids that a table uses, so that a name is looked at once however often it
occurs. Strings that no event uses (program output, environment blocks) are never kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from traceview.parsers.nsys.tables import STRINGS
from traceview.timeline import Count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from traceview.parsers.nsys.tables import Tables


class Names:
    """The strings of one export.

    Args:
        tables: The export.
        used: Columns of name ids; only strings with one of these ids are kept.

    Attributes:
        missing: Number of ids that were asked for and are not in the table, with an example.
    """

    def __init__(self, tables: Tables, used: Iterable[pl.Series]) -> None:
        self._texts: dict[int, str] = {}
        self.missing: dict[str, Count] = {}
        distinct = [column.drop_nulls().unique() for column in used]
        self.add(tables, pl.concat(distinct) if distinct else pl.Series(dtype=pl.Int64))

    def add(self, tables: Tables, ids: pl.Series) -> None:
        """Keep more strings.

        Args:
            tables: The export.
            ids: The ids of strings; null for none.
        """
        wanted = ids.drop_nulls().unique()
        strings = tables.read(STRINGS, ("id",), ("value",))
        strings = strings.filter(pl.col("id").is_in(wanted.implode())).unique("id", keep="first", maintain_order=True)
        self._texts |= {
            key: text if text is not None else "" for key, text in strings.select("id", "value").iter_rows()
        }

    def unknown(self, ids: pl.Series) -> pl.Series:
        """Which rows have no string, or an empty one."""
        distinct, position = distinct_of(ids)
        return pl.Series(np.array([not self._texts.get(key) for key in distinct] + [True], np.bool_)[position])

    def text(self, key: int | None) -> str | None:
        """One string, ``None`` if it is not in the export."""
        return None if key is None else self._texts.get(key)

    def categorical(self, ids: pl.Series, *, what: str, clean: Callable[[str], str] | None = None) -> pl.Series:
        """The names of a column of ids, as Categorical without nulls.

        Args:
            ids: Int64; an id that is null or has no string is named after ``what``.
            what: What the rows are, e.g. ``"kernel"``.
            clean: Applied to each distinct name.
        """
        distinct, position = distinct_of(ids)
        texts, lost = [], np.zeros(len(distinct) + 1, np.bool_)
        for at, key in enumerate(distinct):
            text = self._texts.get(key)
            lost[at] = not text
            texts.append(f"unnamed {what}" if not text else clean(text) if clean else text)
        texts.append(f"unnamed {what}")
        lost[-1] = True
        unnamed = int(lost[position].sum()) if lost[:-1].any() or ids.null_count() else 0
        if unnamed:
            before = self.missing.get("lost-name", Count(0, f"{what} without a name"))
            self.missing["lost-name"] = Count(before.n + unnamed, before.example)
        return pl.Series(texts).cast(pl.Categorical).gather(pl.Series(position))


def distinct_of(values: pl.Series) -> tuple[list[int], NDArray[np.uint32]]:
    """The distinct integers of a column and, for each row, the position of its value; the end stands for null."""
    known = values.drop_nulls().unique().sort()
    keys = known.to_numpy()
    if not len(keys):
        return [], np.zeros(len(values), np.uint32)
    rows = values.fill_null(int(keys[0])).to_numpy()
    span = int(keys[-1]) - int(keys[0])
    if span < 8 * len(keys) + (1 << 20):
        # Ids are dense: a table of positions is faster than a search.
        place = np.zeros(span + 1, np.uint32)
        place[keys - keys[0]] = np.arange(len(keys), dtype=np.uint32)
        position = place[rows - keys[0]]
    else:
        position = np.searchsorted(keys, rows).astype(np.uint32)
    if values.null_count():
        position[values.is_null().to_numpy()] = len(keys)
    return known.to_list(), position
