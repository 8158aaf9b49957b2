"""How long ranks waited in collectives for a late one, told from durations alone.

A collective ends for all ranks together, but each starts it when it gets there. The rank that comes last does not wait:
its duration is what the transfer takes (the wire time), and what the others took longer is waiting. Durations need no
common clock, so that holds for files of hosts whose clocks are apart.

Which run on one rank is which on another: by the sequence number of the process group where it is recorded, else by
the profiler step and the order within it, else by the order in the recording. Each time the collectives and their sizes
must agree, or they are not matched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.device_labels import device_labels
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from traceview.timeline import Timeline

COLLECTIVE_WAITS: Final = FrameSchema(
    "collective_waits",
    "One row per rank and collective that could be matched between ranks, by time.",
    (
        Column("collective", pl.UInt32, "", "number of the collective; its rows are those of the ranks"),
        Column("name", pl.String, "", "what it does, e.g. `allreduce`, else the name of its kernel"),
        Column("group", pl.String, "", "process group, when recorded", nullable=True),
        Column("group_size", pl.Int64, "", "ranks in that group, when recorded", nullable=True),
        Column("ranks", pl.UInt32, "", "ranks that it was matched on"),
        Column("step", pl.Int32, "", "number of the profiler step", nullable=True),
        Column("device", pl.UInt32, "", "key into `devices`"),
        Column("event_id", pl.UInt32, "", "event id"),
        Column("start_ns", pl.Int64, "ns", "start on this rank, by its own clock"),
        Column("dur_ns", pl.Int64, "ns", "duration on this rank"),
        Column("wire_ns", pl.Int64, "ns", "shortest duration of any rank: what is left without waiting"),
        Column("wait_ns", pl.Int64, "ns", "`dur_ns - wire_ns`: it waited for the last rank to come"),
        Column("exposed_ns", pl.Int64, "ns", "of `wait_ns`, the part in which the device did nothing else"),
        Column("late", pl.Boolean, "", "the others waited for this rank"),
    ),
)

SKEW_BY_DEVICE: Final = FrameSchema(
    "collective_skew_by_device",
    "The same summed up by rank.",
    (
        Column("device", pl.UInt32, "", "key into `devices`"),
        Column("collectives", pl.UInt32, "", "collectives that were matched"),
        Column("late", pl.UInt32, "", "of these, how often the others waited for it"),
        Column("dur_ns", pl.Int64, "ns", "sum of their durations"),
        Column("wire_ns", pl.Int64, "ns", "sum of what is left without waiting"),
        Column("wait_ns", pl.Int64, "ns", "sum of its waiting"),
        Column("exposed_ns", pl.Int64, "ns", "the part of it in which the device did nothing else"),
    ),
)

_PAIRWISE: Final = r"(?i)send_?recv|^(i?send|i?recv)$|all_?to_?all_?v|_Send\b|_Recv\b"
"""Send and receive pair two ranks, and their sizes differ by rank: the n-th of one is not that of another."""

_TOGETHER: Final = r"(?i)all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier"
"""Collectives that end for no rank before every rank has begun."""

_NOISE_SHARE: Final = 0.1
_NOISE_NS: Final = 5_000
"""Ranks that differ by less came together."""


@dataclass(frozen=True, slots=True)
class CollectiveSkew:
    """Waiting in collectives.

    Attributes:
        waits: Frame of :data:`COLLECTIVE_WAITS`.
        recorded: Collective kernels of all ranks.
        why_none: Why nothing could be matched, without a full stop; ``None`` if something was, or none is recorded.
        clocks_apart_ns: The most by which the clocks of two ranks are apart, as the common ends of collectives tell, if
            times prove that they are; ``None`` otherwise.
    """

    waits: pl.DataFrame
    recorded: int
    why_none: str | None
    clocks_apart_ns: int | None

    @property
    def wait_ns(self) -> int:
        """Waiting of all ranks together, ns."""
        return int(self.waits["wait_ns"].sum())

    @property
    def exposed_ns(self) -> int:
        """The part of it in which the devices did nothing else, ns."""
        return int(self.waits["exposed_ns"].sum())


ONE_RANK: Final = "one rank is loaded; the traces of all ranks together tell waiting from transfer"
ONLY_PAIRS: Final = "only sends and receives are recorded, which pair ranks and cannot be matched"


def collective_skew(timeline: Timeline) -> CollectiveSkew:
    """How long ranks waited in collectives for a late one.

    Args:
        timeline: With launches linked; several ranks, of one file or of several.
    """
    rows = _collectives(timeline)
    recorded = rows.height
    rows = rows.filter(~pl.col("name").str.contains(_PAIRWISE))
    unlike = any(note.kind == "rank-twice" for note in timeline.report.notes)
    if not recorded:
        return CollectiveSkew(COLLECTIVE_WAITS.empty(), 0, None, None)
    if rows["device"].n_unique() < 2:
        why = ONE_RANK if rows.height else ONLY_PAIRS
        return CollectiveSkew(COLLECTIVE_WAITS.empty(), recorded, why, None)
    if unlike:
        why = "two files claim the same rank, so their collectives cannot be matched"
        return CollectiveSkew(COLLECTIVE_WAITS.empty(), recorded, why, None)
    matched = _matched(rows)
    if not matched.height:
        why = "the ranks did not record the same collectives in the same order, so they cannot be matched"
        return CollectiveSkew(COLLECTIVE_WAITS.empty(), recorded, why, None)
    waits = _waits(timeline, matched)
    return CollectiveSkew(waits, recorded, None, _clocks_apart(waits))


def skew_notes(skew: CollectiveSkew) -> list[str]:
    """Why nothing can be told, or what else the collectives tell of the ranks; whole sentences."""
    if not skew.recorded:
        return []
    if skew.why_none:
        return [f"How long ranks waited for each other cannot be told: {skew.why_none}."]
    left = skew.recorded - skew.waits.height
    notes = []
    if left:
        notes.append(f"{left:,} of {skew.recorded:,} collectives could not be matched between ranks.")
    if skew.clocks_apart_ns is not None:
        notes.append(
            f"The clocks of ranks are apart by about {skew.clocks_apart_ns / 1e6:,.3f} ms: collectives seem to end on "
            "one rank before they began on another. Times must not be compared between ranks; waiting in collectives "
            "is told from durations and holds."
        )
    return notes


def skew_by_device(skew: CollectiveSkew) -> pl.DataFrame:
    """The :data:`SKEW_BY_DEVICE` of matched collectives."""
    table = skew.waits.group_by("device").agg(
        collectives=pl.len(),
        late=pl.col("late").sum(),
        **{name: pl.col(name).sum() for name in ("dur_ns", "wire_ns", "wait_ns", "exposed_ns")},
    )
    return table.select([pl.col(one.name).cast(one.dtype) for one in SKEW_BY_DEVICE.columns]).sort("device")


def late_ranks(timeline: Timeline, skew: CollectiveSkew) -> list[tuple[str, int, int, int]]:
    """For which ranks the others waited: label, device, number of collectives, exposed waiting of the others in ns."""
    labels = device_labels(timeline)
    exposed = pl.col("exposed_ns").sum().over("collective")
    late = skew.waits.with_columns(others_ns=exposed).filter("late")
    table = (
        late.group_by("device")
        .agg(count=pl.len(), ns=pl.col("others_ns").sum())
        .sort("ns", "device", descending=[True, False])
    )
    return [(labels.get(device, f"device {device}"), device, count, ns) for device, count, ns in table.iter_rows()]


def _collectives(timeline: Timeline) -> pl.DataFrame:
    """Collective work with what is recorded of it, on the kernel itself or on the op that asked for it."""
    events = timeline.events
    rows = events.filter((pl.col("kind") == "collective") & pl.col("device").is_not_null()).select(
        "device", "start_ns", "dur_ns", "step", "op_id", kernel=pl.col("name").cast(pl.String), event_id="id"
    )
    for column, key in (
        ("said", "Collective name"),
        ("group", "Process Group Name"),
        ("members", "Process Group Ranks"),
        ("sent", "In msg nelems"),
        ("received", "Out msg nelems"),
        ("group_size", "Group size"),
        ("seq", "Seq"),
    ):
        detail = timeline.details.get(key)
        if detail is None:
            rows = rows.with_columns(pl.lit(None, pl.String).alias(column))
            continue
        values = detail.select("id", value=pl.col("value").cast(pl.String).str.strip_chars('"')).unique("id")
        rows = (
            rows.join(values.rename({"id": "event_id"}), on="event_id", how="left", maintain_order="left")
            .join(values.rename({"id": "op_id"}), on="op_id", how="left", maintain_order="left", suffix="_op")
            .with_columns(pl.coalesce("value", "value_op").alias(column))
            .drop("value", "value_op")
        )
    return rows.with_columns(
        name=pl.coalesce("said", pl.col("kernel").str.replace(r"\(.*$", "").str.replace(r"\.\d+$", "")),
        # Subgroups of one name on several sets of ranks are several groups.
        communicator=pl.concat_str(pl.col("group").fill_null(""), pl.col("members").fill_null(""), separator="|"),
        group_size=pl.col("group_size").cast(pl.Int64, strict=False),
        seq=pl.col("seq").cast(pl.Int64, strict=False),
    ).sort("device", "start_ns")


def _matched(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with ``collective``, the number of the collective that they are of; the others are left out."""
    parts = []
    for _, own in rows.group_by("communicator", maintain_order=True):
        if own["device"].n_unique() < 2:
            continue
        keys = (
            *([["seq"]] if not own["seq"].null_count() else []),
            *([["step", "at"]] if own["step"].null_count() < own.height else []),
            ["at"],
        )
        for key in keys:
            found = _agreeing(own, key)
            if found.height:
                parts.append(found)
                break
    if not parts:
        return rows.clear().with_columns(collective=pl.lit(None, pl.UInt32), ranks=pl.lit(None, pl.UInt32))
    together = pl.concat(parts)
    number = pl.struct("communicator", "key").rank("dense").cast(pl.UInt32) - 1
    return together.with_columns(collective=number).drop("key")


