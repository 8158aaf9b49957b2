"""Stages from the named scopes of compiled XLA programs.

An XLA op keeps the path of the scopes that it was traced in, as ``op_name``:
``jit(step)/denoiser/mlp/dot_general``. The last part is the primitive, wrappers such as ``jit(…)`` are transformations.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.capture_info import MARK_PREFIX
from traceview.stage_sources.found import MOST_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview.stage_sources.patterns import StagePattern
    from traceview.timeline import Timeline

KEYS: Final = ("op_name", "tf_op", "level 0")
"""Arguments that hold the path of scopes, best first: the program says more than the event, where it is recorded.
``level 0`` is the op of a kernel in profiles of TensorFlow on GPUs (seen in one of 2020)."""

_TRANSPARENT: Final = re.compile(
    r"^(?:jit|pjit|xmap|pmap|vmap|remat|checkpoint|shard_map|custom_jvp|custom_vjp|core_call|xla_call)\(.*\)$"
    r"|^(?:while|cond|body|branch_\d+_fun|checkpoint|remat|rematted_computation|shard_map|closed_call|pjit|jit"
    r"|custom_vjp_call|custom_jvp_call|custom_vjp_call_jaxpr|core_call|xla_call|main)$"
)
_JVP: Final = re.compile(r"^(?P<back>transpose\()?jvp\((?P<inner>.*?)\)+$")
_NO_SCOPE: Final = re.compile(r"->|,|^\w+::")
"""Products in the words of einsum, and operators that another framework was traced through."""
_INDEX: Final = re.compile(r"[_.]?\d+$")
_FOUND: Final = {"id": pl.UInt32, "stage": pl.String, "by_user": pl.Boolean, "marked": pl.Boolean}
_SIGNIFICANT: Final = 0.05
_MOST_DEPTH: Final = 8


def find(timeline: Timeline, patterns: Sequence[StagePattern] = ()) -> pl.DataFrame:
    """Device rows whose scope is recorded: ``id``, ``stage``, and whether the user named it.

    ``by_user``: by a pattern; ``marked``: by marks in the program, which lie inside the stage of the launch.
    """
    empty = pl.DataFrame(schema=_FOUND)
    scoped = pl.DataFrame(schema={"id": pl.UInt32, "value": pl.String})
    for key in KEYS:
        detail = timeline.details.get(key)
        if detail is not None and detail.schema["value"] == pl.Categorical:
            more = detail.select("id", "value").join(scoped, on="id", how="anti")
            scoped = pl.concat([scoped, more.with_columns(pl.col("value").cast(pl.String))])
    rows = timeline.events.filter(pl.col("device").is_not_null()).select("id", "dur_ns").join(scoped, on="id")
    if not rows.height:
        return empty
    weights = rows.group_by("value").agg(pl.col("dur_ns").sum())
    paths = {value: scope_path(_text(value)) for value in weights["value"].to_list()}
    marks = {value: _marked(path) for value, path in paths.items()}
    # A program with marks is split by those alone: other scopes are inside or beside what its author named.
    stages = {path: _marked(path) for path in paths.values()} if any(marks.values()) else _cut(paths, weights)
    by_user = {value: _by_pattern(_text(value), patterns) for value in paths}
    found = pl.DataFrame(
        {
            "value": list(paths),
            "stage": [by_user[value] or stages[paths[value]] for value in paths],
            "by_user": [by_user[value] is not None for value in paths],
            "marked": [by_user[value] is None and marks[value] is not None for value in paths],
        },
        schema={"value": pl.String, "stage": pl.String, "by_user": pl.Boolean, "marked": pl.Boolean},
    )
    return rows.join(found, on="value", how="left").filter(pl.col("stage").is_not_null()).select(*_FOUND)


def scope_path(op_name: str) -> tuple[str, ...]:
    """The scopes of an op, outermost first, without wrappers, the primitive and numbers of layers.

    Work that differentiation added lies in ``backward``. ``()``: the op was traced outside every scope.
    """
    # Of an op fused from several the first counts.
    parts = op_name.split(";", maxsplit=1)[0].rstrip(": ").split("/")[:-1]
    scopes: list[str] = []
    backward = False
    for part in parts:
        wrapped = _JVP.match(part)
        if wrapped:
            backward = backward or bool(wrapped["back"])
            part = wrapped["inner"]
        if not part or _TRANSPARENT.match(part) or _NO_SCOPE.search(part):
            continue
        scope = _INDEX.sub("", part) or part
        if not scopes or scopes[-1] != scope:
            scopes.append(scope)
    return ("backward", *scopes) if backward else tuple(scopes)


def _marked(path: tuple[str, ...]) -> str | None:
    """The stage that ``traceview.capture.stage`` named while the program was traced; ``None``: none."""
    names = [scope.removeprefix(MARK_PREFIX) for scope in path if scope.startswith(MARK_PREFIX)]
    return "/".join(names) or None


def _text(value: str) -> str:
    try:
        text = json.loads(value)
    except ValueError:
        return value
    return text if isinstance(text, str) else value


def _by_pattern(op_name: str, patterns: Sequence[StagePattern]) -> str | None:
    if not patterns:
        return None
    names = pl.Series([op_name])
    return next((one.stage for one in patterns if names.str.contains(one.expression)[0]), None)


def _cut(paths: Mapping[str, tuple[str, ...]], weights: pl.DataFrame) -> dict[tuple[str, ...], str | None]:
    """Each path cut at the depth that splits the program: the first at which two scopes take some of the time."""
    heavy: dict[tuple[str, ...], int] = dict.fromkeys(paths.values(), 0)
    for value, ns in weights.iter_rows():
        heavy[paths[value]] += ns
    total = sum(heavy.values())
    depth = 0
    for at in range(1, _MOST_DEPTH + 1):
        level: dict[tuple[str, ...], int] = {}
        for path, ns in heavy.items():
            level[path[:at]] = level.get(path[:at], 0) + ns
        if len(level) > MOST_NAMES:
            break
        depth = at
        if sum(ns >= _SIGNIFICANT * total for path, ns in level.items() if path) > 1:
            break
    return {path: "/".join(path[:depth]) or None for path in heavy}
