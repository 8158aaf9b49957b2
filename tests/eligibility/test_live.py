"""PyTorch on this CPU: capture, load, explain. Skipped where PyTorch is not installed; nothing here is hand-fed."""

from __future__ import annotations

import json
import random

import pytest

from live_frameworks import live
from traceview import load
from traceview.dispatch import dispatch_table
from traceview.eligibility import Device, explain, read_call

torch = live("torch")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

sdpa = torch.nn.functional.scaled_dot_product_attention
Q = torch.randn(2, 4, 16, 32)


def explained(tmp_path, function, version=torch.__version__):
    """Implementation, named rules and verdict of the one call that ``function`` makes."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        function()
    file = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(file))
    (row,) = dispatch_table(load(file), torch=version).attention
    causes = {reason.rule for reason in row.reasons if reason.status == "refuses"}
    (order,) = [reason for reason in row.reasons if reason.rule == "order"]
    return row.implementation, causes, order.status


FLASH = {
    "plain": lambda: sdpa(Q, Q, Q),
    "bfloat16": lambda: sdpa(Q.bfloat16(), Q.bfloat16(), Q.bfloat16()),
    "boolean mask": lambda: sdpa(Q, Q, Q, attn_mask=torch.ones(16, 16, dtype=torch.bool)),
    "transposed mask": lambda: sdpa(Q, Q, Q, attn_mask=torch.zeros(16, 16).T.contiguous().T),
    "grouped heads": lambda: sdpa(Q, Q[:, :2], Q[:, :2], enable_gqa=True),
    "causal with fewer queries": lambda: sdpa(Q[:, :, :4], Q, Q, is_causal=True),
}
MATH = {
    "dropout": (lambda: sdpa(Q, Q, Q, dropout_p=0.1), {"P1-dropout"}),
    "narrow value": (lambda: sdpa(Q, Q, torch.randn(2, 4, 16, 48)), {"P1-head-dim"}),
    "three-dimensional mask": (lambda: sdpa(Q, Q, Q, attn_mask=torch.zeros(4, 16, 16)), {"P1-mask-shape"}),
    "broadcast batch": (lambda: sdpa(Q, Q[:1], Q[:1]), {"F11"}),
    "dropout with grouped heads": (lambda: sdpa(Q, Q[:, :2], Q[:, :2], enable_gqa=True, dropout_p=0.5), {"P1-dropout"}),
    "transposed key": (lambda: sdpa(Q, Q.mT.contiguous().mT, Q), {"F12"}),
    "dropout and a transposed key": (lambda: sdpa(Q, Q.mT.contiguous().mT, Q, dropout_p=0.1), {"P1-dropout", "F12"}),
}  # fmt: skip


@pytest.mark.parametrize("name", FLASH)
def test_fused_calls_are_expected(tmp_path, name):
    assert explained(tmp_path, FLASH[name]) == ("cpu-flash", set(), "allows")


@pytest.mark.parametrize("name", MATH)
def test_calls_that_land_on_math_name_exactly_the_rule(tmp_path, name):
    function, causes = MATH[name]
    assert explained(tmp_path, function) == ("math", causes, "allows")


@pytest.mark.parametrize("name", ["dropout", "narrow value", "transposed key"])
def test_the_release_need_not_be_known(tmp_path, name):
    function, causes = MATH[name]
    assert explained(tmp_path, function, version=None) == ("math", causes, "allows")


def test_unbatched_and_single_key_head(tmp_path):
    if torch.__version__.startswith("2.13"):
        assert explained(tmp_path, lambda: sdpa(Q[0], Q[0], Q[0])) == ("math", {"F8"}, "allows")
        assert explained(tmp_path, lambda: sdpa(Q, Q[:, :1], Q[:, :1])) == ("math", {"F9"}, "allows")


def test_a_mask_with_gradient_cannot_be_seen(tmp_path):
    mask = torch.zeros(16, 16, requires_grad=True)
    assert explained(tmp_path, lambda: sdpa(Q, Q, Q, attn_mask=mask)) == ("math", set(), "not recorded")
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert explained(tmp_path, lambda: sdpa(Q, Q, Q)) == ("math", set(), "not recorded")


DTYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.bfloat16: "c10::BFloat16",
    torch.float16: "c10::Half",
    torch.float8_e4m3fn: "c10::Float8_e4m3fn",
    torch.bool: "bool",
}


def random_call(rng):
    """Arguments of one call, mostly well-formed."""
    batch, heads, queries, keys, size = (
        rng.choice(sizes) for sizes in ((1, 2), (1, 2, 4), (0, 1, 4, 8), (1, 4, 8), (1, 8, 12, 64))
    )
    dtype = rng.choice(
        [torch.float32, torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn]
    )
    key_heads = rng.choice([heads, heads, 1, 2])
    value_size = rng.choice([size, size, size, 16])
    shapes = [(batch, heads, queries, size), (rng.choice([batch, batch, 1]), key_heads, keys, size)]
    shapes.append((*shapes[1][:2], keys, value_size))
    tensors = [torch.zeros(shape, dtype=torch.float32).to(dtype) for shape in shapes]
    if rng.random() < 0.2:
        tensors[1] = tensors[1].mT.contiguous().mT
    if rng.random() < 0.15:
        tensors = [tensor[0] for tensor in tensors]
    mask = None
    if rng.random() < 0.4:
        shape = rng.choice(
            [
                (queries, keys),
                (1, keys),
                (batch, heads, queries, keys),
                (heads, queries, keys),
                (1, 1, queries, keys),
                (queries, keys + 1),
                (keys,),
            ]
        )
        mask = torch.zeros(shape, dtype=rng.choice([torch.bool, dtype]))
    return tensors, mask, rng.choice([0.0, 0.0, 0.0, 0.5]), mask is None and rng.random() < 0.3, rng.random() < 0.5


def as_recorded(tensors, mask, dropout, causal, gqa):
    given = [*tensors, *([] if mask is None else [mask])]
    rest = 8 - len(given)
    fields = {
        "dims": [list(tensor.shape) for tensor in given] + [[]] * rest,
        "strides": [list(tensor.stride()) for tensor in given] + [[]] * rest,
        "dtypes": [DTYPES[tensor.dtype] for tensor in given] + [""] * rest,
        "concrete": ["", "", "", "", str(dropout), str(causal), "", str(gqa)],
    }
    return {name: json.dumps(value) for name, value in fields.items()}


def test_pytorchs_own_choice_is_foretold():
    """PyTorch's chooser, asked without running anything, against the rulebook on the same arguments."""
    rng = random.Random(20261130)  # noqa: S311 - test data, not a secret
    compared = {0: 0, 1: 0}
    for _ in range(3000):
        tensors, mask, dropout, causal, gqa = random_call(rng)
        try:
            choice = torch._fused_sdp_choice(*tensors, mask, dropout, causal, enable_gqa=gqa)
        except (RuntimeError, IndexError):
            continue
        call = read_call("aten::scaled_dot_product_attention", as_recorded(tensors, mask, dropout, causal, gqa))
        foretold = explain(call, Device("cpu"), torch=torch.__version__).expected
        assert foretold == (("math",), ("flash",))[choice], (as_recorded(tensors, mask, dropout, causal, gqa), choice)
        compared[choice] += 1
    assert min(compared.values()) > 300, compared
