"""Copies and allocator traffic on authored events."""

from __future__ import annotations

import io
from dataclasses import replace

import polars as pl
import pytest

from authored_timeline import Event, host, kernel, launch, op, timeline
from traceview.allocations import ALLOCATIONS, allocations
from traceview.render.page import Page
from traceview.render.transfer_text import write_transfers
from traceview.steady_state import find_steady_state
from traceview.transfer_report import transfer_report
from traceview.transfers import COPIES, TRANSFERS, copies, transfers

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy DtoH (Device -> Pinned)"


def with_bytes(built, **sizes):
    """The timeline with ``bytes`` by event name."""
    octets = [sizes.get(name.split(" (")[0].replace(" ", "_")) for name in built.events["name"].cast(pl.String)]
    return replace(built, events=built.events.with_columns(bytes=pl.Series(octets, dtype=pl.Int64)))


def answer(built):
    rows = copies(built)
    COPIES.validate(rows)
    table = transfers(built, find_steady_state(built), rows)
    TRANSFERS.validate(table)
    return table


def step(number, start_us, end_us):
    return host("annotation", f"ProfilerStep#{number}", start_us, end_us)


def steps_with_copies(counts):
    """One step of 1000 us for each count, with as many copies of 100 us in it."""
    events: list[Event] = []
    for number, count in enumerate(counts):
        start = 1_000 * number
        events.append(step(number, start, start + 1_000))
        for at in range(count):
            key = 100 * number + at
            events += [
                host("api", "cudaMemcpyAsync", start + 110 * at, start + 110 * at + 105, correlation=key),
                kernel(PAGEABLE, start + 110 * at + 2, start + 110 * at + 102, key, kind="memcpy"),
            ]
    return with_bytes(timeline(*events), Memcpy_HtoD=1 << 20)


def test_the_same_in_every_step_past_the_warm_up():
    (row,) = answer(steps_with_copies([5, 2, 2, 2])).to_dicts()
    assert (row["kind"], row["pageable"], row["bytes"], row["count"]) == ("HtoD", True, 1 << 20, 11)
    assert (row["total_bytes"], row["total_ns"], row["exposed_ns"]) == (11 << 20, 1_100_000, 1_100_000)
    assert (row["repeated_each_step"], row["per_step"]) == (True, 2.0)
    assert (row["blocking"], row["blocked_ns"]) == (11, 11 * 105_000)


def test_not_the_same_in_every_step_or_not_known():
    (row,) = answer(steps_with_copies([2, 2, 1, 2])).to_dicts()
    assert row["repeated_each_step"] is False
    (row,) = answer(steps_with_copies([2, 2])).to_dicts()
    assert (row["repeated_each_step"], row["per_step"]) == (None, 2.0)


def test_a_copy_behind_computation_is_hidden_and_a_queued_one_does_not_block():
    built = timeline(
        launch(0, 1, name="cudaMemcpyAsync"), kernel(PINNED, 10, 110, 1, kind="memcpy"),
        launch(2, 2), kernel("gemm", 50, 210, 2, stream=8),
    )  # fmt: skip
    (row,) = answer(built).to_dicts()
    assert (row["kind"], row["pageable"], row["exposed_ns"], row["blocking"]) == ("DtoH", False, 40_000, 0)
    assert (row["bytes"], row["total_bytes"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "call", "direction"),
    [
        ("CopyDeviceToDevice", "hipMemcpyDtoDAsync", "DtoD"),
        ("CopyHostToDevice", "hipMemcpyHtoDAsync", "HtoD"),
        ("CopyDeviceToHost", "hipMemcpyAsync", "DtoH"),
        ("Memcpy PtoP (Device -> Device)", "cudaMemcpyPeerAsync", "DtoD"),
        ("Memcpy HtoA (Pinned -> Array)", "cuMemcpy3DAsync_v2", "HtoD"),
        ("Memcpy AtoH (Array -> Pinned)", "cuMemcpy3DAsync_v2", "DtoH"),
        ("TransferToDevice", "cudaMemcpyAsync", "HtoD"),
        ("TransferFromDevice", "cudaMemcpyAsync", "DtoH"),
        ("CopyHostToHost", "hipMemcpyAsync", "HtoH"),
        # The name of a blit kernel is silent, its call is not.
        ("__amd_rocclr_copyBuffer.kd", "hipMemcpyDtoDAsync", "DtoD"),
        ("__amd_rocclr_copyBuffer.kd", "hipMemcpyHtoDAsync", "HtoD"),
        ("__amd_rocclr_copyBuffer.kd", "hipMemcpyAsync", "unknown"),
    ],
)
def test_directions(name, call, direction):
    (row,) = answer(timeline(launch(0, 1, name=call), kernel(name, 10, 20, 1, kind="memcpy"))).to_dicts()
    assert (row["kind"], row["name"]) == (direction, name)


