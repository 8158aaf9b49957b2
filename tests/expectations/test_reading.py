"""What a file may say, and that every mistake in it is said with its line and the nearest right word."""

from __future__ import annotations

import os
import tempfile
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceview.expectations.model import Accept, Context, Expect, Forbid, Limit, Policy, Wanted
from traceview.expectations.reading import read_baseline, read_expectations
from traceview.expectations.tables import ExpectationsError

WHOLE = """
policy = "none"
[context]
torch = "2.9.1+cu128"
cudnn = "9.10"
notes = "nightly"
[[expect]]
op = "attention"
stage = "denoise*"
direction = "forward"
implementation = ["flash", "cudnn"]
provider = "pytorch"
min_share = 0.9
min_count = 24
[[expect]]
op = "gemm"
tensor_core = true
precision = ["bf16", "fp8"]
[[forbid]]
implementation = "math"
[[forbid]]
kernel = "*sm80*"
stage = "decode"
[[forbid]]
rule = "attention-unfused"
[limits]
recompiles_after_warmup = 0
idle_share = 0.1
[[accept]]
rule = "TV101"
where = "TextEncoder*"
reason = "three layers"
expires = 2027-06-30
[[accept]]
expectation = "forbid math"
reason = "reference path"
expires = "never"
"""


def test_a_whole_file(write):
    read = read_expectations(write(WHOLE))
    assert read.policy is Policy.NONE
    assert read.context == Context(torch="2.9.1+cu128", cudnn="9.10", notes="nightly")
    assert read.expects == (
        Expect(
            8,
            Wanted("attention", "denoise*", "forward", ("flash", "cudnn"), ("pytorch",)),
            min_share=0.9,
            min_count=24,
        ),
        Expect(16, Wanted("gemm", tensor_core=True, precision=("bf16", "fp8"))),
    )
    assert read.forbids == (
        Forbid(20, Wanted(implementation=("math",))),
        Forbid(22, Wanted(stage="decode"), kernel="*sm80*"),
        Forbid(25, Wanted(), rule="TV101"),
    )
    assert read.limits == (Limit(28, "recompiles_after_warmup", 0), Limit(29, "idle_share", 0.1))
    assert read.accepts == (
        Accept(read.path, 30, "TV101", None, "TextEncoder*", "three layers", date(2027, 6, 30)),
        Accept(read.path, 35, None, "forbid math", None, "reference path", None),
    )


def test_each_has_one_line_of_text(write):
    read = read_expectations(write(WHOLE))
    assert [one.text for one in (*read.expects, *read.forbids, *read.limits)] == [
        "attention forward in denoise*: flash or cudnn, by pytorch, for at least 0.9 of its time, at least 24 calls",
        "gemm: on tensor cores, in bf16 or fp8",
        "forbid math",
        "forbid in decode: kernel *sm80*",
        "forbid rule TV101",
        "recompiles_after_warmup at most 0",
        "idle_share at most 0.1",
    ]


GOOD = '[[expect]]\nop = "attention"\nimplementation = "fused"\n'

