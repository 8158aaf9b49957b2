"""A page of text output: headings, aligned tables and remarks, the same look for every command."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from traceview.render.names import kernel_names, middle_cut, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PIPE_WIDTH: Final = 100
"""Columns when the output is no terminal."""

MOST_WIDTH: Final = 160
"""Wider lines are hard to follow, however wide the terminal."""

INDENT: Final = 2
GAP: Final = "  "

MOST_TEXT: Final = 4_000
"""Characters of one value or paragraph: a name in a trace can be of any length, and the JSON forms have all of it."""

_UNIT: Final = re.compile(r"(\d) (%|ns|us|ms|s)(?!\w)")
"""A number and its unit stay on one line."""

LEAST_NAME: Final = 16
"""Columns that a name keeps even where the row then does not fit."""


@dataclass(frozen=True, slots=True)
class Column:
    """A table column.

    Attributes:
        heading: Its heading, with the unit.
        number: Holds numbers, right-aligned.
        name: Holds kernel names, shortened to the space that the other columns leave.
    """

    heading: str
    number: bool = False
    name: bool = False


class _Console(Console):
    """A console that leaves a closed pipe to the program: Rich would end the process with exit code 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error on."""
        raise BrokenPipeError


class Page:
    """Writes one result.

    Args:
        file: Where to. Colour and width follow what it is; ``NO_COLOR`` and ``FORCE_COLOR`` are honoured.
        width: Columns; found out if not given.
        colour: Whether colour may be used; if not, neither the terminal nor ``FORCE_COLOR`` can ask for it.
    """

    def __init__(self, file: TextIO, *, width: int | None = None, colour: bool = True) -> None:
        found = Console(file=file, markup=False, highlight=False, emoji=False, soft_wrap=False)
        if width is None:
            width = min(found.width, MOST_WIDTH) if file.isatty() else PIPE_WIDTH
        self.width = max(width, 40)
        self._console = _Console(
            file=file,
            width=self.width,
            color_system="auto" if colour else None,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=False,
        )

    def verdict(self, text: str, style: str = "bold") -> None:
        """The answer in one or two sentences."""
        self._lines(text, style=style)

    def facts(self, facts: Iterable[tuple[str, str]], *, blank: bool = True) -> None:
        """``name  value`` lines; long values continue below their own start."""
        rows = [(name, _bounded(value)) for name, value in facts if value]
        if not rows:
            return
        if blank:
            self.blank()
        at = INDENT + max(len(name) for name, _ in rows) + 2
        for name, value in rows:
            joined = _UNIT.sub("\\1\u00a0\\2", value)
            first, *rest = textwrap.wrap(joined, max(self.width - at, 20), break_on_hyphens=False) or [""]
            self._print(Text.assemble(" " * INDENT, (name.ljust(at - INDENT), "dim"), first.replace("\u00a0", " ")))
            for line in rest:
                self._print(Text(" " * at + line.replace("\u00a0", " ")))

    def heading(self, text: str, style: str = "bold") -> None:
        """A section title, set off by an empty line."""
        self.blank()
        self._lines(text, style=style)

    def blank(self) -> None:
        """An empty line."""
        self._console.print()

    def remark(self, text: str) -> None:
        """A wrapped paragraph below a table."""
        self._lines(text, indent=INDENT, style="dim")

    def paragraph(self, text: str) -> None:
        """A wrapped paragraph of plain text under a heading."""
        self._lines(text, indent=INDENT)

    def bullet(self, text: str, style: str = "") -> None:
        """One item of a list."""
        self._lines(text, indent=INDENT, first="- ", style=style)

    def fits(self, columns: Sequence[Column], rows: Iterable[Sequence[str | Text]]) -> bool:
        """Whether a table would fit without any name being shortened."""
        cells = [[_cell(cell) for cell in row] for row in rows]
        widths = (
            max([cell_len(column.heading), *(row[at].cell_len for row in cells)]) for at, column in enumerate(columns)
        )
        return sum(widths) + len(GAP) * (len(columns) - 1) + INDENT <= self.width

    def table(
        self, columns: Sequence[Column], rows: Iterable[Sequence[str | Text] | str], *, least_name: int = 0
    ) -> None:
        """Rows under headings, numbers right-aligned; the name column is shortened so that each row fits.

        Args:
            columns: The columns.
            rows: One cell per column, or one text that stands above the rows it is about.
            least_name: If a name would get fewer columns than this, it stands on a line of its own above its row.
        """
        lines = [row if isinstance(row, str) else [_cell(cell) for cell in row] for row in rows]
        cells = [line for line in lines if not isinstance(line, str)]
        widths = [
            max([cell_len(column.heading), *(row[at].cell_len for row in cells)]) for at, column in enumerate(columns)
        ]
        for at, column in enumerate(columns):
            others = sum(widths) - widths[at] + len(GAP) * (len(columns) - 1) + INDENT
            if column.name and self.width - others < min(least_name, widths[at]):
                narrow = [*columns[:at], *columns[at + 1 :]]
                split = ((row[at].plain, [*row[:at], *row[at + 1 :]]) for row in cells)
                self.table(narrow, [line for name, row in split for line in (name, row)])
                return
            if column.name:
                widths[at] = min(widths[at], max(self.width - others, LEAST_NAME))
                short = kernel_names([row[at].plain for row in cells], widths[at])
                for row, name in zip(cells, short, strict=True):
                    row[at] = Text(name, row[at].style)
        self._row([Text(column.heading, style="dim") for column in columns], widths, columns)
        titles = [line for line in lines if isinstance(line, str)]
        short_titles = iter(kernel_names(titles, self.width - INDENT))
        for line in lines:
            if isinstance(line, str):
                self._print(Text(" " * INDENT + next(short_titles)))
            else:
                self._row(line, widths, columns)

    def _row(self, cells: Sequence[Text], widths: Sequence[int], columns: Sequence[Column]) -> None:
        line = Text(" " * INDENT)
        for at, (cell, width, column) in enumerate(zip(cells, widths, columns, strict=True)):
            space = " " * (width - cell.cell_len)
            line.append(GAP if at else "")
            line = line + Text.assemble(*((space, cell) if column.number else (cell, space)))
        self._print(line)

    def _lines(self, text: str, *, indent: int = 0, first: str = "", style: str = "") -> None:
        lead = " " * indent
        wrapped = textwrap.wrap(
            _UNIT.sub("\\1\u00a0\\2", _bounded(text)),
            self.width,
            initial_indent=lead + first,
            subsequent_indent=lead + " " * len(first),
            break_on_hyphens=False,
        )
        for line in wrapped:
            self._print(Text(line.replace("\u00a0", " "), style=style))

    def _print(self, text: Text) -> None:
        text.rstrip()
        self._console.print(text, soft_wrap=True)


def _bounded(text: str) -> str:
    """Safe to print, and no longer than anybody reads; cut before it is made safe, as that makes it longer."""
    return middle_cut(plain(middle_cut(text, MOST_TEXT)), MOST_TEXT)


def _cell(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(plain(cell))
