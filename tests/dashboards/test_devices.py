"""The devices of a trace beside each other."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from traceview.dashboards.views.devices import devices_table


def test_one_device_has_no_other_beside_it(opened):
    assert devices_table(opened("cuda").report) is None
    assert devices_table(opened("no-device").report) is None


@pytest.mark.parametrize("name", ["ranks", "nsys", "tpu"])
def test_the_parts_of_each_device_are_all_of_its_time(opened, name):
    shown = devices_table(opened(name).report).frame
    assert shown.height == 2
    parts = shown.select(
        total=pl.sum_horizontal("compute", "exposed comm.", "exposed copies", "waits for async. work", "idle")
    )
    assert parts["total"].to_list() == pytest.approx([1.0] * shown.height, abs=1e-9)
    assert shown["busy"].is_sorted()


def test_the_least_busy_one_comes_first_and_is_named(opened):
    report = opened("ranks").report
    first, second = report.time.devices
    slow = replace(
        second, compute_ns=0, collective_ns=0, copy_ns=0, async_wait_ns=0, unattributed_ns=0,
        idle_by_cause={"launch": second.wall_ns},
    )  # fmt: skip
    table = devices_table(replace(report, time=replace(report.time, devices=(first, slow))))
    row = table.frame.row(0, named=True)
    assert (row["busy"], row["idle"], row["idle most for"]) == (0.0, 1.0, "launch")
    (remark,) = table.remarks
    assert remark.startswith(f"Of 2 devices, {row['device']} is busy least (0.0 %) and ")


def test_two_that_are_alike_are_told_as_one(opened):
    report = opened("ranks").report
    one, other = report.time.devices
    alike = replace(report, time=replace(report.time, devices=(one, replace(one, device=other.device))))
    assert devices_table(alike).remarks == ("Both devices are about equally busy.",)


def test_the_overview_shows_them(show, as_open):
    assert "#### Devices, least busy first" in show("overview", as_open("ranks")).marked
    assert "#### Devices, least busy first" not in show("overview", as_open("cuda")).marked
