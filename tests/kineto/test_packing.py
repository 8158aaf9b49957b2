"""Packed columns give back what was put in, whatever it was."""

from __future__ import annotations

import numpy as np
import pytest

from traceview.parsers.kineto.packing import PackedColumn, PackedRows
from traceview.parsers.kineto.raw import NULL, NULL_CODE

I64 = np.iinfo(np.int64)
CASES = {
    "nothing": [],
    "one value all along": [7] * 9_000,
    "nothing but missing ones": [NULL] * 9_000,
    "bytes": list(range(100, 300)) * 50,
    "a gap at each end": [NULL, *range(5_000), NULL],
    "255 apart with a gap": [0, 254, NULL] * 3_000,
    "256 apart with a gap": [0, 255, NULL] * 3_000,
    "wide": [I64.max, NULL, I64.min + 1, 0] * 2_000,
    "below zero": [-(10**12), -(10**12) - 70_000] * 4_000,
}


@pytest.mark.parametrize("size", [1, 1_000, 100_000])
@pytest.mark.parametrize("case", CASES)
def test_numbers_come_back(case: str, size: int) -> None:
    values = np.array(CASES[case], np.int64)
    column = PackedColumn(np.int64, NULL)
    for begin in range(0, len(values), size):
        if size > 1 or begin < 50:
            column.append(values[begin : begin + size])
    if size == 1:
        column.append(values[50:])
    assert column.take().tolist() == values.tolist()
    assert len(column) == len(values)


def test_codes_come_back_and_take_little() -> None:
    codes = np.tile(np.array([4_000_000_000, 4_000_000_003, NULL_CODE], np.uint32), 30_000)
    column = PackedColumn(np.uint32, NULL_CODE)
    column.append(codes)
    assert column.take().dtype == np.uint32
    assert column.take().tolist() == codes.tolist()
    assert len(column._bytes) == len(codes)


def test_a_column_goes_on_after_it_was_read() -> None:
    column = PackedColumn(np.int64, NULL)
    column.append(np.arange(5_000))
    assert len(column.take()) == 5_000
    column.append(np.arange(5_000, 10_000))
    assert column.take().tolist() == list(range(10_000))


def test_rows_come_back() -> None:
    rows = [*range(6_000), 6_001, 70_000, (1 << 32) - 2]
    packed = PackedRows()
    for begin in range(0, len(rows), 700):
        packed.append(np.array(rows[begin : begin + 700], np.uint32))
    assert packed.take().tolist() == rows
