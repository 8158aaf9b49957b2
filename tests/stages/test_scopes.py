"""Stages from named scopes of XLA programs. The paths are as JAX writes them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from authored_timeline import kernel, unlinked
from traceview.stage_sources.scopes import scope_path
from traceview.stages import assign_stages, stage_patterns

PATHS = {
    "jit(f)/denoiser/mlp/dot_general": ("denoiser", "mlp"),
    "jit(f)/dot_general": (),
    "dot_general": (),
    "": (),
    "jit(step_fun)/QKVParallelLinear/mn,pn->mp/dot_general:": ("QKVParallelLinear",),
    "jit(train_step)/jvp(Transformer)/while/body/shard_map/dispatch/all_to_all": ("Transformer", "dispatch"),
    "jit(train_step)/transpose(jvp(Model.apply))/decoder/layers_3/dot_general": ("backward", "Model.apply", "decoder", "layers"),
    "jit(f)/jit(_inner)/layers_0/layers_1/add": ("layers",),
    "jit(f)/a/add;jit(f)/b/mul": ("a",),
    "jit(step_fun)/aten::mean.dim/reduce_sum": (),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_scope_path(name):
    assert scope_path(name) == PATHS[name]


def scoped(*rows):
    """A device timeline of (op, scope, microseconds)."""
    built = unlinked(*(kernel(name, 10 * at, 10 * at + us, kind="xla_op") for at, (name, _, us) in enumerate(rows)))
    values = pl.Series([f'"{scope}"' for _, scope, _ in rows], dtype=pl.Categorical)
    frame = pl.DataFrame({"id": pl.Series(range(len(rows)), dtype=pl.UInt32), "value": values})
    return replace(built, details={"op_name": frame})


def stages(built, given=()):
    staging = assign_stages(built, stage_patterns(given))
    staging.timeline.validate()
    return dict(staging.timeline.events.select(pl.col("name", "stage").cast(pl.String)).iter_rows()), staging


def test_scopes_are_cut_where_the_program_splits():
    found, staging = stages(
        scoped(
            ("a", "jit(f)/Model/text_encoder/mlp/dot_general", 3),
            ("b", "jit(f)/Model/denoiser/block_0/attn/dot_general", 9),
            ("c", "jit(f)/Model/denoiser/block_1/mlp/dot_general", 9),
            ("d", "jit(f)/copy", 1),
        )
    )
    assert found == {"a": "Model/text_encoder", "b": "Model/denoiser", "c": "Model/denoiser", "d": None}
    assert [source.value for source in staging.sources] == ["XLA scope"]


def test_ops_whose_program_is_not_recorded_keep_the_scope_of_their_events():
    """A profile can hold some of its programs; XProf writes ``tf_op`` on every op of a TPU."""
    rows = [("a", "jit(f)/Model/encoder/dot_general", 3), ("b", "jit(g)/Model/decoder/dot_general", 9)]
    built = scoped(*rows)
    (name,) = built.details.values()
    parts = {"op_name": name.head(1), "tf_op": name.with_columns(pl.col("value").cast(pl.String).cast(pl.Categorical))}
    found, _ = stages(replace(built, details=parts))
    assert found == {"a": "Model/encoder", "b": "Model/decoder"}


def test_a_pattern_sees_the_whole_scope():
    found, staging = stages(
        scoped(("a", "jit(f)/Model/enc/mlp/dot", 3), ("b", "jit(f)/Model/dec/attn/dot", 3)), ["attention=attn"]
    )
    assert found == {"a": "Model/enc", "b": "attention"}
    assert staging.notes == ()
