"""The compiled scanner takes plain blocks, leaves every other to the portable code, and reads nothing out of bounds."""

from __future__ import annotations

import random

import pytest

from traceview.parsers.kineto import fastscan
from traceview.parsers.kineto.numbers import PAD

EVENT = '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 10.5, "dur": 1, "args": {"External id": 7, "grid": [1, 2], "kind": "DtoD"}}'


SCANNER = fastscan._scan


@pytest.fixture(scope="module", autouse=True)
def scanner() -> None:
    """Once is enough: these tests call the scanner itself."""


def scan(text: str | bytes):
    data = text.encode() if isinstance(text, str) else text
    block = b" " * PAD + data + b" " * PAD
    return SCANNER.scan(block, PAD, len(block) - PAD, fastscan._INT_KEYS)


pytestmark = pytest.mark.skipif(not fastscan.AVAILABLE, reason="the scanner was not built")


@pytest.mark.parametrize(
    "text",
    [
        EVENT,
        EVENT + "," + EVENT,
        EVENT.replace(" ", ""),
        EVENT.replace(", ", ",\n\t"),
        EVENT.replace('"tid": 2', '"tid": "stream 7"'),
        EVENT.replace("10.5", "1683564901548726"),
        EVENT.replace("10.5", "1683564901548726.125"),
    ],
)
def test_plain_events_are_taken(text: str) -> None:
    found = scan(text)
    assert found is not None
    assert found[0] == text.count('"ph"')


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("nothing", ""),
        ("no time", EVENT.replace('"ts": 10.5, ', "")),
        ("no phase", EVENT.replace('"ph": "X", ', "")),
        ("exponent", EVENT.replace("10.5", "1e3")),
        ("eight decimals", EVENT.replace("10.5", "10.12345678")),
        ("bare word", EVENT.replace('"dur": 1', '"dur": N/A')),
        ("key twice", EVENT.replace('"pid": 1', '"pid": 1, "pid": 2')),
        ("argument twice", EVENT.replace('"External id": 7', '"External id": 7, "External id": 8')),
        ("trailing comma", EVENT + ","),
        ("double comma", EVENT + ",," + EVENT),
        ("no comma", EVENT + EVENT),
        ("end of the array", EVENT + "]"),
        ("cut", EVENT[:-20]),
        ("unescaped quote", EVENT.replace("aten::mm", 'a"b')),
        ("huge number", EVENT.replace(": 7,", ": 99999999999999999999,")),
        ("unknown key of the event", EVENT.replace('"pid"', '"colour": "red", "pid"')),
        ("deep nesting", EVENT.replace("[1, 2]", "[" * 10_000 + "]" * 10_000)),
    ],
)
def test_anything_else_is_left_to_the_portable_code(why: str, text: str) -> None:
    assert scan(text) is None, why


def test_bounds_are_checked_before_anything_is_read() -> None:
    with pytest.raises(ValueError, match="begin and end must lie in the block"):
        SCANNER.scan(b"{}", 0, 3, b"")
    with pytest.raises(ValueError, match="begin and end must lie in the block"):
        SCANNER.scan(b"{}", 2, 1, b"")


def test_a_block_that_ends_anywhere_is_never_read_beyond() -> None:
    # The byte behind the end would complete the event: taking it would be reading out of bounds.
    block = EVENT.encode()
    for end in range(len(block)):
        assert SCANNER.scan(block, 0, end, fastscan._INT_KEYS) is None
    assert SCANNER.scan(block, 0, len(block), fastscan._INT_KEYS)[0] == 1


def test_random_bytes_do_no_harm() -> None:
    random.seed(5)
    alphabet = b'{}[]",:\\ 0123456789.-eXpht\n\x00\xff'
    for _ in range(3000):
        data = bytearray((EVENT + "," + EVENT).encode())
        for _ in range(random.randrange(1, 6)):  # noqa: S311 - test data
            data[random.randrange(len(data))] = random.choice(alphabet)  # noqa: S311 - test data
        scan(bytes(data))
        scan(bytes(random.choices(alphabet, k=random.randrange(200))))  # noqa: S311 - test data


def test_many_distinct_texts_grow_the_tables() -> None:
    events = ",".join(EVENT.replace("aten::mm", f"op {i}").replace("DtoD", f"k{i}") for i in range(20_000))
    found = scan(events)
    assert found[0] == 20_000
