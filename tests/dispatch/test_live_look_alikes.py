"""What is attention and what only looks like it: programs recorded on the CPU, of which the truth is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import traceview
from live_frameworks import live
from traceview.comparability import Effect
from traceview.compare import compare
from traceview.dispatch import dispatch_table
from traceview.explaining import explain_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

torch = live("torch")
F = torch.nn.functional

BATCH, HEADS, TOKENS, SIZE = 2, 4, 24, 16
Q, K, V = (torch.randn(BATCH, HEADS, TOKENS, SIZE) for _ in range(3))
X = torch.randn(BATCH, TOKENS, HEADS * SIZE)


def recorded(program: Callable[[], object], folder: Path, *, shapes: bool) -> list[tuple[str, str, str, int]]:
    """Implementation, direction, evidence and number of the attention calls of two runs."""
    program()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=shapes) as profiler:
        program()
        program()
    path = folder / "recorded.json"
    profiler.export_chrome_trace(str(path))
    rows = dispatch_table(traceview.load(path)).attention
    return sorted((row.implementation or "", row.direction, row.evidence, row.count) for row in rows)


def plain() -> object:
    return torch.matmul(torch.matmul(Q, K.transpose(-1, -2)).div(4).softmax(-1), V)


def einsum() -> object:
    scores = torch.einsum("bhqd,bhkd->bhqk", Q, K) * 0.25
    return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), V)


def baddbmm() -> object:
    q, k, v = (one.reshape(BATCH * HEADS, TOKENS, SIZE) for one in (Q, K, V))
    scores = torch.baddbmm(torch.zeros(BATCH * HEADS, TOKENS, TOKENS), q, k.transpose(1, 2), beta=0, alpha=0.25)
    return torch.bmm(scores.softmax(-1), v)


def masked_in_float32() -> object:
    q, k, v = Q.bfloat16(), K.bfloat16(), V.bfloat16()
    scores = (q @ k.transpose(-1, -2)).masked_fill(torch.ones(TOKENS, TOKENS).triu(1).bool(), -torch.inf)
    return scores.softmax(-1, dtype=torch.float32).to(torch.bfloat16) @ v


ENCODER = torch.nn.TransformerEncoderLayer(HEADS * SIZE, HEADS, 32, batch_first=True).eval()


def encoder_fast_path() -> object:
    """On the CPU the fast path multiplies, takes the softmax and multiplies, with outputs given to write to."""
    with torch.inference_mode():
        return ENCODER(X)


@pytest.mark.parametrize("program", [plain, einsum, baddbmm, masked_in_float32, encoder_fast_path])
@pytest.mark.parametrize("shapes", [True, False], ids=["shapes", "no-shapes"])
def test_attention_by_hand_is_found(program: Callable[[], object], tmp_path: Path, *, shapes: bool) -> None:
    evidence = "shapes" if shapes else "chain"
    assert recorded(program, tmp_path, shapes=shapes) == [("unfused", "forward", evidence, 2)]


def test_values_may_be_projected_after_the_softmax(tmp_path: Path) -> None:
    query, key, value = (torch.nn.Linear(64, 64, bias=False) for _ in range(3))

    def program() -> object:
        weights = (query(X) @ key(X).mT).softmax(-1)
        return weights @ value(X)

    assert recorded(program, tmp_path, shapes=True) == [("unfused", "forward", "shapes", 2)]


def test_the_fast_path_of_a_module_is_named_with_its_own_remedy(tmp_path: Path) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        encoder_fast_path()
    path = tmp_path / "recorded.json"
    profiler.export_chrome_trace(str(path))
    (told,) = explain_trace(traceview.load(path)).explained
    assert (told.first.op, told.first.implementation) == ("aten::_native_multi_head_attention", "unfused")
    assert "set_fastpath_enabled(False)" in told.change[0]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            encoder_fast_path()
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    profiler.export_chrome_trace(str(path))
    (told,) = explain_trace(traceview.load(path)).explained
    assert told.first.implementation == "cpu-flash", "what the advice says comes true"


def test_the_time_on_the_host_is_that_of_the_whole_chain(tmp_path: Path) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        plain()
    path = tmp_path / "recorded.json"
    profiler.export_chrome_trace(str(path))
    timeline = traceview.load(path)
    (row,) = dispatch_table(timeline).attention
    work = timeline.events.filter(pl.col("name").cast(pl.String).is_in(["aten::bmm", "aten::div", "aten::_softmax"]))
    assert row.host_ns == work["dur_ns"].sum()


def test_each_call_is_counted_once_under_vmap(tmp_path: Path) -> None:
    def program() -> object:
        return torch.vmap(torch.vmap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v))(Q, K, V)

    assert recorded(program, tmp_path, shapes=True) == [("unfused", "forward", "shapes", 2)]


def test_its_backward_is_found_too(tmp_path: Path) -> None:
    def program() -> None:
        q, k, v = (one.clone().requires_grad_() for one in (Q, K, V))
        ((q @ k.mT).softmax(-1) @ v).sum().backward()

    expected = [("unfused", "backward", "shapes", 2), ("unfused", "forward", "shapes", 2)]
    assert recorded(program, tmp_path, shapes=True) == expected


DOWN, UP = torch.nn.Linear(HEADS * SIZE, SIZE), torch.nn.Linear(SIZE, HEADS * SIZE)
DOWN_UNBIASED, UP_UNBIASED = (
    torch.nn.Linear(one, other, bias=False) for one, other in ((HEADS * SIZE, SIZE), (SIZE, HEADS * SIZE))
)
EXPERTS = torch.randn(8, HEADS * SIZE, HEADS * SIZE)
GATE = torch.nn.Linear(HEADS * SIZE, 8)
TABLE = torch.randn(SIZE, HEADS * SIZE)


def between_linear_layers() -> object:
    return UP(DOWN(X).softmax(-1))


def between_linear_layers_in_training() -> None:
    square = torch.nn.Linear(64, 64)
    square(square(torch.randn(64, 64)).softmax(-1)).sum().backward()


def between_unbiased_layers() -> object:
    return UP_UNBIASED(DOWN_UNBIASED(X).softmax(-1))


def between_unbiased_layers_in_training() -> None:
    square = torch.nn.Linear(64, 64, bias=False)
    square(square(torch.randn(64, 64)).softmax(-1)).sum().backward()


def mixture_of_experts() -> object:
    tokens = X.reshape(-1, HEADS * SIZE)
    weights = GATE(tokens).softmax(-1)
    outputs = torch.bmm(tokens.expand(8, -1, -1), EXPERTS)
    return torch.bmm(weights.unsqueeze(1), outputs.transpose(0, 1))


def gumbel_softmax() -> object:
    return F.gumbel_softmax(DOWN(X)) @ TABLE


def pooled_by_a_learned_score() -> object:
    return torch.bmm(torch.nn.Linear(HEADS * SIZE, 1)(X).softmax(1).transpose(1, 2), X)


def distillation() -> None:
    wanted = UP(DOWN(X)).softmax(-1).detach()
    F.kl_div(F.log_softmax(UP(DOWN(X)), -1), wanted, reduction="batchmean").backward()


def smoothed_loss() -> object:
    logits = UP(DOWN(X)).reshape(-1, HEADS * SIZE)
    loss = F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64), label_smoothing=0.1)
    return loss, DOWN(X)


def retrieval() -> object:
    queries, keys = F.normalize(torch.randn(16, 64), dim=-1), F.normalize(torch.randn(99, 64), dim=-1)
    return (queries @ keys.T).softmax(-1).topk(5), DOWN(X)


def linear_attention() -> object:
    context = K.softmax(-2).mT @ V
    return Q.softmax(-1) @ context


def soft_mixture_of_experts() -> object:
    logits = X @ TABLE.T
    slots = logits.softmax(1).mT @ X
    return logits.softmax(-1) @ slots


def weighed_table() -> object:
    """The scores have a batch, the table has none."""
    return (X @ TABLE.T).softmax(-1) @ TABLE


LOOK_ALIKES = [
    between_linear_layers, between_linear_layers_in_training, between_unbiased_layers,
    between_unbiased_layers_in_training, mixture_of_experts, gumbel_softmax, pooled_by_a_learned_score, distillation,
    smoothed_loss, retrieval, weighed_table, linear_attention, soft_mixture_of_experts,
]  # fmt: skip


@pytest.mark.parametrize("program", LOOK_ALIKES)
def test_a_softmax_beside_products_is_no_attention(program: Callable[[], object], tmp_path: Path) -> None:
    assert recorded(program, tmp_path, shapes=True) == []


@pytest.mark.parametrize("program", [one for one in LOOK_ALIKES if one is not weighed_table])
def test_nor_is_it_where_shapes_are_not_recorded(program: Callable[[], object], tmp_path: Path) -> None:
    assert recorded(program, tmp_path, shapes=False) == []


def test_products_of_single_matrices_are_inferred_only(tmp_path: Path) -> None:
    def program() -> object:
        return (Q[0, 0] @ K[0, 0].mT).softmax(-1) @ V[0, 0]

    for shapes in (True, False):
        assert recorded(program, tmp_path, shapes=shapes) == [("unfused", "forward", "matrices", 2)]


def test_a_comparison_says_what_replaced_attention_by_hand(tmp_path: Path) -> None:
    paths = []
    for name, program in (("by-hand", plain), ("fused", lambda: F.scaled_dot_product_attention(Q, K, V))):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
            program()
        paths.append(tmp_path / f"{name}.json")
        profiler.export_chrome_trace(str(paths[-1]))
    found = compare(*(traceview.load(path) for path in paths))
    (change,) = found.dispatches
    assert [one.implementation for one in (*change.before, *change.after)] == ["unfused", "cpu-flash"]
    assert {one.what: one.effect for one in found.conditions}["input shapes"] is Effect.HOLDS
