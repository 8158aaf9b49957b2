"""Five hundred names of device kernels that real profilers print and real libraries hold: what each is."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import polars as pl
import pytest

from traceview.kernels import identify
from traceview.knowledge.ops import find_attention_op

_TABLE: Final = Path(__file__).with_name("real_names.tsv")
_UNITS: Final = {True: "yes", False: "no", None: "-"}


def rows() -> list[dict[str, str]]:
    lines = [line for line in _TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_each_name_is_what_it_is() -> None:
    expected = rows()
    told = {row["name"]: row for row in identify(pl.Series([row["name"] for row in expected])).iter_rows(named=True)}
    wrong = []
    for row in expected:
        found = told[row["name"]]
        is_now = {key: found[key] or "-" for key in ("family", "implementation", "provider", "precision", "role")}
        is_now["tensor_core"] = _UNITS[found["tensor_core"]]
        wrong += [(row["name"][:80], key, row[key], is_now[key]) for key in is_now if row[key] != is_now[key]]
    assert wrong == []


def test_the_table_is_whole() -> None:
    table = rows()
    assert len({row["name"] for row in table}) == len(table) >= 400
    assert all(row["seen"] for row in table)


@pytest.mark.parametrize(
    ("name", "family", "implementation"),
    [
        # Words of attention in the name, and no attention.
        ("fused_linear_attn_fwd_kernel", "recurrent", "linear-attention"),
        ("_build_paged_attention_metadata_kernel", "index", None),
        ("triton_poi_fused__scaled_dot_product_cudnn_attention_permute_where_0", "elementwise", "fused-pointwise"),
        ("lib::flash_attention_fwd::copy_rows_kernel(int)", "elementwise", "copy"),
        ("void lib::gemm_sm90::PackInputKernel<4>(float*)", "unknown", None),
        ("dequantize_gemm_output_kernel<float>(int)", "quantize", None),
    ],
)
def test_words_alone_do_not_make_a_kernel(name: str, family: str, implementation: str | None) -> None:
    (row,) = identify(pl.Series([name])).iter_rows(named=True)
    assert row["family"] == family
    assert implementation is None or row["implementation"] == implementation


@pytest.mark.parametrize(
    "name",
    [
        "_vllm_fa3_C::get_scheduler_metadata",
        "aiter::mla_reduce_v1",
        "flashinfer::append_paged_mla_kv_cache",
        "trtllm::mla_rope_generation",
        "_C::merge_attn_states",
        "sglang::linear_attention_with_output",
        "sgl_kernel::gdn_attn_core",
        "vllm::unified_kv_cache_update",
    ],
)
def test_an_op_that_plans_stores_or_merges_asks_for_no_attention(name: str) -> None:
    assert find_attention_op(name) is None


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("_vllm_fa3_C::fwd", "forward"),
        ("vllm::flash_attn_maxseqlen_wrapper", "forward"),
        ("vllm::xformers_attn_seqlens_wrapper", "forward"),
        ("autograd::engine::evaluate_function: _fMHABackward", "backward"),
        ("sageattention_qattn_sm89::qk_int8_sv_f8_accum_f32_attn_inst_buf", "forward"),
    ],
)
def test_an_op_that_computes_attention_asks_for_it(name: str, direction: str) -> None:
    op = find_attention_op(name)
    assert op is not None
    assert op.direction == direction
