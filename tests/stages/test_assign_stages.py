"""To which stage host events and device work belong. Times are in microseconds."""

from __future__ import annotations

import polars as pl
import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview.errors import UsageError
from traceview.stages import assign_stages, matches, stage_patterns


def annotation(name, start, end, **more):
    return host("annotation", name, start, end, **more)


def python(name, start, end, **more):
    return host("python", name, start, end, **more)


def work(at, correlation, name, runs_at, us=1.0, **more):
    """A launch on the host, and its kernel that runs later."""
    return [launch(at, correlation, **more), kernel(name, runs_at, runs_at + us, correlation)]


def stages(*events, given=()):
    """Stage of each kernel by its name."""
    staging = assign_stages(timeline(*events), stage_patterns(given))
    staging.timeline.validate()
    rows = staging.timeline.device_work.select(pl.col("name", "stage").cast(pl.String))
    return dict(rows.iter_rows()), [source.value for source in staging.sources]


def test_device_work_belongs_to_its_launch_not_to_the_range_it_runs_under():
    """Kernel a is launched in text_encoder and runs while denoise is open on the host."""
    found, sources = stages(
        annotation("text_encoder", 0, 10), annotation("denoise", 10, 20),
        *work(2, 1, "a", 12), *work(12, 2, "b", 13), *work(25, 3, "c", 30),
    )  # fmt: skip
    assert found == {"a": "text_encoder", "b": "denoise", "c": None}
    assert sources == ["annotation"]


def test_a_graph_replay_is_one_launch_with_many_kernels():
    found, _ = stages(
        annotation("denoise", 0, 10),
        launch(2, 1, name="cudaGraphLaunch"),
        *(kernel(f"k{at}", 20 + at, 21 + at, 1) for at in range(5)),
    )
    assert found == {f"k{at}": "denoise" for at in range(5)}


def test_work_without_a_launch_is_in_no_stage():
    found, _ = stages(annotation("denoise", 0, 10), kernel("lost", 2, 3, 99), *work(1, 1, "kept", 4))
    assert found == {"lost": None, "kept": "denoise"}


def test_marks_come_before_patterns_before_annotations():
    """The framework's label around and inside a mark neither renames nor splits it; elsewhere it counts."""
    events = [
        annotation("## forward ##", 0, 50),
        annotation("traceview.stage:denoise", 10, 20),
        annotation("inner", 12, 14),
        annotation("decode_latents", 60, 70),
        annotation("## loss ##", 80, 90),
        *work(5, 1, "around", 100), *work(12, 2, "inside", 110), *work(65, 3, "by pattern", 120),
        *work(85, 4, "by label", 130),
    ]  # fmt: skip
    assert stages(*events, given=["vae=latents", "denoise2=inner"]) == (
        {"around": None, "inside": "denoise", "by pattern": "vae", "by label": "loss"},
        ["mark", "pattern", "annotation"],
    )


def test_nested_stages_are_paths():
    found, _ = stages(
        annotation("## forward ##", 0, 50),
        annotation("DistributedDataParallel.forward", 1, 49),
        annotation("## forward:sparse_arch ##", 5, 20),
        annotation("## KJTListAwaitable wait() ##", 6, 10),
        *work(2, 1, "own", 100), *work(15, 2, "part", 110), *work(7, 3, "waiting", 120),
    )  # fmt: skip
    assert found == {"own": "forward", "part": "forward/sparse_arch", "waiting": "forward/sparse_arch"}


def test_numbers_at_the_end_are_repeats_of_one_stage():
    found, _ = stages(
        annotation("tower 1", 0, 10), annotation("tower 2", 10, 20), *work(1, 1, "a", 30), *work(11, 2, "b", 31)
    )
    assert found == {"a": "tower", "b": "tower"}


def test_steps_and_bookkeeping_are_no_stages():
    names = (
        "ProfilerStep#3", "nccl:all_reduce", "## Call CompiledFxGraph abc ##", "autograd::engine::evaluate_function: X",
        "PyTorch Profiler (0)", "execute_diffusion_1_256x256", "iteration_3",
    )  # fmt: skip
    events = [
        event
        for at, name in enumerate(names)
        for event in (annotation(name, 10 * at, 10 * at + 9), *work(10 * at + 2, at, name, 200 + at))
    ]
    assert stages(*events) == (dict.fromkeys(names), [])


def test_backward_runs_on_a_thread_of_its_own():
    """The main thread waits in `backward`; what autograd's thread launches meanwhile belongs to that."""
    found, _ = stages(
        annotation("## forward ##", 0, 10), annotation("## backward ##", 20, 40), annotation("## optimizer ##", 50, 60),
        *work(2, 1, "forward", 100), *work(52, 3, "optimizer", 140),
        op("autograd::engine::evaluate_function: MmBackward0", 22, 30, thread=1), *work(25, 2, "mm", 120, thread=1),
        op("autograd::engine::evaluate_function: DDP", 31, 36, thread=1),
        annotation("## all_to_all ##", 32, 35, thread=1), *work(33, 4, "exchange", 130, thread=1),
    )  # fmt: skip
    assert found == {
        "forward": "forward",
        "optimizer": "optimizer",
        "mm": "backward",
        "exchange": "backward/all_to_all",
    }