MISTAKES = [
    # Unknown keys.
    ("expects = 1", '2: unknown key "expects" at the top of the file. Did you mean "expect"?'),
    ('[[expect]]\nop = "gemm"\nmin_count = 1\nstag = "x"', '5: unknown key "stag" in [[expect]]. Did you mean "stage"?'),
    (GOOD + "zzz = 1", '5: unknown key "zzz" in [[expect]]. Known: op, stage, direction, implementation, provider, tensor_core, precision, min_share, min_count, when.'),
    ("[context]\ntorhc = '2'", '3: unknown key "torhc" in [context]. Did you mean "torch"?'),
    ("[limits]\nrecompile_after_warmup = 0", '3: unknown key "recompile_after_warmup" in [limits]. Did you mean "recompiles_after_warmup"?'),
    # Unknown words.
    ('[[expect]]\nop = "atention"\nmin_count = 1', '3: op cannot be "atention". Did you mean "attention"? An op is written as aten::atention.'),
    ('[[expect]]\nop = "sdpa"\nmin_count = 1', '3: op cannot be "sdpa". Did you mean "attention"? An op is written as aten::sdpa.'),
    ('[[expect]]\nop = "unknown"\nmin_count = 1', '3: op cannot be "unknown". Families: attention, gemm, conv, moe, collective, norm, softmax, elementwise, reduce, pool, embedding, index, rng, optimizer, quantize, rope, sampling, loss, fft, memcpy, memset, cache, recurrent, sparse, fusion, other.'),
    ('[[expect]]\nop = "attention"\nimplementation = [\n "flash2",\n "cudn",\n]', ['5: implementation cannot be "flash2". Did you mean "flash-2"?', '6: implementation cannot be "cudn". Did you mean "cudnn"?']),
    ('[[expect]]\nop = "attention"\nimplementation = "xmma"', '4: implementation cannot be "xmma". Known: fused, flash, flash-1, flash-2, flash-3, flash-4, mem-efficient, cudnn, flashinfer, trtllm, triton, flex, aotriton, ck, aiter, sage, pallas, paged, mla, cpu-flash, vendor, math, unfused.'),
    ('[[expect]]\nop = "gemm"\nimplementation = "nvjett"', '4: implementation cannot be "nvjett". Did you mean "nvjet"?'),
    ('[[expect]]\nop = "gemm"\nprecision = "float16"', '4: precision cannot be "float16". Did you mean "fp16"?'),
    ('[[expect]]\nop = "attention"\nprovider = "pytorh"', '4: provider cannot be "pytorh". Did you mean "pytorch"?'),
    ('[[expect]]\nop = "attention"\nmin_count = 1\ndirection = "backwards"', '5: direction cannot be "backwards". Did you mean "backward"?'),
    ('policy = "non"', '2: policy cannot be "non". Did you mean "none"?'),
    ('[[forbid]]\nrule = "TV1O1"', '3: there is no rule "TV1O1". Did you mean "TV101"?'),
    # Wrong types and values.
    (GOOD + "min_share = 95", "5: min_share must be a number above 0 and at most 1, not the number 95. For 95 % write 0.95."),
    (GOOD + "min_share = 0", "5: min_share must be a number above 0 and at most 1, not the number 0."),
    (GOOD + 'min_share = "1"', '5: min_share must be a number above 0 and at most 1, not the text "1".'),
    (GOOD + "min_share = nan", "5: min_share must be a number above 0 and at most 1, not the number nan."),
    (GOOD + "min_share = true", "5: min_share must be a number above 0 and at most 1, not the truth value true."),
    (GOOD + "min_count = 0", "5: min_count must be a whole number, 1 or more, not the number 0."),
    (GOOD + "min_count = 1.5", "5: min_count must be a whole number, 1 or more, not the number 1.5."),
    ('[[expect]]\nop = "gemm"\ntensor_core = "yes"', '4: tensor_core must be true or false, not the text "yes".'),
    ('[[expect]]\nop = ["gemm"]\nmin_count = 1', "3: op must be a text, not a list."),
    ('[[expect]]\nop = "attention"\nimplementation = []', "4: implementation is an empty list: nothing can satisfy it. Name at least one, or leave it out."),
    ('[[expect]]\nop = "attention"\nimplementation = ["flash", 2]', "4: implementation must be a text or a list of texts, not the number 2."),
    ('[expect]\nop = "attention"', "2: expect must be a list of tables: write [[expect]] with two brackets."),
    ("context = 1", "2: context must be a table: write [context]."),
    ('[context]\ntorch = "latest"', '3: torch must be a version such as "2.9" or "2.9.1", not "latest".'),
    ("[context]\ntorch = 2.9", "3: torch must be a text, not the number 2.9."),
    ("[limits]\nidle_share = 20", "3: idle_share must be a number from 0 to 1, not the number 20. For 20 % write 0.2."),
    # Empty, or what nothing can match.
    ('[stages]\na = ""', "3: a is empty. Write a text, or leave it out."),
    ('[stages]\n"" = "x"', "2: an empty key: the name of the stage is empty."),
    (GOOD + 'stage = ""', "5: stage is empty. Write a text, or leave it out."),
    ('[[expect]]\nop = "gemm"\nprecision = ""', "4: precision is empty. Write one of fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8, int4, w4a16, w8a16, w4a8, or leave it out."),
    (GOOD + 'stage = "[a"', '5: stage = "[a" has "[" without "]". Close it, or write "[[]" for the character itself.'),
    ('[[forbid]]\nkernel = "x[]"', '3: kernel = "x[]" has "[" without "]". Close it, or write "[[]" for the character itself.'),
    ('[[expect]]\nop = "aten::[!]"\nmin_count = 1', '3: op = "aten::[!]" has "[" without "]". Close it, or write "[[]" for the character itself.'),
    # Things that say nothing, or two things at once.
    ('[[expect]]\nop = "attention"', "2: [[expect]] says nothing to check. Add implementation, provider, tensor_core, precision or min_count."),
    ('[[expect]]\nimplementation = "fused"', '2: [[expect]] needs op: a family such as "attention", an op name, or a glob of op names.'),
    ('[[expect]]\nop = "gemm"\nmin_share = 0.5', "4: min_share is a share of the work that has some property: add implementation, …"),
    ('[[expect]]\nop = "memset"\nimplementation = "x"', "4: no implementations of memset are told apart, so none can be asked for."),
    ('[[forbid]]\nstage = "x"', "2: [[forbid]] needs implementation, op, kernel, provider, tensor_core, precision or rule."),
    ('[[forbid]]\nrule = "TV101"\nop = "gemm"', "4: rule stands alone: a finding cannot be narrowed by op."),
    ("[limits]", "2: [limits] is empty. Add a limit or remove it."),
    ('policy = "none"', '2: policy = "none" and nothing stated: nothing could ever fail. Add [[expect]], [[forbid]] or [limits].'),
    # Accepting.
    ('[[accept]]\nrule = "TV101"', ["2: [[accept]] needs reason: why is this accepted?", '2: [[accept]] needs expires: a date such as 2027-06-30, or "never".']),
    ('[[accept]]\nreason = "r"\nexpires = "never"', "2: [[accept]] needs either rule or expectation, to say what is accepted."),
    ('[[accept]]\nrule = "TV101"\nreason = " "\nexpires = "never"', "4: reason is empty. Write a text, or leave it out."),
    ('[[accept]]\nrule = "TV101"\nreason = "r"\nexpires = "2027-06-30"', '5: expires must be a date such as 2027-06-30, or "never", not the text "2027-06-30". Write it without quotes: expires = 2027-06-30.'),
    ('[[accept]]\nrule = "TV101"\nreason = "r"\nexpires = 2027-06-30T00:00:00', '5: expires must be a date such as 2027-06-30, or "never", not the date or time 2027-06-30 00:00:00.'),
    ('[[accept]]\nexpectation = "x"\nwhere = "y"\nreason = "r"\nexpires = "never"', "4: where narrows a rule; an expectation has no place of its own."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "problems"), MISTAKES, ids=[str(at) for at in range(len(MISTAKES))])
