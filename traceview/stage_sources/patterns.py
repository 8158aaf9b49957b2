"""Stages from regular expressions of the user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.errors import UsageError
from traceview.stage_sources.found import NO_RANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from traceview.stage_sources.found import HostTree

_TIERS: Final = (("annotation",), ("module",), ("python",), ("op",))
"""What a pattern is compared with: the first of these in which it matches anything counts."""

_MOST_LENGTH: Final = 1_000


@dataclass(frozen=True, slots=True)
class StagePattern:
    """A stage of the user: work inside host ranges whose name matches belongs to it.

    Attributes:
        stage: Name of the stage; ``/`` stands between outer and inner.
        pattern: Regular expression (Rust syntax, as Polars has it), searched in names, capitals or not.
    """

    stage: str
    pattern: str

    @property
    def expression(self) -> str:
        """The expression as it is compared."""
        return f"(?i){self.pattern}"

    def problem(self) -> str | None:
        """What is wrong with it; ``None`` if nothing is."""
        if not self.stage.strip() or any(not part.strip() for part in self.stage.split("/")):
            return "the name of the stage is empty"
        if not self.pattern:
            return "the pattern is empty"
        if len(self.pattern) > _MOST_LENGTH:
            return f"the pattern is longer than {_MOST_LENGTH:,} characters"
        try:
            matches_nothing = pl.Series([""]).str.contains(self.expression)[0]
        except pl.exceptions.PolarsError as error:
            found = re.search(r"^error: (.+)$", str(error), re.MULTILINE)
            return f"no regular expression ({found[1] if found else 'too large'})"
        return "the pattern matches the empty text, so it would match every name" if matches_nothing else None


def stage_patterns(given: Iterable[str] | Mapping[str, str]) -> tuple[StagePattern, ...]:
    """Patterns as the user wrote them: ``"denoise=transformer|dit"``, or a mapping of stage to expression.

    Raises:
        UsageError: one of them is not of that form, or no regular expression.
    """
    pairs = given.items() if hasattr(given, "items") else [_split(text) for text in given]
    found = []
    for stage, pattern in pairs:
        one = StagePattern(stage.strip(), pattern)
        wrong = one.problem()
        if wrong:
            raise UsageError(
                "bad-stage-pattern",
                where=f"stage {stage.strip()[:60]!r}",
                why=f"{wrong}.",
                next_step="Write it as NAME=REGEX, e.g. 'denoise=transformer|dit'.",
            )
        found.append(one)
    return tuple(found)


def _split(text: str) -> tuple[str, str]:
    stage, equals, pattern = text.partition("=")
    if not equals:
        raise UsageError(
            "bad-stage-pattern",
            where=f"stage {text.strip()[:60]!r}",
            why="there is no = between the name of the stage and its pattern.",
            next_step="Write it as NAME=REGEX, e.g. 'denoise=transformer|dit'.",
        )
    return stage, pattern


def find(tree: HostTree, patterns: Sequence[StagePattern]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Host ranges that the patterns name, and which patterns named none.

    An event that several patterns match belongs to the first of them.

    Returns:
        A frame as :data:`traceview.stage_sources.found.STAGE_RANGES`, and the stages without a range.
    """
    if not patterns:
        return NO_RANGES, ()
    tiers = [_tier(tree, kinds) for kinds in _TIERS]
    parts, without = [], []
    for one in patterns:
        for rows, names in tiers:
            matching = names.filter(names.str.contains(one.expression))
            if len(matching):
                parts.append(
                    rows.filter(pl.col("name").is_in(matching.implode())).select("id", stage=pl.lit(one.stage))
                )
                break
        else:
            without.append(one.stage)
    if not parts:
        return NO_RANGES, tuple(without)
    return pl.concat(parts).unique("id", keep="first", maintain_order=True).sort("id"), tuple(without)


def _tier(tree: HostTree, kinds: tuple[str, ...]) -> tuple[pl.DataFrame, pl.Series]:
    is_module = pl.col("name").str.starts_with("nn.Module: ")
    if kinds == ("module",):
        rows = tree.named(("python",)).filter(is_module)
    elif kinds == ("python",):
        rows = tree.named(("python",)).filter(~is_module)
    else:
        rows = tree.named(kinds)
    return rows, rows["name"].unique(maintain_order=True)
