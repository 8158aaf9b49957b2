"""The signature table as data: well formed, each row reachable, safe to run, and the same in both regex engines."""

from __future__ import annotations

import re
import time
from collections import Counter
from datetime import date

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traceview.kernels import (
    ATTENTION_IMPLEMENTATIONS,
    KERNEL_NAMES,
    PRECISIONS,
    Family,
    Signature,
    ascii_classes,
    identify,
    normalise,
    signatures,
)
from traceview.knowledge.kernel_table import FAMILY_DOCS, TableError, parse_table

TABLE = signatures()
EXAMPLES = [(row.id, example) for row in TABLE for example in row.examples]


def test_ids_are_unique() -> None:
    assert [id_ for id_, count in Counter(row.id for row in TABLE).items() if count > 1] == []


def test_every_row_says_where_it_comes_from_and_shows_an_example() -> None:
    for row in TABLE:
        assert row.source, row.id
        assert row.examples, row.id
        date.fromisoformat(row.checked)


def test_each_example_hits_its_own_row_first() -> None:
    """So no row is dead, and no row hides another."""
    found = dict(identify(pl.Series([example for _, example in EXAMPLES])).select("name", "signature").iter_rows())
    assert [(id_, found[example], example) for id_, example in EXAMPLES if found[example] != id_] == []


def test_attention_implementations_are_the_closed_list() -> None:
    told = {row.implementation for row in TABLE if row.family is Family.ATTENTION}
    assert told <= set(ATTENTION_IMPLEMENTATIONS)


def test_precisions_are_the_closed_list_or_read_from_the_name() -> None:
    assert {row.precision for row in TABLE} <= {*PRECISIONS, None, "{precision}", "template"}
    for row in TABLE:
        assert ("(?P<precision>" in row.regex) == (row.precision == "{precision}"), row.id


def test_every_family_is_documented() -> None:
    assert set(FAMILY_DOCS) == set(Family)


def test_no_pattern_matches_a_name_without_meaning() -> None:
    names = [
        "",
        "k",
        "kernel",
        "main_kernel",
        "Kernel2",
        "f(int)",
        "void g<float>(float*)",
        "x_y_z",
        "a::b::c<d>(e)",
        "0",
    ]
    assert identify(pl.Series(names))["signature"].drop_nulls().to_list() == []


def test_patterns_use_only_what_python_and_rust_share() -> None:
    for row in TABLE:
        assert not re.search(r"\(\?[=!<](?!P)|\\[1-9AZzpPQEx]", row.regex.replace("(?P<", "(")), row.id


def test_both_engines_agree_on_every_example() -> None:
    text = normalise(pl.Series([example for _, example in EXAMPLES]))
    for row in TABLE:
        rust = text.str.contains(ascii_classes(row.regex)).to_list()
        python = [re.search(row.regex, name, re.ASCII) is not None for name in text]
        assert rust == python, row.id


@pytest.mark.slow
@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.parametrize("row", [row for row in TABLE if row.needs], ids=lambda row: row.id)
def test_every_match_holds_a_needed_word(row: Signature, data: st.DataObject) -> None:
    name = data.draw(st.from_regex(re.compile(row.regex, re.ASCII)))
    assert any(word in name for word in row.needs), name


HOSTILE = {
    "one letter": "a" * 20_000,
    "underscores": "_" * 20_000,
    "namespaces": ("a::" * 7_000)[:20_000],
    "elementwise": ("void at::native::elementwise_kernel<" * 600)[:20_000],
    "cutlass": "void cutlass::device_kernel<" + "flash::enable_sm90<" * 1_000,
    "inductor": "triton_red_fused_" + "mean_pow_" * 2_200,
    "xmma": "sm80_xmma_gemm_" + "f32" * 6_000,
    "tensile": "Cijk_Ailk_Bljk_" + "S_" * 9_000,
    "mangled": "_ZN" + "9aaaaaaaaa" * 1_900,
    "lengths": "_ZN" + "9" * 20_000,
    "fusion": "a_" * 9_000 + "fusion",
    "named": "a_" * 9_000 + "softmax_",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_name_costs_bounded_time(name: str) -> None:
    identify(pl.Series(["warm"]))
    # Of the processor: what else the machine does is not counted. What is not bounded takes minutes.
    start = time.process_time()
    identify(pl.Series([name]))
    assert time.process_time() - start < 5.0


def test_identify_keeps_its_contract_on_any_input() -> None:
    for names in (
        pl.Series([], dtype=pl.String),
        pl.Series([None, "a", "a"]),
        pl.Series(["x", "x"], dtype=pl.Categorical),
    ):
        KERNEL_NAMES.validate(identify(names))
    assert identify(pl.Series([None, "a", "a"]))["name"].to_list() == ["a"]


@settings(max_examples=60)
@given(st.lists(st.text(max_size=80), max_size=8))
def test_identify_takes_any_text(names: list[str]) -> None:
    result = identify(pl.Series(names, dtype=pl.String))
    assert sorted(result["name"]) == sorted(set(names))


ROW = """
schema = 1
checked = 2026-01-02
[sources]
here = "a source"
[[signature]]
id = "a"
regex = 'x'
family = "gemm"
source = "here"
evidence = "B"
examples = ["x"]
"""


def test_a_row_is_read() -> None:
    (row,) = parse_table(ROW, "t.toml")
    assert (row.id, row.family, row.role, row.source, row.checked) == (
        "a",
        Family.GEMM,
        "main",
        "a source",
        "2026-01-02",
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("schema = 1", "schema = 2"), "t.toml: expected schema = 1"),
        (('family = "gemm"', 'family = "gem"'), "t.toml: a: 'gem' is not a valid Family"),
        (('source = "here"', 'source = "there"'), "t.toml: a: 'there'"),
        (("id =", "name ="), "t.toml: row without id: unknown keys ['name']"),
        (("regex = 'x'", "regex = 'x"), "t.toml: "),
    ],
)
def test_a_bad_row_is_named(change: tuple[str, str], told: str) -> None:
    with pytest.raises(TableError) as error:
        parse_table(ROW.replace(*change), "t.toml")
    assert str(error.value).startswith(told)
