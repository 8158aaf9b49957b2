"""The vectorised reader gives what the plain one gives: on real traces, on made-up ones, on damaged ones."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from same_trace import assert_same, contents
from traceview.errors import UnreadableTraceError
from traceview.parsers.kineto.raw import INT_ARGS
from traceview.parsers.kineto.reader import read, read_reference

if TYPE_CHECKING:
    from pathlib import Path


def test_small_corpus_files(corpus: Path) -> None:
    files = [path for path in sorted(corpus.glob("pytorch/*.json.gz")) if path.stat().st_size < 200_000]
    assert files
    for path in files:
        assert_same(read(path), read_reference(path))


@pytest.mark.slow
def test_large_corpus_files(corpus: Path) -> None:
    for path in sorted(corpus.glob("pytorch/*.json.gz")):
        if path.stat().st_size >= 200_000:
            assert_same(read(path), read_reference(path))


def test_small_blocks_give_the_same(corpus: Path) -> None:
    path = corpus / "pytorch" / "alexnet-a100-critical-path.json.gz"
    whole = contents(read(path))
    for size in (300, 1000, 5000):
        assert contents(read(path, block_bytes=size)) == whole


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["}, {", '"', "\\", '\\"', "\\\\", "}]", "[{", "a\\b.py(3): f", "traceEvents", '{"ph": "X"}', "\u2028", "\x00", "/"]
)
INTEGER = st.integers(-(2**70), 2**70) | st.integers(-100, 10**7)
SCALAR = st.none() | st.booleans() | INTEGER | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
TIME = st.decimals(-(10**9), 10**13, places=3) | st.decimals(0, 10**6, places=9) | st.integers(0, 2 * 10**15)
ARGUMENTS = st.dictionaries(
    st.sampled_from(sorted(INT_ARGS)) | TEXT | st.sampled_from(["name", "ts", "args"]), VALUE, max_size=5
)
IDENTITY = INTEGER | TEXT | st.integers(0, 99).map(str) | st.none()
EVENT = st.fixed_dictionaries(
    {"ph": st.sampled_from(["X", "i", "s", "f", "M", "C", "b", "XX", ""]), "ts": TIME},
    optional={
        "cat": TEXT,
        "name": TEXT,
        "pid": IDENTITY,
        "tid": IDENTITY,
        "id": IDENTITY,
        "dur": TIME,
        "bp": st.just("e"),
        "args": ARGUMENTS | VALUE,
        "other": VALUE,
    },
)


def written(event: dict[str, Any], order: random.Random, layout: str) -> str:
    """The event as JSON text in one of the layouts that writers use."""
    keys = list(event)
    order.shuffle(keys)
    plain = {key: event[key] for key in keys}
    for key in ("ts", "dur"):
        if key in plain:
            plain[key] = f"@@{plain[key]}@@"
    if layout == "compact":
        text = json.dumps(plain, separators=(",", ":"))
    elif layout == "indented":
        text = json.dumps(plain, indent=4, ensure_ascii=False)
    elif layout == "spaced":
        text = json.dumps(plain, separators=(" ,\t", " \n : \r\n"))
    else:
        text = (
            "{\n    "
            + ",\n    ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in plain.items())
            + "\n  }"
        )
    return re.sub(r'"@@([^"@]*)@@"', r"\1", text)


@given(
    events=st.lists(EVENT, max_size=8),
    layout=st.sampled_from(["compact", "indented", "spaced", "torch"]),
    seed=st.integers(0, 1000),
    block_bytes=st.sampled_from([64, 300, 1 << 20]),
)
def test_generated_traces(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]], layout: str, seed: int, block_bytes: int
) -> None:
    order = random.Random(seed)  # noqa: S311 - repeatable, not secret
    path = tmp_path_factory.mktemp("generated") / "trace.json"
    texts = [written(event, order, layout) for event in events]
    path.write_text('{"schemaVersion": 1, "traceEvents": [\n  ' + ",\n  ".join(texts) + '\n], "traceName": "t"}\n')
    plain = read_reference(path)
    assert_same(read(path, block_bytes=block_bytes), plain)
    assert plain.events.height == len(events)
    assert not [kind for kind in plain.counts if kind.startswith("lost-") and kind != "lost-duration"]


def small_trace() -> bytes:
    """A trace of 9 events, each of which names itself."""
    events = [
        {
            "ph": "X", "cat": "cpu_op", "name": f"<event {number}>", "pid": 1, "tid": 2 + number % 3,
            "ts": 1000 + number, "dur": 1.25,
            "args": {"External id": number, "Input Dims": [[number, 2], []], "Input type": ["float", ""], "s": "a{b"},
        }
        for number in range(9)
    ]  # fmt: skip
    body = ",\n  ".join(json.dumps(event) for event in events)
    return f'{{"schemaVersion": 1, "traceEvents": [\n  {body}\n  ],\n  "traceName": "t"\n}}\n'.encode()


def spans_of_events(data: bytes) -> dict[str, tuple[int, int]]:
    """Where each event of :func:`small_trace` stands."""
    text = data.decode()
    decoder = json.JSONDecoder()
    spans = {}
    at = text.index("{", text.index("["))
    while True:
        event, end = decoder.raw_decode(text, at)
        spans[event["name"]] = (at, end)
        if text[end:].lstrip()[0] != ",":
            return spans
        at = text.index("{", end)


def check_damaged(path: Path, damaged: bytes, whole: set[str], *, block_bytes: int) -> None:
    """Nothing but a clear refusal may be raised, and no whole event may be missing without a count."""
    path.write_bytes(damaged)
    try:
        trace = read(path, block_bytes=block_bytes)
    except UnreadableTraceError:
        assert not whole or b'"traceEvents"' not in damaged or b"[" not in damaged
        return
    found = set(trace.events["name"].drop_nulls().to_list())
    missing = whole - found
    lost = sum(count.n for kind, count in trace.counts.items() if kind.startswith("lost-"))
    assert not missing or lost, (missing, dict(trace.counts))


@pytest.mark.parametrize("block_bytes", [1 << 20, 700])
def test_cut_at_every_byte(tmp_path: Path, block_bytes: int) -> None:
    data = small_trace()
    spans = spans_of_events(data)
    start = data.index(b"[") + 1
    for cut in range(start, len(data), 1 if block_bytes > 700 else 5):
        whole = {name for name, (_, end) in spans.items() if end <= cut}
        path = tmp_path / "trace.json"
        path.write_bytes(data[:cut])
        trace = read(path, block_bytes=block_bytes)
        assert set(trace.events["name"]) == whole
        assert trace.truncated or data[cut:].isspace()


@pytest.mark.parametrize("block_bytes", [1 << 20, 700])
@pytest.mark.parametrize("seed", range(3))
def test_flipped_bytes(tmp_path: Path, seed: int, block_bytes: int) -> None:
    data = small_trace()
    spans = spans_of_events(data)
    order = random.Random(seed)  # noqa: S311 - repeatable, not secret
    for _ in range(100):
        damaged = bytearray(data)
        places = [order.randrange(data.index(b"["), len(data)) for _ in range(order.choice((1, 1, 1, 3, 10)))]
        for place in places:
            damaged[place] = order.choice((order.randrange(256), *b'"\\{}[],:'))
        whole = {name for name, (begin, end) in spans.items() if not any(begin <= place < end for place in places)}
        check_damaged(tmp_path / "trace.json", bytes(damaged), whole, block_bytes=block_bytes)


@pytest.mark.parametrize("block_bytes", [1 << 20, 700])
@pytest.mark.parametrize("seed", range(3))
def test_deleted_stretches(tmp_path: Path, seed: int, block_bytes: int) -> None:
    data = small_trace()
    spans = spans_of_events(data)
    order = random.Random(seed)  # noqa: S311 - repeatable, not secret
    for _ in range(100):
        begin = order.randrange(data.index(b"[") + 1, len(data))
        end = min(len(data), begin + order.choice((1, 2, 10, 100, 1000)))
        whole = {name for name, (first, last) in spans.items() if last <= begin or first >= end}
        check_damaged(tmp_path / "trace.json", data[:begin] + data[end:], whole, block_bytes=block_bytes)
