"""Steps, the account of their time, and stages, as tables that text and Markdown share."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from traceview.accounting import HOST_PARTS, Part
from traceview.render.grids import Grid
from traceview.render.many_devices import most_idle
from traceview.render.names import UNATTRIBUTED, stage_name
from traceview.render.page import GAP, INDENT, LEAST_NAME, PIPE_WIDTH, Column
from traceview.render.units import counted, duration, durations, percent, together
from traceview.step_marks import StepSource

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import polars as pl

    from traceview.accounting import DeviceTime
    from traceview.report import Step
    from traceview.report_parts import Device
    from traceview.stage_table import StageTable
    from traceview.time_report import StepTimeline

MOST_STEPS: Final = 8
"""More steps than this are summed up instead of listed."""

MOST_STAGES: Final = 16

_CAUSE: Final = "idle: "


def accounting_grid(steps: StepTimeline, described: dict[int, Device]) -> Grid | None:
    """What the steady steps went to on each device, per step."""
    if not steps.devices:
        return None
    devices, others = most_idle(steps.devices, lambda one: (one.idle_ns + one.unattributed_ns) / one.steps)
    told = [_idle_as_one(one) for one in devices]
    parts = list(dict.fromkeys(name for own in told for name, ns in own.items() if ns or name == Part.IDLE.value))
    values = [[own.get(name, 0) / one.steps for name in parts] for one, own in zip(devices, told, strict=True)]
    walls = [one.wall_ns / one.steps for one in devices]
    unit, texts = durations(round(ns) for ns in [*walls, *(ns for row in values for ns in row)])
    cells = iter(texts[len(walls) :])
    rows = []
    for one, wall, row in zip(devices, texts, values, strict=False):
        share = [f"{next(cells)} ({percent(ns * one.steps / one.wall_ns if one.wall_ns else None)})" for ns in row]
        rows.append([_label(one.device, described), str(one.steps), wall, *share])
    hidden = [
        f"{_label(one.device, described)}: hidden behind other work, per step: "
        + ", ".join(
            f"{what} {duration(round(ns / one.steps))}"
            for what, ns in (("communication", one.hidden_collective_ns), ("copies", one.hidden_copy_ns))
            if ns
        )
        for one in devices
        if one.hidden_collective_ns or one.hidden_copy_ns
    ]
    return Grid(
        f"Time of a step on the device (mean, {unit})",
        (Column("device"), *(Column(name, number=True) for name in ("steps", "wall", *map(_heading, parts)))),
        rows,
        (*(f"{text}." for text in hidden), *others),
    )


def _idle_as_one(one: DeviceTime) -> dict[str, int]:
    """The parts with idle time as one of them: its causes would make the table too wide."""
    parts = {name: ns for name, ns in one.parts if not name.startswith(_CAUSE)}
    if one.idle_by_cause:
        unattributed = parts.pop(Part.UNATTRIBUTED.value, 0)
        parts[Part.IDLE.value] = sum(one.idle_by_cause.values())
        parts[Part.UNATTRIBUTED.value] = unattributed
    return parts


def idle_grid(steps: StepTimeline) -> Grid | None:
    """What the idle time of the steady steps is due to, per step, all devices together; ``None`` without causes."""
    totals: dict[str, float] = {}
    for one in steps.devices or ():
        for cause, ns in one.idle_by_cause.items():
            totals[cause] = totals.get(cause, 0) + ns / one.steps
    whole = sum(totals.values())
    if not whole:
        return None
    order = sorted(totals.items(), key=lambda item: -item[1])
    unit, texts = durations(round(ns) for _, ns in order)
    several = len(steps.devices or ()) > 1
    return Grid(
        f"Idle time of a step by cause{', all devices together' if several else ''}",
        (Column("cause"), Column(f"idle {unit}", number=True), Column("of idle", number=True)),
        [[cause, text, percent(ns / whole)] for (cause, ns), text in zip(order, texts, strict=True)],
    )


def _heading(part: str) -> str:
    """In the words of the table of devices."""
    return {Part.COLLECTIVE.value: "exposed comm.", Part.COPY.value: "exposed memcpy"}.get(part, part)


_HOST_HEADINGS: Final = dict(
    zip(HOST_PARTS, ("kernel", "memcpy", "memset", "comm.", "runtime", "data", "CPU ops", "other"), strict=True)
)


def host_grid(steps: StepTimeline) -> Grid | None:
    """What the steady steps went to with the host, per step."""
    own = [one for one in steps.processes if one.wall_ns]
    if not own:
        return None
    named = len(own) > 1
    rows = []
    for one in own:
        shares = [percent(one.parts[part] / one.wall_ns) for part in HOST_PARTS]
        name = steps.owners.get(one.process, f"process {one.process}")
        rows.append([*([name] if named else []), duration(round(one.wall_ns / one.steps)), *shares])
    return Grid(
        "Time of a step with the host (mean)",
        (
            *([Column("process")] if named else []),
            Column("wall", number=True),
            *(Column(_HOST_HEADINGS[part], number=True) for part in HOST_PARTS),
        ),
        rows,
        ("Each moment counts once, for the first column that applies. data: fetching it. other: Python, or nothing.",),
    )


def steps_grid(steps: Sequence[Step], source: str) -> Grid:
    """Each step, or, of many, how long they took."""
    if len(steps) <= MOST_STEPS:
        return _listed(steps, source)
    owners: dict[str | None, list[int]] = {}
    for step in sorted(steps, key=lambda one: -1 if one.rank is None else one.rank):
        owners.setdefault(step.who, []).append(step.wall_ns)
    rows = []
    unit, _ = durations([max(step.wall_ns for step in steps)])
    longest = max(step.wall_ns for step in steps)
    for owner, walls in owners.items():
        figures = durations([min(walls), int(median(walls)), max(walls), longest])[1][:3]
        rows.append([owner or "all", str(len(walls)), *figures])
    return Grid(
        f"Steps ({source})" if source else "Steps",
        (
            Column("steps"),
            Column("count", number=True),
            *(Column(f"{which} {unit}", number=True) for which in ("shortest", "median", "longest")),
        ),
        rows,
    )


def _listed(steps: Sequence[Step], source: str) -> Grid:
    unit, texts = durations([step.wall_ns for step in steps] + [step.host_ns for step in steps])
    walls, hosts = texts[: len(steps)], texts[len(steps) :]
    warm, batch = any(step.warmup for step in steps), any(step.phase or step.requests for step in steps)
    on_host = any(step.host_ns is not None for step in steps)
    rows = []
    for step, wall, host in zip(steps, walls, hosts, strict=True):
        row = [step.label, wall, *([host] if on_host else [])]
        if batch:
            counts = (("prefill", step.prefill_tokens), ("decode", step.decode_tokens))
            tokens = [f"{count:,} {what}" for what, count in counts if count]
            requests = "-" if step.requests is None else f"{step.requests:,}"
            row += [step.phase or "-", requests, " + ".join(tokens) or "-"]
        rows.append([*row, *([f"warm-up: {step.why}" if step.warmup else ""] if warm else [])])
    return Grid(
        f"Steps ({source})" if source else "Steps",
        (
            Column("step", name=True),
            Column(f"wall {unit}", number=True),
            *([Column(f"host range {unit}", number=True)] if on_host else []),
            *((Column("phase"), Column("requests", number=True), Column("tokens", number=True)) if batch else ()),
            *((Column(""),) if warm else ()),
        ),
        rows,
    )


def times_grid(steps: StepTimeline) -> Grid | None:
    """Percentiles of the steady steps; ``None`` where nothing marks one, so that there is nothing to compare."""
    if not steps.times or steps.table.source is StepSource.WHOLE:
        return None
    rows = []
    unit, _ = durations([max(one.most_ns for one in steps.times)])
    for one in steps.times:
        figures = [one.mean_ns, one.p50_ns, one.p90_ns, one.p99_ns, one.least_ns, one.most_ns]
        texts = durations(
            [*(None if ns is None else round(ns) for ns in figures), max(t.most_ns for t in steps.times)]
        )[1]
        rows.append([one.phase or "all", f"{one.count:,}", *texts[:-1]])
    few = any(one.p50_ns is None for one in steps.times)
    return Grid(
        f"Steady steps ({unit})",
        (
            Column("phase" if any(one.phase for one in steps.times) else "steps"),
            *(Column(name, number=True) for name in ("count", "mean", "p50", "p90", "p99", "shortest", "longest")),
        ),
        rows,
        ("Fewer than 3 steps have no percentiles.",) if few else (),
    )


def stages_grid(table: StageTable, limit: int | None = MOST_STAGES) -> Grid | None:
    """The stages that take most, parts under what they are parts of, and what is in none."""
    if table.stages is None:
        return None
    shown = table.stages
    if limit is not None and shown.height > limit:
        longest = shown["wall_ns"].arg_sort(descending=True).head(limit).sort()
        shown = shown[longest]
    columns = _stage_columns(table, shown)
    room = PIPE_WIDTH - INDENT - sum(max(map(len, (name, *cells))) + len(GAP) for name, cells in columns.items())
    names = [_stage_name(path, depth, room) for path, depth in shown.select("stage", "depth").iter_rows()]
    return Grid(
        f"Stages ({_stage_unit(table)}{together(table.devices)}; from {', '.join(table.sources)})",
        (Column("stage"), *(Column(name, number=True) for name in columns)),
        [list(row) for row in zip([*names, UNATTRIBUTED], *columns.values(), strict=True)],
        tuple(_stage_remarks(table, shown.height, columns)),
    )


def _stage_unit(table: StageTable) -> str:
    return durations([table.wall_ns])[0]


def _stage_columns(table: StageTable, shown: pl.DataFrame) -> dict[str, list[str]]:
    """Heading to cells, the last one for what is in no stage; columns that would be empty are left out."""

    def in_unit(values: Iterable[float | None], last: int | None) -> list[str]:
        whole = [None if value is None else round(value) for value in values]
        return durations([*whole, last, table.wall_ns])[1][:-1]

    columns = {
        "count": ["-" if count is None else f"{count:,}" for count in shown["count"]] + ["-"],
        "wall": in_unit(shown["wall_ns"], table.unattributed_ns),
        "share": [
            percent(ns / table.wall_ns if table.wall_ns else None) for ns in (*shown["wall_ns"], table.unattributed_ns)
        ],
    }
    if table.devices:
        columns["busy"] = in_unit(shown["device_busy_ns"], table.unattributed_busy_ns)
        columns["idle"] = in_unit(shown["idle_ns"], table.unattributed_idle_ns)
    if shown["p50_ns"].null_count() < shown.height:
        columns["p50"], columns["p99"] = in_unit(shown["p50_ns"], None), in_unit(shown["p99_ns"], None)
    speedups = (("2x", "speedup_if_2x"), ("gone", "speedup_if_removed"), ("floor", "speedup_at_floor"))
    for heading, name in speedups:
        if shown[name].null_count() < shown.height:
            columns[heading] = [*(times(factor) for factor in shown[name]), "-"]
    return columns


def _stage_name(path: str, depth: int, room: int) -> str:
    lead = "  " * depth
    return lead + stage_name(path.rsplit("/", 1)[-1], max(room - len(lead), LEAST_NAME))


_CEILINGS: Final = {
    "2x": "if the stage is twice as fast",
    "gone": "if it takes no time",
    "floor": "if it takes only what the hardware needs",
}


def _ceilings(columns: Collection[str]) -> list[str]:
    """What the columns of ceilings mean, those that are there."""
    told = {heading: words for heading, words in _CEILINGS.items() if heading in columns}
    if not told:
        return []
    meaning = ", ".join(f"{heading}: {words}" for heading, words in told.items())
    return [f"How much faster the whole gets at most, {meaning}. Ceilings of several stages do not add."]


def _stage_remarks(table: StageTable, shown: int, columns: Collection[str]) -> list[str]:
    stages = table.stages
    assert stages is not None
    devices = f" on {counted(table.devices, 'device')}" if table.devices > 1 else ""
    over = f"{duration(table.wall_ns)}, {counted(table.counted, 'step')}{devices}"
    remarks = [
        f"wall: of {over}, parts included; the outermost stages and {UNATTRIBUTED} add up to it.",
        *_ceilings(columns),
    ]
    repeats = set(stages["repeats"].drop_nulls()) if "p50" in columns else set()
    if "steps" in repeats:
        remarks.append(
            "p50, p99: of the wall time of the stage in a step, over the steps in which it takes any; fewer than 3 "
            "have none."
        )
    if "calls" in repeats:
        remarks.append(
            "p50, p99: of the device time of one call (of the host time, if nothing of it runs on a device)."
        )
    if "floor" in columns:
        known = [percent(share) for share in sorted(stages["floor_known_share"].drop_nulls())]
        span = known[0] if known[0] == known[-1] else f"{known[0]} to {known[-1]}"
        remarks.append(
            "floor: only matrix products and fused attention with recorded shapes, and work with recorded FLOP or "
            f"bytes, count, at published dense peaks ({span} of a stage's device time); the rest stays as measured."
        )
    overlapped = int(stages.filter(stages["depth"] == 0)["overlapped_ns"].sum())
    if overlapped:
        remarks.append(
            f"{duration(overlapped)} of the stages' device work is hidden behind work of others and not in wall."
        )
    if shown < stages.height:
        remarks.append(
            f"{counted(stages.height - shown, 'more stage')}: traceview stages --limit {stages.height} shows all."
        )
    return remarks


def times(factor: float | None) -> str:
    """``1.53x``; ``-`` for what is not known."""
    if factor is None:
        return "-"
    return f"{factor:.2f}x" if factor < 100 else f"{factor:,.0f}x"


def _label(device: int, described: dict[int, Device]) -> str:
    return described[device].label if device in described else f"device {device}"