def test_backward_without_a_label_is_found_by_its_thread():
    found, sources = stages(
        annotation("Optimizer.step#SGD.step", 50, 60), *work(52, 3, "optimizer", 140), *work(2, 1, "forward", 100),
        op("autograd::engine::evaluate_function: MmBackward0", 22, 30, thread=1), *work(25, 2, "mm", 120, thread=1),
    )  # fmt: skip
    assert found == {"forward": None, "optimizer": "optimizer", "mm": "backward"}
    assert sources == ["annotation", "autograd thread"]


def test_a_mark_around_backward_owns_it():
    found, _ = stages(
        annotation("traceview.stage:train", 20, 40),
        op("autograd::engine::evaluate_function: MmBackward0", 22, 30, thread=1), *work(25, 2, "mm", 120, thread=1),
    )  # fmt: skip
    assert found == {"mm": "train"}


def test_the_phase_of_a_serving_engine_takes_other_stages_into_it():
    found, sources = stages(
        annotation("execute_context_1(888)_generation_0(0)", 0, 50),
        python("vllm/v1/worker/gpu_model_runner.py(3380): execute_model", 1, 49),
        python("vllm/v1/worker/gpu_model_runner.py(3102): _model_forward", 5, 30),
        *work(10, 1, "layer", 100), *work(40, 2, "copy", 110),
    )  # fmt: skip
    assert found == {"layer": "prefill/forward", "copy": "prefill"}
    assert sources == ["engine label", "Python function"]


DIFFUSION = [
    python("diffusers/pipelines/flux/pipeline_flux.py(700): __call__", 0, 100),
    python("diffusers/pipelines/flux/pipeline_flux.py(311): encode_prompt", 1, 20),
    python("nn.Module: CLIPTextModel_0", 2, 10),
    python("nn.Module: OptimizedModule_0", 30, 40), python("nn.Module: FluxTransformer2DModel_0", 31, 39),
    python("diffusers/schedulers/scheduling_flow_match_euler_discrete.py(425): step", 41, 45),
    python("diffusers/models/autoencoders/autoencoder_kl.py(213): decode", 60, 90),
    python("nn.Module: Decoder_0", 61, 89),
    *work(5, 1, "clip", 200), *work(35, 2, "attention", 210), *work(43, 3, "euler", 220), *work(70, 4, "conv", 230),
    *work(95, 5, "copy", 240),
]  # fmt: skip


def test_functions_and_modules_of_a_diffusion_pipeline():
    assert stages(*DIFFUSION) == (
        {"clip": "text_encoder", "attention": "denoise", "euler": "scheduler", "conv": "decoder", "copy": None},
        ["Python function", "nn.Module"],
    )


def test_a_pattern_is_compared_with_modules_before_functions():
    """`diffusers` is in the path of every function, but a module matches the pattern, so only modules count."""
    found, _ = stages(*DIFFUSION, given=["unet=flux|diffusers"])
    assert found == {"clip": "text_encoder", "attention": "unet", "euler": "scheduler", "conv": "decoder", "copy": None}


def test_a_pattern_may_match_ops():
    found, sources = stages(
        op("aten::mm", 0, 10), *work(2, 1, "a", 20), *work(12, 2, "b", 30), given=["products=::MM$"]
    )
    assert (found, sources) == ({"a": "products", "b": None}, ["pattern"])


def test_the_first_of_several_patterns_counts():
    events = [annotation("prompt encoder", 0, 10), *work(2, 1, "a", 20)]
    assert stages(*events, given=["text=prompt", "encode=encoder"])[0] == {"a": "text"}
    assert stages(*events, given=["encode=encoder", "text=prompt"])[0] == {"a": "encode"}


def test_a_pattern_that_matches_nothing_is_said():
    staging = assign_stages(timeline(op("aten::mm", 0, 10)), stage_patterns(["denoise=unet"]))
    assert staging.sources == ()
    assert staging.notes == ("the pattern of stage denoise matches no name in the trace",)
    assert staging.why_none is not None
    assert staging.why_none.endswith("; the pattern of stage denoise matches no name in the trace")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("denoise", "there is no = between the name of the stage and its pattern"),
        ("=x", "the name of the stage is empty"),
        ("a//b=x", "the name of the stage is empty"),
        ("a=", "the pattern is empty"),
        ("a=(", "no regular expression (unclosed group)"),
        ("a=x*", "the pattern matches the empty text, so it would match every name"),
        ("a=" + "x" * 1001, "the pattern is longer than 1,000 characters"),
    ],
)
def test_a_wrong_pattern_is_refused(text, problem):
    with pytest.raises(UsageError) as caught:
        stage_patterns([text])
    assert problem in caught.value.why