def test_a_mistake_is_said_with_its_line(text, problems, errors):
    problems = [problems] if isinstance(problems, str) else problems
    assert errors(text) == [f"dispatch.toml:{problem}" for problem in problems]


@pytest.mark.parametrize("glob", ["[ab]*", "[!a]", "[]]", "[[]", "a]", "[a][b]", "x[[]y"])
def test_a_bracket_that_is_closed_is_no_mistake(glob, write):
    assert read_expectations(write(f"{GOOD}stage = '{glob}'\n")).expects[0].wanted.stage == glob


def test_all_mistakes_are_said_at_once_in_the_order_of_lines(errors):
    text = '[limits]\nidle = 1\n[[expect]]\nop = "attention"\nimplementation = "flsh"\n[context]\ngpu = 4\n'
    assert [line.split(":")[1] for line in errors(text)] == ["3", "6", "8"]


def test_very_many_mistakes_are_counted(errors):
    lines = errors("".join(f"k{at} = 1\n" for at in range(60)))
    assert len(lines) == 51
    assert lines[-1] == "dispatch.toml: and 10 more problems."


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "dispatch.toml:1: schema is missing. Write schema = 1 on the first line."),
        (b"schema = 2\n", "dispatch.toml:1: schema 2 is not known: this version reads 1. Update traceview."),
        (b"schema = 1\n\nop = = 2\n", "dispatch.toml:3:6: not TOML: Invalid value."),
        (b"schema = 1\na = [1,\n", "dispatch.toml:3: not TOML: "),
        (b"schema = 1\na = 1\na = 2\n", "dispatch.toml:3:6: not TOML: Cannot overwrite a value."),
        (b"schema = 1\na = '\xff'\n", "dispatch.toml:2: not UTF-8 text, as TOML must be. Save it as UTF-8."),
        (b"a = " + b"[" * 100_000, "dispatch.toml: nested too deeply."),
        (b"a = " + b"9" * 5_000, "dispatch.toml: a whole number in it needs more than 64 bits."),
        (b"[limits]\nidle_share = 0x" + b"f" * 5_000, "dispatch.toml: a whole number in it needs more than 64 bits."),
        (b"#" * (1 << 20) + b"#", "dispatch.toml: is larger than 1 MiB, so it is no file of expectations. Was a trace meant?"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_expectations(data, problem, tmp_path):
    path = tmp_path / "dispatch.toml"
    path.write_bytes(data)
    with pytest.raises(ExpectationsError) as caught:
        read_expectations(str(path))
    (line,) = caught.value.lines
    assert line.startswith(f"{tmp_path}/{problem}")


KEYS = [
    "schema",
    "policy",
    "op",
    "stage",
    "implementation",
    "min_share",
    "min_count",
    "tensor_core",
    "rule",
    "reason",
    "expires",
    "where",
    "torch",
    "idle_share",
    "kernel",
    "x",
]
VALUES = [
    "1",
    "0.5",
    "-3",
    "nan",
    "true",
    '"attention"',
    '"fused"',
    '["flash", 1]',
    "[]",
    "{}",
    "{ op = 1 }",
    "2027-06-30",
    "07:00:00",
    '"TV101"',
    '""',
]
HEADERS = ["", "[context]", "[limits]", "[[expect]]", "[[forbid]]", "[[accept]]", "[expect]", "[[limits]]", "[x]"]


@given(st.lists(st.tuples(st.sampled_from(HEADERS), st.sampled_from(KEYS), st.sampled_from(VALUES)), max_size=8))
def test_whatever_a_file_says_is_read_or_refused(parts):
    text = "".join(f"{header}\n{key} = {value}\n" for header, key, value in parts)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        problems: tuple[str, ...] = ()
        try:
            read_expectations(file.name)
        except ExpectationsError as error:
            problems = error.lines
        places = [int(line.removeprefix(file.name).split(":")[1]) for line in problems]
        assert all(1 <= place <= text.count("\n") + 1 for place in places), problems


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "dispatch.toml"
    path.write_bytes(b"\xef\xbb\xbfschema = 1\r\n[limits]\r\nidle_share = 0.5\r\n")
    assert read_expectations(str(path)).limits == (Limit(3, "idle_share", 0.5),)


def test_missing_folder_and_unreadable(tmp_path):
    with pytest.raises(ExpectationsError, match=r"no such file\. Check the path, or write one with `traceview init-"):
        read_expectations(str(tmp_path / "none.toml"))
    with pytest.raises(ExpectationsError, match=r"this is a folder\. Name the file in it\."):
        read_expectations(str(tmp_path))
    if os.geteuid():
        (tmp_path / "x").write_text("")
        (tmp_path / "x").chmod(0)
        with pytest.raises(ExpectationsError, match=r"cannot be read \(Permission denied\)"):
            read_expectations(str(tmp_path / "x"))


def test_a_baseline_holds_only_what_is_accepted(write, errors):
    accept = '[[accept]]\nrule = "TV102"\nreason = "r"\nexpires = "never"\n'
    (one,) = read_baseline(write(accept))
    assert (one.rule, one.line, one.expires) == ("TV102", 2, None)
    assert errors(accept + GOOD, read_baseline) == [
        "dispatch.toml:6: a baseline holds only [[accept]]: expect belongs to the file of --expect."
    ]
