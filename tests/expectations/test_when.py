"""Expectations that are meant for some traces only: applied, skipped, or not to be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree

from authored_timeline import kernel, launch, op, timeline
from traceview.expectations.circumstances import Circumstances, bounds
from traceview.expectations.model import Context, When
from traceview.expectations.reading import read_expectations
from traceview.gate import Verdict, check
from traceview.timeline import RunInfo

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
EFFICIENT = (
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float, cutlass::arch::Sm80>)"
)
SDPA = "aten::scaled_dot_product_attention"
DIMS = [[1, 8, 128, 64]] * 3


def attention(at, correlation, name=FLASH, dtype="c10::BFloat16"):
    more = {"dims": DIMS, "dtypes": [dtype] * 3} if dtype else {}
    return [
        op(SDPA, at, at + 9, **more),
        launch(at + 1, correlation),
        kernel(name, 100 * at, 100 * at + 50, correlation),
    ]


def recorded(*events, major=9, minor=0, name="NVIDIA H100 80GB HBM3", vendor="nvidia", metadata=None):
    """A timeline with a described device and metadata of its own."""
    import polars as pl

    built = timeline(*(events or attention(0, 1)))
    described = {"compute_major": (major, pl.Int32), "compute_minor": (minor, pl.Int32), "name": (name, pl.String)}
    devices = built.devices.with_columns(
        *(pl.lit(value, dtype).alias(column) for column, (value, dtype) in described.items()),
        pl.lit(vendor, pl.String).alias("vendor"),
    )
    run = RunInfo(
        Path("authored.json"), "kineto", "a test", metadata={"cuda_driver_version": 12040, **(metadata or {})}
    )
    return replace(built, devices=devices, runs=(run,))


H100 = {}
TORCH_29 = {"metadata": {"torch_version": "2.9.1+cu128", "cuda_runtime_version": 12040}}
MI300 = {"major": 9, "minor": 4, "name": "AMD Instinct MI300X", "vendor": "amd"}

APPLIES = {
    "nothing asked": (When(), H100, True, ""),
    "a version": (When(torch="2.9"), TORCH_29, True, ""),
    "an exact version": (When(torch="2.9.1"), TORCH_29, True, ""),
    "a span": (When(torch=">=2.9, <2.11"), TORCH_29, True, ""),
    "up to and including": (When(torch="<=2.9"), TORCH_29, True, ""),
    "not above": (When(torch=">2.9"), TORCH_29, False, "torch is 2.9.1"),
    "another version": (When(torch="2.10"), TORCH_29, False, "torch is 2.9.1"),
    "not a version": (When(torch="!=2.9"), TORCH_29, False, "torch is 2.9.1"),
    "no version": (When(torch="2.9"), H100, None, "the version of torch is not recorded: give --torch, or torch in [context]"),
    "the CUDA runtime": (When(cuda=">=12.4,<13"), TORCH_29, True, ""),
    "an architecture": (When(arch=("sm90",)), H100, True, ""),
    "one of two": (When(arch=("sm80", "sm9*")), H100, True, ""),
    "another architecture": (When(arch=("sm100",)), H100, False, "arch is sm90"),
    "AMD": (When(arch=("gfx942",)), MI300, True, ""),
    "an architecture that is not recorded": (
        When(arch=("sm90",)), {"major": None}, None, "the arch of the device is not recorded",
    ),
    "a product": (When(gpu=("*h100*",)), H100, True, ""),
    "a part of the name, which is compared whole": (When(gpu=("H100",)), H100, False, 'gpu is NVIDIA H100 80GB HBM3, and "H100" is compared with the whole name: a part of it is "*H100*"'),
    "another product": (When(gpu=("*A100*",)), H100, False, "gpu is NVIDIA H100 80GB HBM3"),
    # What does not hold settles it, whatever else is not known.
    "one part of two": (When(torch="2.9", arch=("sm80",)), H100, False, "arch is sm90"),
}  # fmt: skip


@pytest.mark.parametrize("case", APPLIES)
def test_applies(case):
    when, described, holds, why = APPLIES[case]
    found = Circumstances(recorded(**described), Context()).applies(when)
    assert (found.holds, found.why) == (holds, why)


def test_what_the_user_states_outweighs_the_trace():
    context = Context(torch="2.10", cudnn="91002", gpu="NVIDIA H200")
    found = Circumstances(recorded(name=None, **TORCH_29), context)
    assert found.applies(When(torch="2.10", cudnn=">=9.10,<9.11", gpu=("*H200*",))).holds


@pytest.mark.parametrize(
    ("stated", "asked", "holds"),
    [
        ("2.9", "2.9.1", None),
        ("2.9", ">=2.9.0", True),
        ("2.9", "<2.9.0", False),
        ("2.9", ">=2.9.1", None),
        ("2", "<3.1", True),
    ],
)
def test_a_version_that_is_not_exact_enough(stated, asked, holds):
    assert Circumstances(recorded(), Context(torch=stated)).applies(When(torch=asked)).holds is holds


def test_devices_that_differ_are_not_told():
    two = recorded(kernel(FLASH, 0, 1), kernel(FLASH, 0, 1, device=1))
    import polars as pl

    minor = pl.when(pl.col("device") == 1).then(0).otherwise(pl.col("compute_minor")).cast(pl.Int32)
    major = pl.when(pl.col("device") == 1).then(8).otherwise(pl.col("compute_major")).cast(pl.Int32)
    two = replace(two, devices=two.devices.with_columns(compute_major=major, compute_minor=minor))
    found = Circumstances(two, Context()).applies(When(arch=("sm90",)))
    assert (found.holds, found.why) == (None, "arch differs between devices: sm90, sm80")
    assert Circumstances(two, Context()).applies(When(arch=("sm*",))).holds


def test_without_an_accelerator_no_architecture_applies():
    built = timeline(op(SDPA, 0, 9))
    on_cpu = replace(built, runs=(replace(built.runs[0], format="kineto"),))
    assert Circumstances(on_cpu, Context()).applies(When(arch=("sm90",))).holds is False
    assert Circumstances(built, Context()).applies(When(arch=("sm90",))).holds is None


def test_bounds_of_a_text():
    assert bounds(">= 2.9 ,<2.11") == ((">=", (2, 9)), ("<", (2, 11)))
    assert bounds("2.9") == (("", (2, 9)),)
    for wrong in ("", "latest", "=>2.9", "2.9,", "~=2.9", "2.9.x"):
        assert bounds(wrong) is None


def expect(implementation, when):
    return f'[[expect]]\nop = "attention"\nimplementation = "{implementation}"\nwhen = {when}\n'


def judged(write, text, trace, **more):
    result = check(trace, read_expectations(write(text)), **more)
    return result, [(one.verdict.value, one.text, one.observed) for one in result.expectations]


def test_one_of_two_applies(write):
    text = expect("cudnn", '{ torch = ">=2.9, <2.10", arch = ["sm_90", "sm100"] }') + expect(
        "flash", '{ torch = "<2.9" }'
    )
    result, each = judged(write, text, recorded(), context=Context(torch="2.8"))
    assert each == [
        ("skipped", "attention: cudnn (when torch >=2.9, <2.10, arch sm90 or sm100)", "does not apply: torch is 2.8"),
        ("pass", "attention: flash (when torch <2.9)", "flash-2 1 of 1 call, 100.0 % of attention device time"),
    ]
    assert result.verdict is Verdict.PASS
    assert result.summary == "1 of 2 expectations holds; 1 does not apply to this trace"
    result, _ = judged(write, text, recorded(), context=Context(torch="2.9"))
    assert result.verdict is Verdict.FAIL


def test_what_may_not_apply_is_inconclusive(write):
    result, each = judged(write, expect("cudnn", '{ torch = "2.9" }'), recorded())
    assert result.verdict is Verdict.INCONCLUSIVE
    assert each[0][2].startswith("whether it applies cannot be told: the version of torch is not recorded")


def test_nothing_that_applies_leaves_the_built_in_policy(write):
    text = expect("cudnn", '{ arch = "sm80" }')
    result, _ = judged(write, text, recorded())
    assert result.verdict is Verdict.PASS
    assert result.summary.endswith("dispatch.toml:2: does not apply: arch is sm90)")
    result, _ = judged(write, 'policy = "none"\n' + text, recorded())
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.summary.endswith(", so nothing was judged")


def test_an_expectation_that_does_not_apply_excuses_nothing(write):
    slow = [op(SDPA, 0, 9), op("aten::_scaled_dot_product_attention_math", 1, 8), launch(2, 1), kernel("ampere_sgemm_128x64_tn", 100, 200, 1)]  # fmt: skip
    for arch, verdict in (("sm90", Verdict.PASS), ("sm80", Verdict.FAIL)):
        result, _ = judged(write, expect("math", f'{{ arch = "{arch}" }}'), recorded(*slow))
        assert result.verdict is verdict


MIXED = [*attention(0, 1), *attention(20, 2, EFFICIENT, "float")]


def test_only_calls_of_a_type(write):
    result, each = judged(
        write, expect("flash", '{ dtype = "bf16" }') + expect("flash", '{ dtype = "fp32" }'), recorded(*MIXED)
    )
    assert [one[:2] for one in each] == [("pass", "bf16 attention: flash"), ("fail", "fp32 attention: flash")]
    assert each[0][2] == "flash-2 1 of 1 call, 100.0 % of bf16 attention device time"
    assert result.verdict is Verdict.FAIL


def test_no_call_of_that_type_is_skipped(write):
    result, each = judged(
        write, expect("flash", '{ dtype = "fp16" }') + expect("fused", '{ dtype = ["bf16", "fp32"] }'), recorded(*MIXED)
    )
    assert each[0][::2] == ("skipped", "does not apply: the trace shows no fp16 attention, only bf16, fp32")
    assert (each[1][0], result.verdict) == ("pass", Verdict.PASS)


def test_a_type_that_is_not_recorded(write):
    # The name of the flash kernel does not say its type, and the op recorded none.
    events = recorded(*attention(0, 1, dtype=None))
    text = expect("cudnn", '{ dtype = "bf16" }') + expect("flash", '{ dtype = "bf16" }')
    _, (other, same) = judged(write, text, events)
    assert other[::2] == (
        "inconclusive",
        "none of 1 call; flash-2 1 call (0.050 ms) cannot be told (100.0 % of bf16 attention device time): the type of the inputs is not recorded; so it holds for 0.0 % to 100.0 %, and 100.0 % is asked",
    )
    # Whatever its type, it is as wanted.
    assert same[0] == "pass"
    _, (count,) = judged(write, '[[expect]]\nop = "attention"\nmin_count = 1\nwhen = { dtype = "bf16" }\n', events)
    assert count[0] == "inconclusive"
    _, (forbidden,) = judged(write, '[[forbid]]\nimplementation = "flash"\n[forbid.when]\ndtype = "bf16"\n', events)
    assert forbidden[0] == "inconclusive"


def test_the_name_of_a_kernel_tells_the_type_where_no_op_does(write):
    text = expect("flash", '{ dtype = "bf16" }')
    _, (one,) = judged(write, text, recorded(kernel(EFFICIENT, 0, 10)))
    assert one[::2] == ("skipped", "does not apply: the trace shows no bf16 attention, only fp32")


def test_prohibitions_too(write):
    text = '[[forbid]]\nimplementation = "flash"\nwhen = { dtype = "fp32" }\n[[forbid]]\nrule = "TV201"\nwhen = { arch = "sm80" }\n'
    result, each = judged(write, text, recorded(*MIXED))
    assert [one[:2] for one in each] == [
        ("pass", "forbid fp32: flash"),
        ("skipped", "forbid rule TV201 (when arch sm80)"),
    ]
    assert result.verdict is Verdict.PASS


MISTAKES = [
    ('when = { torhc = "2.9" }', 'dispatch.toml:5: unknown key "torhc" in when of [[expect]]. Did you mean "torch"?'),
    ('when = { torch = "~=2.9" }', 'dispatch.toml:5: torch must be a version or comparisons, "2.9" or ">=2.9, <2.11", not "~=2.9".'),
    ('when = { dtype = "bfloat16" }', 'dispatch.toml:5: dtype cannot be "bfloat16". Did you mean "bf16"?'),
    ('when = { arch = "h100" }', 'dispatch.toml:5: arch cannot be "h100": write "sm90", "gfx942", or a glob such as "sm9*". A product is gpu = "*H100*".'),
    ("when = { arch = [] }", "dispatch.toml:5: arch must be a text or a list of texts, none of them empty."),
    ("when = {}", "dispatch.toml:5: when is empty. Add torch, cudnn, cuda, arch, gpu or dtype, or remove it."),
    ('when = "sm90"', "dispatch.toml:5: when must be a table: write when = { ... }."),
    ('[expect.when]\narch = [\n  "sm90",\n  "ampere",\n]', 'dispatch.toml:8: arch cannot be "ampere": write "sm90", "gfx942", or a glob such as "sm9*". A product is gpu = "*H100*".'),
    ('when = { torch = ">3, <2" }', 'dispatch.toml:5: torch = ">3, <2" can never hold: no version is all that.'),
    ('when = { cudnn = "9.1, 9.2" }', 'dispatch.toml:5: cudnn = "9.1, 9.2" can never hold: no version is all that.'),
    ('when = { cuda = ">=2.9, <2.9.0" }', 'dispatch.toml:5: cuda = ">=2.9, <2.9.0" can never hold: no version is all that.'),
    ('when = { gpu = "H[12]00[*" }', 'dispatch.toml:5: gpu = "H[12]00[*" has "[" without "]". Close it, or write "[[]" for the character itself.'),
    ('wen = { arch = "sm90" }', 'dispatch.toml:5: unknown key "wen" in [[expect]]. Did you mean "when"?'),
]  # fmt: skip


@pytest.mark.parametrize(
    "text", [">2.9, <2.11", ">2, <4", "!=2.9", ">=2.9, <=2.9", ">2.9, <2.10.1", "2.9, >=2.9.1", ">=0, <1"]
)
def test_what_some_version_satisfies_is_no_mistake(write, text):
    (one,) = read_expectations(write(expect("flash", f'{{ torch = "{text}" }}'))).expects
    assert one.when.torch == text


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_have_their_line_and_a_suggestion(errors, text, message):
    assert errors(f'[[expect]]\nop = "attention"\nimplementation = "flash"\n{text}\n') == [message]


def test_a_rule_cannot_be_narrowed_by_type(errors):
    text = '[[forbid]]\nrule = "TV101"\nwhen = { dtype = "bf16" }\n'
    assert errors(text) == ["dispatch.toml:4: rule stands alone: a finding cannot be narrowed by dtype."]


def test_what_is_accepted_for_another_trace_is_not_called_unused(write):
    accept = '[[accept]]\nexpectation = "attention: cudnn*"\nreason = "known"\nexpires = "never"\n'
    result, _ = judged(
        write, expect("cudnn", '{ arch = "sm80" }') + expect("flash", '{ arch = "sm90" }') + accept, recorded()
    )
    assert result.notes == ()


def test_every_output_says_skipped(write, program):
    sample = "flash-requested-flash-ran.cuda-authored.json.gz"
    import sample_traces

    trace = Path(sample_traces.__file__).with_name(sample)
    file = write(expect("cudnn", '{ arch = "sm80" }') + expect("flash", '{ arch = "sm90" }'))
    done = program("check-dispatch", trace, "--expect", Path(file).name, "--output", "junit=r.xml", "--output", "markdown=r.md", "--output", "sarif=r.sarif")  # fmt: skip
    assert done.returncode == 0
    assert "dispatch.toml:2: skipped: attention: cudnn (when arch sm80)" in done.stdout
    assert "2 expectations: 0 violated, 0 not to be told, 1 skipped; " in done.stdout
    assert done.stdout.startswith("PASS: 1 of 2 expectations holds; 1 does not apply to this trace.")
    folder = Path(file).parent
    case = etree.parse(folder / "r.xml").find(".//testcase/skipped")
    assert case.get("message") == "does not apply: arch is sm90"
    row = next(line for line in (folder / "r.md").read_text().splitlines() if line.startswith("| skipped |"))
    assert "does not apply: arch is sm90" in row
    assert "cudnn" not in (folder / "r.sarif").read_text().split('"results"')[1].split("expectation")[0]
