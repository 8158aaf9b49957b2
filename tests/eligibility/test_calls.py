"""Reading recorded inputs: real spellings, other ops' argument orders, and texts that make no sense."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdpa_calls import SDPA, Q, call, recorded
from traceview.eligibility import Device, State, Tensor, explain, read_call
from traceview.knowledge.sdpa import signatures


def texts(**fields):
    return {name: json.dumps(value) for name, value in fields.items()}


def test_a_call_as_kineto_writes_it():
    read = call(
        [2, 16, 128, 64], [2, 4, 128, 64], gqa="True", causal="True", dropout="0.10000000000000001", mask=[128, 128]
    )
    assert read.query == Tensor((2, 16, 128, 64), "bfloat16", (131072, 8192, 64, 1))
    assert read.key.dims == (2, 4, 128, 64)
    assert read.mask == Tensor((128, 128), "bool", (128, 1))
    assert (read.dropout_p, read.is_causal, read.enable_gqa, read.argument_count) == (0.1, True, True, 8)


def test_no_mask_and_a_mask_that_is_not_recorded_are_not_the_same():
    assert (call().mask, call().mask_known) == (None, True)
    nothing = call(without=("dims", "dtypes", "strides", "concrete"))
    assert (nothing.mask, nothing.mask_known) == (None, False)


def test_a_mask_with_a_shape_and_no_dtype_contradicts_itself():
    read = read_call(SDPA, texts(dims=[Q, Q, Q, [128, 128]], dtypes=["float", "float", "float", ""]))
    assert (read.mask, read.mask_known) == (None, False)


def test_dims_alone_tell_whether_there_is_a_mask():
    assert call(without=("dtypes",)).mask_known
    assert call(without=("dtypes",), mask=[128, 128]).mask == Tensor((128, 128), None, (128, 1))


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("c10::BFloat16", "bfloat16"), ("c10::Half", "float16"), ("float", "float32"), ("double", "float64"),
        ("torch.bfloat16", "bfloat16"), ("at::Half", "float16"), ("c10::Float8_e4m3fn", "float8_e4m3fn"),
        ("long int", "int64"), ("Scalar", None), ("", None), ("TensorList", None),
    ],
)  # fmt: skip
def test_dtype_names(text, dtype):
    assert call(dtype=text).query.dtype == dtype


def test_a_nested_tensor_is_recorded_as_nothing():
    read = read_call(
        SDPA, texts(dims=[[]] * 8, dtypes=["", "", "", "", "Scalar", "Scalar", "", "Scalar"], strides=[[]] * 8)
    )
    assert read.query == Tensor(None, None, None)


@pytest.mark.parametrize(
    ("op", "dtypes", "concrete", "want"),
    [
        ("aten::_scaled_dot_product_flash_attention", ["float"] * 3 + ["Scalar"] * 4, ["", "", "", "0.", "True", "False", "0.125"], (None, True, 0.0, True, None)),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", ["float"] * 3 + ["Scalar", "Scalar", "float", ""], ["", "", "", "0.5", "False", "", ""], ("float32", True, 0.5, False, None)),
        ("aten::_scaled_dot_product_efficient_attention", ["float"] * 4 + ["Scalar"] * 4, ["", "", "", "", "True", "0.", "False", ""], ("float32", True, 0.0, False, True)),
        ("aten::_scaled_dot_product_cudnn_attention", ["float"] * 3 + ["", "Scalar", "Scalar", "Scalar", "Scalar", ""], ["", "", "", "", "False", "0.", "True", "False", ""], (None, True, 0.0, True, False)),
        ("aten::_scaled_dot_product_attention_math", ["float"] * 3 + ["", "Scalar", "Scalar", "", "", "Scalar"], ["", "", "", "", "0.1", "False", "", "", "True"], (None, True, 0.1, False, None)),
    ],
)  # fmt: skip
def test_compiled_code_records_the_op_of_the_backend(op, dtypes, concrete, want):
    read = read_call(op, texts(dims=[Q] * 3 + [[]] * (len(dtypes) - 3), dtypes=dtypes, concrete=concrete))
    mask_dtype = read.mask.dtype if read.mask else None
    assert (mask_dtype, read.mask_known, read.dropout_p, read.is_causal, read.training) == want


def test_other_ops_are_no_calls():
    assert read_call("aten::softmax", recorded()) is None
    assert read_call("flash_attn::_flash_attn_forward", recorded()) is None


def test_strides_that_do_not_fit_the_dims_are_not_used():
    assert call(strides=[[1, 2], [64, 1], [], [], [], [], [], []]).query.strides is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda part: st.lists(part, max_size=5) | st.dictionaries(st.text(max_size=3), part, max_size=3),
    max_leaves=20,
)
SIZES = st.lists(st.integers(0, 2**40), max_size=6)
DTYPES = st.sampled_from(
    ["float", "c10::BFloat16", "c10::Half", "double", "bool", "c10::Float8_e4m3fn", "", "Scalar", "?"]
)
VALUES = st.sampled_from(["", "0.", "0.1", "True", "False", "nan", "inf", "-1", "x", 1, 0.5, True, None])
DEVICES = st.builds(
    Device,
    st.sampled_from(["cuda", "rocm", "cpu", None]),
    st.none() | st.integers(0, 13),
    st.none() | st.integers(0, 9),
)
OBSERVED = st.sampled_from(["flash", "efficient", "cudnn", "math", None])


@given(
    st.sampled_from(sorted(signatures())),
    st.dictionaries(
        st.sampled_from(["dims", "dtypes", "strides", "concrete"]), JSON.map(json.dumps) | st.text(max_size=20)
    ),
    DEVICES,
    OBSERVED,
)
def test_nothing_recorded_is_too_strange(op, inputs, device, observed):
    explain(read_call(op, inputs), device, observed=observed)


@given(
    st.lists(SIZES, min_size=4, max_size=8),
    st.lists(DTYPES, min_size=4, max_size=8),
    st.lists(VALUES, min_size=4, max_size=8),
    DEVICES,
    OBSERVED,
)
def test_answers_agree_with_each_other(dims, dtypes, concrete, device, observed):
    read = read_call(SDPA, texts(dims=dims, dtypes=dtypes, concrete=concrete))
    explanation = explain(read, device, observed=observed, torch="2.9")
    for answer in explanation.backends:
        assert bool(answer.refused_by) <= (answer.state is State.REFUSED)
    refused = {answer.backend for answer in explanation.backends if answer.state is State.REFUSED}
    assert not refused & set(explanation.expected)
    assert {answer.backend for answer in explanation.causes} <= refused - {observed}
    assert explanation.expected


ARGUMENTS = st.lists(st.tuples(SIZES, DTYPES).map(lambda pair: pair if pair[1] else ([], "")), min_size=8, max_size=8)
"""Eight arguments whose dims and dtypes do not contradict each other."""


@given(ARGUMENTS, DEVICES)
def test_less_recorded_never_refuses_more(arguments, device):
    dims, dtypes = (list(part) for part in zip(*arguments, strict=True))
    full = explain(
        read_call(SDPA, texts(dims=dims, dtypes=dtypes, concrete=["", "", "", "", "0.", "False", "", "False"])),
        device,
        torch="2.9",
    )
    for left_out in ("dims", "dtypes", "concrete"):
        inputs = texts(dims=dims, dtypes=dtypes, concrete=["", "", "", "", "0.", "False", "", "False"])
        del inputs[left_out]
        less = explain(read_call(SDPA, inputs), device, torch="2.9")
        for answer in less.backends:
            more = full.backend(answer.backend)
            assert {rule.rule.id for rule in answer.refused_by} <= {rule.rule.id for rule in more.refused_by}


@given(ARGUMENTS, DEVICES)
def test_a_certain_refusal_holds_in_every_release(arguments, device):
    dims, dtypes = (list(part) for part in zip(*arguments, strict=True))
    read = read_call(SDPA, texts(dims=dims, dtypes=dtypes))
    unknown = explain(read, device)
    for torch in ("2.5.1", "2.9", "2.13"):
        known = explain(read, device, torch=torch)
        for answer in unknown.backends:
            same = known.backend(answer.backend)
            if same is not None:
                assert {rule.rule.id for rule in answer.refused_by} <= {rule.rule.id for rule in same.refused_by}
