"""The traces that come with traceview: what there is, what each shows, and where its files are.

They lie in ``sample_traces/`` of the repository and beside this module in an installed package. ``catalogue.toml``
there describes them; a note and a table of right answers lie beside each file.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from traceview.errors import UsageError

CATALOGUE: Final = "catalogue.toml"
SHOWS: Final = (
    "check-dispatch", "explain", "report", "stages", "steps", "kernels", "gaps", "recompiles", "transfers", "ranks",
)  # fmt: skip
"""What a sample can be good for: a command, or several ranks of one run."""

_HERE: Final = Path(__file__).resolve().parent
_FOLDERS: Final = (_HERE / "sample_traces", _HERE.parent / "sample_traces")
"""Where an installed package has them, and where a checkout does."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample.

    Attributes:
        name: What it is called by.
        title: A few words.
        story: What is to be seen in it, one sentence.
        format: Name of the format, as :attr:`traceview.formats.Format.name`.
        device: What it ran on, or pretends to.
        paths: Its files; several are the ranks of one run.
        shows: What it is good for, of :data:`SHOWS`.
        authored: It was written by a program with chosen times. Else it is a real recording.
        before: Name of the sample that shows the same program before a change; ``""``: none.
        after: Name of the sample that shows it after a change; ``""``: none.
    """

    name: str
    title: str
    story: str
    format: str
    device: str
    paths: tuple[Path, ...]
    shows: tuple[str, ...]
    authored: bool
    before: str = ""
    after: str = ""

    @property
    def notes(self) -> tuple[Path, ...]:
        """The note of each file: how it was made, what to look at, the right answers."""
        return tuple(_beside(path, ".md") for path in self.paths)

    @property
    def truths(self) -> tuple[Path, ...]:
        """The table of right answers of each file."""
        return tuple(_beside(path, ".truth.json") for path in self.paths)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two samples of one program, before and after a change.

    Attributes:
        name: What the pair is called by.
        before: Name of the sample before the change.
        after: Name of the sample after it.
        story: What changed, one sentence.
    """

    name: str
    before: str
    after: str
    story: str


def catalogue() -> tuple[Sample, ...]:
    """All samples, best first.

    Raises:
        UsageError: the samples are not installed.
    """
    return _read()[0]


def pairs() -> tuple[Pair, ...]:
    """All pairs of samples, best first.

    Raises:
        UsageError: the samples are not installed.
    """
    return _read()[1]


def find(name: str) -> Sample:
    """The sample of that name.

    Raises:
        UsageError: there is none, or the samples are not installed.
    """
    known = {sample.name: sample for sample in catalogue()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Is {near[0]} meant? " if near else ""
    raise UsageError(
        "no-such-sample",
        where=name,
        why="no sample has that name.",
        next_step=f"{hint}traceview samples lists them all.",
    )


def paths(name: str) -> tuple[Path, ...]:
    """Files of the sample of that name, ready for :func:`traceview.load`; several are the ranks of one run.

    Raises:
        UsageError: there is none, or the samples are not installed.
    """
    return find(name).paths


@cache
def _read() -> tuple[tuple[Sample, ...], tuple[Pair, ...]]:
    folder = next((one for one in _FOLDERS if (one / CATALOGUE).is_file()), None)
    if folder is None:
        raise UsageError(
            "no-samples", why="the sample traces are not installed with this traceview.",
            next_step="Install it from its wheel, or run it in a checkout of the repository.",
        )  # fmt: skip
    content = tomllib.loads((folder / CATALOGUE).read_text(encoding="utf-8"))
    found = tuple(Pair(**row) for row in content["pair"])
    before = {pair.after: pair.before for pair in found}
    after = {pair.before: pair.after for pair in found}
    return tuple(_sample(row, folder, before, after) for row in content["sample"]), found


def _sample(row: dict[str, Any], folder: Path, before: dict[str, str], after: dict[str, str]) -> Sample:
    name, files = row["name"], row["files"]
    return Sample(
        name=name, title=row["title"], story=row["story"], format=row["format"], device=row["device"],
        paths=tuple(folder / file for file in files), shows=tuple(row["shows"]),
        authored=all("-authored" in file for file in files),
        before=before.get(name, ""), after=after.get(name, ""),
    )  # fmt: skip


def _beside(path: Path, suffix: str) -> Path:
    name = path.name.removesuffix(".gz")
    for ending in (".json", ".sqlite", ".xplane.pb"):
        name = name.removesuffix(ending)
    return path.with_name(name + suffix)
