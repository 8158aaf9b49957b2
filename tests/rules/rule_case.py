"""A rule on a few authored events: what it finds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from authored_timeline import Event, host, kernel, launch, op, timeline
from traceview.dispatch import dispatch_table
from traceview.rules.base import Facts
from traceview.rules.catalogue import find_rule

if TYPE_CHECKING:
    from traceview.findings import Finding
    from traceview.timeline import ImportReport, Timeline

GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas"
FLASH = (
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>"
)
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>"


def on_device(
    *events: Event, capability: tuple[int, int] | None = (9, 0), text_details: dict[str, dict[str, str]] | None = None
) -> Timeline:
    """A timeline whose devices have a compute capability (``None``: not recorded).

    ``text_details`` maps an argument to the JSON text it has on each event name.
    """
    built = timeline(*events)
    if capability is not None:
        major, minor = capability
        devices = built.devices.with_columns(
            compute_major=pl.lit(major, pl.Int32), compute_minor=pl.lit(minor, pl.Int32)
        )
        built = replace(built, devices=devices)
    if text_details:
        details = dict(built.details)
        for key, by_name in text_details.items():
            rows = [(i, by_name[name]) for i, name in enumerate(built.events["name"]) if name in by_name]
            details[key] = pl.DataFrame(rows, schema={"id": pl.UInt32, "value": pl.Categorical}, orient="row")
        built = replace(built, details=details)
    built.validate()
    return built


def judged(code: str, trace: Timeline, report: ImportReport | None = None) -> list[Finding]:
    """The findings of one rule."""
    if report is not None:
        trace = replace(trace, report=report)
    rule = find_rule(code)
    assert rule is not None, code
    return list(rule.check(Facts(trace, dispatch_table(trace))))


def found(
    code: str,
    *events: Event,
    capability: tuple[int, int] | None = (9, 0),
    text_details: dict[str, dict[str, str]] | None = None,
) -> list[Finding]:
    """The findings of one rule on some events of an H100 (or another capability)."""
    return judged(code, on_device(*events, capability=capability, text_details=text_details))


def ran(
    op_name: str,
    kernel_name: str,
    at_us: float,
    dur_us: float,
    correlation: int,
    *,
    dims: object = None,
    dtypes: object = None,
) -> list[Event]:
    """An op that launched one kernel; the kernel starts 5 µs after the op."""
    return [
        op(op_name, at_us, at_us + 4, dims=dims, dtypes=dtypes),
        launch(at_us + 1, correlation),
        kernel(kernel_name, at_us + 5, at_us + 5 + dur_us, correlation),
    ]


def step(number: int, start_us: float, end_us: float) -> Event:
    """The mark of a profiler step."""
    return host("annotation", f"ProfilerStep#{number}", start_us, end_us)