def module(name, start, end):
    return python(f"nn.Module: {name}", start, end)


def test_modules_split_where_two_parts_take_time():
    """Model > Core > {Vision, Text}; inside Vision the same class repeats: those are layers."""
    layers = [module(f"Layer_{at}", 10 + 5 * at, 14 + 5 * at) for at in range(8)]
    found, sources = stages(
        module("Model_0", 0, 100), module("Core_0", 5, 95), module("Vision_0", 9, 60), *layers, module("Text_0", 61, 90),
        *work(12, 1, "layer", 200), *work(70, 2, "text", 210), *work(97, 3, "head", 220),
    )  # fmt: skip
    assert found == {"layer": "Model/Core/Vision", "text": "Model/Core/Text", "head": "Model"}
    assert sources == ["nn.Module"]


def test_layers_are_no_stages():
    layers = [module(f"Block_{at}", 10 * at + 1, 10 * at + 9) for at in range(8)]
    parts = [module(f"Mlp_{at}", 10 * at + 2, 10 * at + 6) for at in range(8)]
    found, _ = stages(module("Model_0", 0, 100), *layers, *parts, *work(13, 1, "a", 200))
    assert found == {"a": "Model"}


def test_too_many_words_are_layers_and_calls():
    words = [annotation(f"call_{chr(97 + at % 26)}{chr(97 + at // 26)}", 10 * at, 10 * at + 1) for at in range(60)]
    staging = assign_stages(timeline(annotation("preprocess", 1000, 1900), annotation("encode", 2000, 2900), *words))
    assert staging.ranges["stage"].n_unique() <= 15
    assert {"preprocess", "encode"} <= set(staging.ranges["stage"])
    assert staging.notes == (
        "62 distinct annotations are too many to be stages; the 15 that take the most time are used",
    )


def test_processes_do_not_share_stages():
    found, _ = stages(
        annotation("denoise", 0, 10, process=0, thread=0), annotation("decode_latents", 0, 10, process=1, thread=1),
        *work(2, 1, "a", 20), launch(3, 1, process=1, thread=1), kernel("b", 30, 31, 1, process=1, device=1),
    )  # fmt: skip
    assert found == {"a": "denoise", "b": "decode_latents"}


@pytest.mark.parametrize(
    ("stage", "pattern", "meant"),
    [
        ("denoise", "denoise*", True),
        ("denoise/attention", "denoise", True),
        ("denoise/attention", "attention", True),
        ("denoise/attention", "denoise/att*", True),
        ("denoise/attention", "decode/*", False),
        ("denoise", "denoise/*", False),
        ("decoder", "decode", False),
        (None, "*", False),
    ],
)
def test_what_a_glob_means(stage, pattern, meant):
    assert matches(stage, pattern) is meant


def test_parts_without_a_name_are_left_out_and_said():
    events = [
        annotation("traceview.stage:", 0, 5), annotation("traceview.stage:/", 10, 15), annotation(" ", 20, 25),
        annotation("traceview.stage: a // b /", 30, 35), annotation("## : ##", 40, 45),
        *(event for at in range(5) for event in work(10 * at + 1, at, f"k{at}", 10 * at + 2)),
    ]  # fmt: skip
    staging = assign_stages(timeline(*events))
    assert set(staging.ranges["stage"]) == {"a/b"}
    assert staging.notes == ("2 marks name no stage and are left out: traceview.stage: must be followed by a name",)


def test_many_marks_that_are_only_numbers_keep_them():
    """More names than a program has stages lose the number at their end, unless nothing else is left."""
    staging = assign_stages(timeline(*(annotation(f"traceview.stage:{at}", 10 * at, 10 * at + 5) for at in range(40))))
    assert staging.ranges["stage"].n_unique() == 40


def test_a_slash_in_a_name_stands_between_no_stages():
    events = [annotation("http://model", 0, 5), *work(1, 1, "a", 10)]
    assert stages(*events) == ({"a": "http:||model"}, ["annotation"])
    assert matches("http:||model", "http:||model")
    assert stages(*events, given=["outer/inner=http://model"]) == ({"a": "outer/inner"}, ["pattern"])


@pytest.mark.parametrize(
    ("numbers", "name", "stage"),
    [
        ([4, 5], "train", "mlp"),
        ([4], "train", "mlp"),
        # The same number each time counts nothing.
        ([0, 0], "sync_weights", "sync_weights/mlp"),
        ([4, 5], "traceview.stage:train", "train"),
    ],
)
def test_a_range_with_the_number_of_a_step_is_no_stage(numbers, name, stage):
    events = []
    for at, number in enumerate(numbers):
        start = 10 * at
        events += [
            annotation(name, start, start + 9, details={"step_num": number}), annotation("mlp", start + 1, start + 8),
            *work(start + 2, at, f"kernel {at}", start + 3),
        ]  # fmt: skip
    found, _ = stages(*events)
    assert set(found.values()) == {stage}