def _agreeing(own: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """The collectives of one group whose name and sizes are the same on all its ranks, with ``key`` and ``ranks``."""
    within = ["device", "step"] if "step" in key else ["device"]
    rows = own.filter(pl.col("step").is_not_null()) if "step" in key else own
    rows = rows.with_columns(at=pl.int_range(pl.len()).over(within))
    ranks = rows["device"].n_unique()
    # As many on each rank, else the n-th of one is not the n-th of another.
    unit = pl.col("step") if "step" in key else pl.lit(0)
    if key != ["seq"]:
        each = rows.group_by("device", unit.alias("unit")).len()
        counts = each.group_by("unit").agg(devices=pl.len(), counts=pl.col("len").n_unique())
        whole = counts.filter((pl.col("devices") == ranks) & (pl.col("counts") == 1))["unit"]
        rows = rows.filter(unit.cast(whole.dtype).is_in(whole.implode()))
    content = pl.struct(pl.col("name"), pl.col("sent").fill_null(""), pl.col("received").fill_null(""))
    named = pl.concat_str([pl.col(one).cast(pl.String) for one in key], separator=":")
    rows = rows.with_columns(key=named).with_columns(
        ranks=pl.col("device").n_unique().over("key").cast(pl.UInt32), kinds=content.n_unique().over("key")
    )
    differing = rows.filter(pl.col("kinds") > 1).height
    # One that differs means that the order is not the same, so what seems to agree does so by chance.
    if differing and key != ["seq"]:
        return rows.clear().drop("at", "kinds")
    return rows.filter((pl.col("ranks") > 1) & (pl.col("kinds") == 1) & (pl.len().over("key") == pl.col("ranks"))).drop(
        "at", "kinds"
    )


def _waits(timeline: Timeline, matched: pl.DataFrame) -> pl.DataFrame:
    of_all = "collective"
    table = matched.with_columns(wire_ns=pl.col("dur_ns").min().over(of_all))
    table = table.with_columns(wait_ns=pl.col("dur_ns") - pl.col("wire_ns"))
    noise = pl.max_horizontal(pl.lit(_NOISE_NS), (pl.col("wire_ns") * _NOISE_SHARE).cast(pl.Int64))
    first = pl.col("dur_ns").rank("ordinal").over(of_all) == 1
    table = table.with_columns(late=first & (pl.col("wait_ns").max().over(of_all) > noise))
    exposed: dict[int, int] = {}
    work = timeline.device_work.filter(pl.col("kind") != "collective")
    for (device,), own in table.group_by("device"):
        others = work.filter(pl.col("device") == device)
        starts = others["start_ns"].to_numpy()
        cover = intervals.merge(starts, starts + others["dur_ns"].to_numpy())
        begin, wait = own["start_ns"].to_numpy(), own["wait_ns"].to_numpy()
        hidden = intervals.covered(begin, begin + wait, cover)
        exposed.update(zip(own["event_id"].to_list(), (wait - hidden).tolist(), strict=True))
    table = table.with_columns(
        exposed_ns=pl.col("event_id").replace_strict(exposed, return_dtype=pl.Int64),
        group=pl.when(pl.col("group") != "").then("group"),
    )
    return table.select([pl.col(one.name).cast(one.dtype) for one in COLLECTIVE_WAITS.columns]).sort(
        "start_ns", "event_id"
    )


def _clocks_apart(waits: pl.DataFrame) -> int | None:
    """How far the clocks of two ranks are apart, ns, if one rank seems to end a collective before another began it."""
    rows = waits.filter(pl.col("name").str.contains(_TOGETHER)).with_columns(
        end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    if not rows.height:
        return None
    spans = rows.group_by("collective").agg(pl.col("start_ns").max(), pl.col("end_ns").min())
    if not (spans["end_ns"] < spans["start_ns"]).any():
        return None
    ends = rows.with_columns(after_ns=pl.col("end_ns") - pl.col("end_ns").min().over("collective"))
    usual = ends.group_by("device").agg(pl.col("after_ns").median())["after_ns"].to_numpy()
    return int(np.max(usual) - np.min(usual))
