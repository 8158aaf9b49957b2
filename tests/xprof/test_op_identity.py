"""What XLA ops are: names and categories of public profiles and programs, in authored spaces."""

from __future__ import annotations

import polars as pl
import pytest

from sample_traces.xspace_bytes import Space
from traceview.busy import busy
from traceview.dispatch import dispatch_table
from traceview.gate import check
from traceview.kernels import identify
from traceview.xla import identify_work


def ops_of(*rows: tuple[str, dict[str, str]], plane: str = "/device:TPU:0") -> bytes:
    """One op after the other, 10 us each, with the stats that XLA gives to their names."""
    space = Space()
    line = space.plane(plane).line("XLA Ops", 3)
    for place, (name, stats) in enumerate(rows):
        line.event(name, 10 * place, 10, of_name=stats)
    return space.encode()


def facts(timeline, *columns: str) -> list[tuple]:
    work = timeline.device_work.with_columns(pl.col("name").cast(pl.String))
    return identify_work(timeline, work).select(columns).rows()


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("fusion.12.remat", "fusion"),
        ("convolution_add_fusion.3.remat2", "gemm"),
        ("broadcast.7.clone", "elementwise"),
        ("all-reduce-scatter.4", "collective"),
        ("async-collective-start.1", "collective"),
        ("async-collective-done.1", "collective"),
        ("fused-moe-k_8-bt_64-bf_2048.1", "moe"),
        ("gmm_checkpoint_fp8-g_1-m_8-k_2048-n_4096-tm_8", "gemm"),
        ("gmm_em_step", "unknown"),
        ("closed_call.21", "unknown"),
    ],
)
def test_names(name, family):
    assert identify(pl.Series([name]))["family"].to_list() == [family]


@pytest.mark.parametrize(
    ("name", "category", "family"),
    [
        ("add_any.3", "non-fusion elementwise", "elementwise"),
        ("select_n.4", "loop fusion", "fusion"),
        ("reduce_sum.9", "reduce", "reduce"),
        ("ppermute_thing.1", "collective-permute", "collective"),
        ("x.5", "data formatting", "elementwise"),
        ("x.6", "scatter fusion", "index"),
        ("x.7", "sort", "index"),
        ("x.8", "rng-bit-generator", "rng"),
        ("x.9", "custom-call", "unknown"),
        ("x.10", "a category of next year", "unknown"),
        ("splash_mha_fwd_residuals.1", "custom-call", "attention"),
    ],
)
def test_a_name_that_says_nothing_goes_by_its_category(loaded, name, category, family):
    timeline = loaded(ops_of((name, {"hlo_category": category})))
    assert facts(timeline, "family") == [(family,)]


@pytest.mark.parametrize(
    ("path", "family", "implementation"),
    [
        ("jit(train)/jvp(Model)/splash_mha_fwd_residuals/pallas_call:", "attention", "pallas"),
        ("jit(f)/transpose(jvp(jit(flash_attention)))/pallas_call", "attention", "pallas"),
        ("jit(step)/RPA-bq_32-bkvp_64-p_64-/pallas_call", "attention", "paged"),
        ("jit(f)/gmm/pallas_call", "gemm", "pallas"),
        ("jit(f)/flash_attention/custom_thing", "unknown", None),
        ("jit(f)/shard_map/pallas_call", "unknown", None),
    ],
)
def test_a_pallas_kernel_under_a_name_of_xla(loaded, path, family, implementation):
    timeline = loaded(ops_of(("closed_call.21", {"hlo_category": "custom-call", "tf_op": path})))
    assert facts(timeline, "family", "implementation") == [(family, implementation)]


@pytest.mark.parametrize(
    ("path", "family"),
    [("jit(f)/resnet/conv_general_dilated", "conv"), ("ResNet/Conv2D", "conv"), ("jit(f)/mlp/dot_general", "gemm")],
)
def test_a_convolution_is_no_matrix_product(loaded, path, family):
    timeline = loaded(ops_of(("fusion.3", {"hlo_category": "convolution fusion", "tf_op": path})))
    assert facts(timeline, "family", "tensor_core") == [(family, True)]


def test_a_megacore_fusion_holds_the_ops_within_it(loaded):
    space = Space()
    line = space.plane("/device:TPU:0").line("XLA Ops", 3)
    line.event("fusion.1", 0, 100, of_name={"hlo_category": "megacore fusion"})
    line.event("fusion.2", 10, 30, of_name={"hlo_category": "loop fusion"})
    line.event("all-reduce-done.3", 50, 40, of_name={"hlo_category": "all-reduce-done"})
    (one,) = busy(loaded(space.encode()))
    assert (one.busy_ns, one.wait_ns) == (30, 40)


class TestWaitingForTheHost:
    def input_bound(self, loaded):
        space = Space()
        plane = space.plane("/device:TPU:0")
        plane.line("XLA Modules", 2).event("jit_step(7)", 0, 100)
        ops = plane.line("XLA Ops", 3)
        ops.event("infeed.1", 0, 50, of_name={"hlo_category": "infeed"})
        ops.event("fusion.1", 50, 20, of_name={"hlo_category": "loop fusion"})
        ops.event("recv-done.2", 70, 20, of_name={"hlo_category": "host recv-done"})
        ops.event("recv-done.3", 90, 10, of_name={"hlo_category": "recv-done"})
        return loaded(space.encode())

    def test_is_no_work(self, loaded):
        (one,) = busy(self.input_bound(loaded))
        assert (one.busy_ns, one.wait_ns) == (20, 80)

    def test_is_told_once_and_apart_from_its_own_copies(self, loaded):
        found = {one.code: one for one in check(self.input_bound(loaded)).findings}
        assert set(found) >= {"TV403", "TV406"}
        assert found["TV403"].cost_ns == 70
        assert found["TV403"].evidence[1].endswith("in 2 operations for the host (infeed, send, receive)")
        assert found["TV406"].cost_ns == 10
        assert found["TV406"].where == "recv-done"


def test_the_verdict_finds_a_kernel_by_its_path(loaded):
    timeline = loaded(
        ops_of(("closed_call.2", {"hlo_category": "custom-call", "tf_op": "jit(f)/mha_forward/pallas_call"}))
    )
    (row,) = dispatch_table(timeline).attention
    assert (row.implementation, row.verdict) == ("pallas", "ok")


@pytest.mark.parametrize("code", [ord("{"), ord("[")])
def test_a_plane_as_long_as_the_code_of_a_brace_is_no_json(loaded, code):
    """The second byte of a space is the length of its first plane."""

    def space(length: int) -> bytes:
        one = Space()
        one.plane("/device:TPU:0").line("XLA Ops", 3).event("x" * length, 0, 10)
        return one.encode()

    (data,) = (made for length in range(1, 80) if (made := space(length))[1] == code)
    assert loaded(data).events.height == 1


def test_a_device_of_a_sort_that_is_not_known_is_named(loaded):
    space = Space()
    space.plane("/device:CUSTOM:NPU:0").line("stream", 1).event("matmul", 0, 10)
    space.plane("/host:CPU").line("python", 2).event("step", 0, 20)
    (note,) = (one for one in loaded(space.encode()).report.notes if one.kind == "host-only")
    assert note.text.startswith("The device plane /device:CUSTOM:NPU:0 is of a sort that is not known")