def test_the_direction_of_a_copy_without_a_call_is_in_its_name_alone():
    (row,) = answer(timeline(kernel("CopyDeviceToDevice", 10, 20, 1, kind="memcpy"))).to_dicts()
    assert row["kind"] == "DtoD"


def test_sizes_and_devices_are_told_apart():
    events = [
        event
        for at, device in enumerate((0, 0, 1))
        for event in (launch(10 * at, at, name="hipMemcpyAsync"), kernel("Memcpy HtoD (Host -> Device)", 10 * at + 2, 10 * at + 5, at, kind="memcpy", device=device))
    ]  # fmt: skip
    table = answer(timeline(*events))
    assert table.select("device", "count", "pageable").rows() == [(0, 2, None), (1, 1, None)]


def test_transfers_of_a_host_that_is_its_own_device():
    (row,) = answer(timeline(host("memcpy", "DevicePut", 0, 10), host("memcpy", "DevicePut", 20, 40))).to_dicts()
    assert (row["kind"], row["device"], row["count"], row["total_ns"]) == ("HtoD", None, 2, 30_000)


def test_copies_of_ops_count_only_without_a_device():
    made = [
        op("aten::to", 0, 20), op("aten::_to_copy", 1, 19),
        op("aten::copy_", 2, 18, dims=[[512, 512], [512, 512], []], dtypes=["float", "double", "Scalar"]),
    ]  # fmt: skip
    (row,) = answer(timeline(*made)).to_dicts()
    assert (row["kind"], row["bytes"], row["op"]) == ("HtoH", 4 * 512 * 512, "aten::_to_copy")
    assert answer(timeline(*made, launch(5, 1), kernel("k", 6, 7, 1))).height == 0


@pytest.mark.parametrize("dims", [[10**30, 4], [2**62, 2**62], [-1, 5], ["x"]])
def test_shapes_that_no_memory_holds_have_no_size(dims):
    made = op("aten::copy_", 2, 18, dims=[dims, dims, []], dtypes=["float", "float", "Scalar"])
    (row,) = answer(timeline(made)).to_dicts()
    assert row["bytes"] is None


def test_allocator_calls_and_reserved_memory():
    built = timeline(
        step(0, 0, 1_000), host("api", "cudaMalloc", 10, 60),
        step(1, 1_000, 2_000), host("api", "cudaFree", 1_010, 1_030), host("api", "cudaMalloc", 1_040, 1_050),
        host("counter", "[memory]", 20, 20, details={"Total Reserved": 100, "Device Id": 0}),
        host("counter", "[memory]", 1_020, 1_020, details={"Total Reserved": 60, "Device Id": 0}),
        host("counter", "[memory]", 1_045, 1_045, details={"Total Reserved": 160, "Device Id": 0}),
        host("counter", "[memory]", 1_046, 1_046, details={"Total Reserved": 160, "Device Id": 0}),
    )  # fmt: skip
    table = allocations(built, find_steady_state(built))
    ALLOCATIONS.validate(table)
    assert table.select("what", "count", "total_ns", "bytes", "late_count", "late_ns").rows() == [
        ("cudaMalloc", 2, 60_000, None, 1, 10_000),
        ("cudaFree", 1, 20_000, None, 1, 20_000),
        ("reserved memory grows", 1, None, 100, 1, None),
        ("reserved memory shrinks", 1, None, 40, 1, None),
    ]


def test_nothing_copied_is_an_empty_frame():
    assert answer(timeline()).height == 0


@pytest.mark.parametrize("devices", [1, 2])
def test_copies_of_several_devices_name_their_device(devices):
    rows = [kernel(PAGEABLE, 10 * at, 10 * at + 5, kind="memcpy", device=at) for at in range(devices)]
    out = io.StringIO()
    write_transfers(transfer_report(timeline(*rows)), Page(out), limit=None)
    lines = [line.split() for line in out.getvalue().splitlines() if "HtoD" in line.split()]
    named = [line[:3] for line in lines if "copies" not in line and "copy:" not in line]
    assert sorted(named) == (
        [["HtoD", "-", "1"]] if devices == 1 else [["device", "0", "HtoD"], ["device", "1", "HtoD"]]
    )
