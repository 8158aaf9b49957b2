"""Custom calls without FLOPs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from authored_timeline import kernel
from rules.rule_case import judged, on_device

if TYPE_CHECKING:
    from traceview.timeline import Timeline

OPS = [
    kernel("splash_mha_fwd_residuals", 0, 30, kind="xla_op"),
    kernel("fusion.1", 30, 90, kind="xla_op"),
    kernel("copy.1", 90, 100, kind="xla_op"),
]
CATEGORY = {
    "hlo_category": {
        "splash_mha_fwd_residuals": '"custom-call"',
        "fusion.1": '"convolution fusion"',
        "copy.1": '"data formatting"',
    }
}


def with_flops(flops: dict[str, int | None], *, category: bool = True, first: str | None = None) -> Timeline:
    events = [replace(OPS[0], name=first), *OPS[1:]] if first else OPS
    built = on_device(*events, text_details=CATEGORY if category else None)
    column = pl.Series("flops", [flops.get(name) for name in built.events["name"]], dtype=pl.Int64)
    return replace(built, events=built.events.with_columns(column))


def test_positive_none_or_zero() -> None:
    for nothing in (None, 0):
        (finding,) = judged("TV906", with_flops({"fusion.1": 10**9, "splash_mha_fwd_residuals": nothing}))
        assert finding.title == (
            "1 custom call with no FLOPs recorded: 0.030 ms, 30.0 % of busy time, are missing from every FLOP rate"
        )
        assert finding.cost_ns is None
        assert finding.evidence == ("1 × splash_mha_fwd_residuals: 0.030 ms",)


def test_positive_by_name_where_no_category_is_recorded() -> None:
    (finding,) = judged("TV906", with_flops({"fusion.1": 10**9}, category=False, first="%custom-call.7"))
    assert finding.title.startswith("1 custom call with no FLOPs")


def test_negative_with_an_estimate() -> None:
    assert judged("TV906", with_flops({"fusion.1": 10**9, "splash_mha_fwd_residuals": 5 * 10**8})) == []


def test_not_recorded_flops_or_what_the_op_is() -> None:
    assert judged("TV906", with_flops({})) == []
    assert judged("TV906", with_flops({"fusion.1": 0})) == []
    assert judged("TV906", with_flops({"fusion.1": 10**9}, category=False)) == []
