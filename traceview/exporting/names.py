"""Keys of events in words, as columns for readers that do not know the tables beside the events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.exporting.marks import Marks
    from traceview.timeline import Timeline

COLUMNS: Final = {
    "pid": "process id as recorded",
    "rank": "distributed rank of its process",
    "tid": "thread id as recorded",
    "thread_name": "name of its thread",
    "device_ordinal": "number of its device",
    "device_name": "product name of its device",
    "op": "name of the op in `op_id`",
    "launch": "name of the host call in `launch_id`",
    "family": "device rows: what the kernel is, e.g. `attention`, `gemm`",
    "implementation": "device rows: which build of it",
    "found_stage": "stage that traceview finds",
    "dims": "JSON: dimensions of the inputs",
    "dtypes": "JSON: dtypes of the inputs",
}
"""The columns and their meaning."""


def named(timeline: Timeline, marks: Marks) -> Callable[[pl.DataFrame], list[pl.Series]]:
    """A function from some rows of the events to the columns of :data:`COLUMNS` for them.

    Args:
        timeline: The timeline.
        marks: Stages and kernels.
    """
    category = pl.Categorical
    processes = timeline.processes.select("process", "pid", "rank")
    threads = timeline.threads.select("thread", "tid", pl.col("name").cast(category).alias("thread_name"))
    devices = timeline.devices.select(
        "device",
        pl.col("ordinal").alias("device_ordinal"),
        pl.col("name").cast(category).alias("device_name"),
    )
    inputs = timeline.inputs.select("inputs", pl.col("dims").cast(category), pl.col("dtypes").cast(category))
    kernels = marks.kernels.select(pl.all().cast(category))
    names = timeline.events["name"]
    stages = marks.stages.cast(category)

    def columns(rows: pl.DataFrame) -> list[pl.Series]:
        found = rows.select("process", "thread", "device", "inputs", "name")
        for table, key in ((processes, "process"), (threads, "thread"), (devices, "device"), (inputs, "inputs")):
            found = found.join(table, on=key, how="left", maintain_order="left")
        found = found.with_columns(name=pl.when(pl.col("device").is_not_null()).then("name"))
        found = found.join(kernels, on="name", how="left", maintain_order="left")
        at = int(rows["id"][0]) if rows.height else 0
        found = found.with_columns(
            names.gather(rows["op_id"]).alias("op"),
            names.gather(rows["launch_id"]).alias("launch"),
            stages.slice(at, rows.height).alias("found_stage"),
        )
        return found.select(list(COLUMNS)).get_columns()

    return columns
