"""What a timeline file says beside its frames, as JSON: the runs and the import report, and back again, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from traceview.timeline import Count, DeviceLoss, ImportReport, Note, RunInfo, Trust

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST_RUNS: Final = 1 << 16
_FACTS: Final = ("format", "producer", "producer_version", "origin_unix_ns", "rank", "world_size")


class UnfitFileError(ValueError):
    """The file is no timeline that can be read; the text says why."""


def written_run(run: RunInfo) -> dict[str, Any]:
    """A run as JSON values. Of its path only the last part: folders name people and machines."""
    facts = {name: getattr(run, name) for name in _FACTS}
    return {"file": run.path.name, **facts, "metadata": _tagged(run.metadata)}


def read_runs(values: Any, paths: Sequence[Path]) -> tuple[RunInfo, ...]:
    """The runs again.

    Args:
        values: A list of what :func:`written_run` returned.
        paths: The path of each run, or one for all.

    Raises:
        UnfitFileError: that is no list of runs.
    """
    if not isinstance(values, list) or not 0 < len(values) <= MOST_RUNS or len(paths) not in (1, len(values)):
        raise UnfitFileError("the list of runs is missing or damaged")
    every = list(paths) if len(paths) == len(values) else list(paths) * len(values)
    return tuple(_run(value, path) for value, path in zip(values, every, strict=True))


def _run(value: Any, path: Path) -> RunInfo:
    if not isinstance(value, dict):
        raise UnfitFileError("a run is no object")
    metadata = _untagged(value.get("metadata"))
    if not isinstance(metadata, dict):
        raise UnfitFileError("the metadata of a run are no object")
    return RunInfo(
        path=path,
        format=_text(value.get("format"), "format"),
        producer=_text(value.get("producer"), "producer"),
        producer_version=_maybe(value.get("producer_version"), str, "producer_version"),
        origin_unix_ns=_maybe(value.get("origin_unix_ns"), int, "origin_unix_ns"),
        rank=_maybe(value.get("rank"), int, "rank"),
        world_size=_maybe(value.get("world_size"), int, "world_size"),
        metadata=metadata,
    )


def written_report(report: ImportReport) -> dict[str, Any]:
    """An import report as JSON values."""
    loss = report.device_loss
    return {
        "counts": {kind: [count.n, count.example] for kind, count in report.counts.items()},
        "notes": [[note.kind, note.text, note.trust.value] for note in report.notes],
        "truncated": report.truncated,
        "device_loss": [loss.least, loss.most] if loss else None,
    }


def read_report(value: Any) -> ImportReport:
    """The import report again.

    Raises:
        UnfitFileError: that is no import report.
    """
    try:
        counts = {_text(kind, "kind"): Count(_number(n), _text(example, "example"))
                  for kind, (n, example) in value["counts"].items()}  # fmt: skip
        notes = tuple(
            Note(_text(kind, "kind"), _text(text, "text"), Trust(trust)) for kind, text, trust in value["notes"]
        )
        loss = value["device_loss"]
        device_loss = None if loss is None else DeviceLoss(_number(loss[0]), _number(loss[1]))
        return ImportReport(counts, notes, value["truncated"] is True, device_loss)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise UnfitFileError("the import report is damaged") from error


def _tagged(value: Any) -> Any:
    """JSON has no tuples; a metadata value that is one must come back as one."""
    if isinstance(value, tuple):
        return {"tuple": [_tagged(one) for one in value]}
    if isinstance(value, list):
        return [_tagged(one) for one in value]
    if hasattr(value, "items"):
        return {"object": [[str(key), _tagged(one)] for key, one in value.items()]}
    return value


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(one) for one in value]
    if not isinstance(value, dict):
        return value
    try:
        if "tuple" in value:
            return tuple(_untagged(one) for one in value["tuple"])
        return {_text(key, "key"): _untagged(one) for key, one in value["object"]}
    except (KeyError, TypeError) as error:
        raise UnfitFileError("the metadata of a run are damaged") from error


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise UnfitFileError(f"{name} is no text")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnfitFileError("a count is no whole number")
    return value


def _maybe(value: Any, kind: type, name: str) -> Any:
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise UnfitFileError(f"{name} is damaged")
    return value
