"""Every key and value is found on the line where it stands."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceview.expectations.lines import Place, locate

DOCUMENT = '''\
# comment = 1
schema = 1
text = """
a = 1 \\"""
"""""
[context]
"torch" = '2.9'   # why
a.b = 1979-05-27 07:32:00

[[expect]]
op = "attention"
implementation = [
  "flash",  # [not an array
  'cud#nn',
]
when = { dtype = "bf16", deep = { x = [1, [2,
3]] } }
[expect.more]
k = 1
[[expect]]
op = "]]"
'''  # fmt: skip


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("schema",), 2),
        (("text",), 3),
        (("context",), 6),
        (("context", "torch"), 7),
        (("context", "a", "b"), 8),
        (("expect", 0), 10),
        (("expect", 0, "op"), 11),
        (("expect", 0, "implementation"), 12),
        (("expect", 0, "implementation", 0), 13),
        (("expect", 0, "implementation", 1), 14),
        (("expect", 0, "when", "dtype"), 16),
        (("expect", 0, "when", "deep", "x", 1, 0), 16),
        (("expect", 0, "when", "deep", "x", 1, 1), 17),
        (("expect", 0, "more", "k"), 19),
        (("expect", 1, "op"), 21),
        (("expect", 1, "missing", "deeper"), 20),
        (("expect", 7), 10),
    ],
)
def test_line(path, line):
    tomllib.loads(DOCUMENT)
    assert locate(DOCUMENT).at(*path) == line


def test_windows_line_ends():
    assert locate("a = 1\r\n[b]\r\nc = 2\r\n").at("b", "c") == 3


def shape(value):
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    return [shape(part) for part in value] if isinstance(value, list) else None


def placed(place: Place, value):
    """The same shape from the places, so that a key that was missed or invented shows."""
    if isinstance(value, dict):
        return {key: placed(inner, value.get(key)) for key, inner in place.keys.items()}
    return (
        [placed(inner, part) for inner, part in zip(place.items, value, strict=True)]
        if isinstance(value, list)
        else None
    )


SCALARS = st.one_of(
    st.integers(-9, 99).map(str), st.sampled_from(["true", "1e3", "inf", "2026-01-01", "2026-01-01 10:00:00", "07:00:00"]),
    st.text("ab\"'#=[]{},\\\n .", max_size=6).map(lambda t: '"' + t.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'),
    st.text('ab"#=[]{},\\ .', max_size=6).map(lambda t: f"'{t}'"),
    st.text("ab'#=[]{}\n ", max_size=6).map(lambda t: f'"""{t}"""'),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: "[\n" + ", # ]\n".join(parts) + "]"),
        st.lists(inner, max_size=3).map(lambda parts: "{" + ", ".join(f"k{at}.x = {v}" for at, v in enumerate(parts)) + "}"),
    ),
    max_leaves=6,
)  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(["", "[t{}]\n", "[[a]]\n", "[a.b{}]\n", '["q \\"{}"]\n']), VALUES), max_size=6)
)
def test_it_finds_the_keys_that_tomllib_finds(parts):
    text = "".join(head.format(at) + f"key{at} = {value}\n" for at, (head, value) in enumerate(parts))
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert placed(locate(text), document) == shape(document)
    lines = text.split("\n")
    for at in range(len(parts)):
        owner = [place for place in [locate(text)] if f"key{at}" in place.keys]
        for place in owner:
            assert lines[place.at(f"key{at}") - 1].startswith(f"key{at} =")
