"""What the names of annotated ranges mean: steps, engine iterations, stages, or nothing that time should be split by.

Each row of the tables is a regular expression with what a range of that name is. The names were read in the sources of
the frameworks or seen in recorded traces; ``seen`` tells which. The first row that matches wins. Checked 2026-11-30.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from traceview.capture_info import MARK_PREFIX
from traceview.name_numbers import read_number

if TYPE_CHECKING:
    from collections.abc import Mapping


class RangeKind(StrEnum):
    """What a range of some name is."""

    STEP = "step"
    """One iteration of the program, e.g. ``ProfilerStep#3``."""
    REQUEST = "request"
    """One call of a whole pipeline: a step if nothing finer is there."""
    PHASE = "phase"
    """One iteration of a serving engine; its stage is the phase (prefill, decode, mixed)."""
    STAGE = "stage"
    """A part of a step."""
    NOTHING = "nothing"
    """Layers, operators, communication calls, compiled regions, bookkeeping: time is not split by these."""


@dataclass(frozen=True, slots=True)
class RangeName:
    """What a name says.

    Attributes:
        kind: See :class:`RangeKind`.
        stage: Stage, with ``/`` between outer and inner; ``""`` for steps and for nothing.
        known: The name is one of a framework; else it is the user's own word.
        counts: Numbers in the name: ``index``, ``requests``, ``prefill_requests``, ``decode_requests``,
            ``prefill_tokens``, ``decode_tokens``, ``tokens``, as far as it has them.
        family: Id of the row that matched.
    """

    kind: RangeKind
    stage: str = ""
    known: bool = True
    counts: Mapping[str, int] | None = None
    family: str = ""


# id, kind, stage (or the name of a map below, with @), regular expression, how it is known.
_ROWS: Final = (
    ("vllm.detail", "phase", "@counts", r"^execute_(?P<tok>\d+)_context_(?P<nctx>\d+)\(sq(?P<ctok>\d+)sk\d+sqsq\d+sqsk\d+\)_generation_(?P<ngen>\d+)\(sq(?P<gtok>\d+)sk\d+sqsq\d+sqsk\d+\)$", "trace"),
    ("vllm.native", "phase", "@counts", r"^execute_context_(?P<nctx>\d+)\((?P<ctok>\d+)(?:_\d+)*\)_generation_(?P<ngen>\d+)\((?P<gtok>\d+)(?:_\d+)*\)$", "trace"),
    ("vllm.old", "phase", "@unknown", r"^execute_new_(?P<nnew>\d+)_cached_(?P<ncached>\d+)$", "source"),
    ("capture", "stage", "graph_capture", r"^capture_\d+_[A-Za-z_]+$", "trace"),
    ("vllm.runner", "stage", "@vllm", r"^gpu_model_runner: (?P<part>[\w ]+)$", "source"),
    ("vllm.engine", "nothing", "", r"^llm_engine step: [\w ]+$", "source"),
    ("vllm.sched", "stage", "schedule", r"^schedule: [\w ]+$", "source"),
    ("vllm.spec", "stage", "draft", r"^speculator: [\w ]+$", "source"),
    ("pyhooks", "nothing", "", r"^\{'Module': '", "source"),
    ("sgl.step", "phase", "@mode", r"^step\[(?P<mode>[A-Za-z0-9_]+)(?: bs=(?P<bs>\d+))?(?: toks=(?P<tok>\d+))?(?P<rest>[^\]]*)\]$", "trace"),
    ("sgl.sched", "stage", "@sched", r"^scheduler\.(?P<part>recv_requests|process_input_requests|get_next_batch_to_run|process_batch_result)$", "source"),
    ("sgl.run", "nothing", "", r"^scheduler\.run_batch$", "source"),
    ("atom", "phase", "@phase", r"^(?P<phase>prefill|decode)\[bs=(?P<bs>\d+)(?:/\d+)? tok=(?P<tok>\d+).*\]$", "source"),
    ("trtllm.fwd", "phase", "@counts", r"^\[Executor\] _forward_step(?: (?P<it>\d+))?: (?P<nctx>\d+) ctx reqs,(?: (?P<ctok>\d+) ctx tokens,)? (?P<ngen>\d+) gen reqs$", "source"),
    ("tpu.exec", "phase", "@unknown", r"^execute_model: (?P<reqs>\d+) reqs, (?P<tok>\d+) toks$", "source"),
    ("tpu.kv", "stage", "kv_transfer", r"^KV_Cache_(?:Await_)?Pull$", "source"),
    ("diff.exec", "request", "", r"^execute_diffusion_\d+_\d+x\d+$", "trace"),
    ("diff.req", "request", "", r"^(?:pipeline_call|model_inference)$", "trace"),
    ("diff.step", "stage", "denoise", r"^[Dd]enois(?:e|ing)_?[Ss]tep[_ ]?\d+$", "source"),
    ("diff.loop", "stage", "denoise", r"^(?:denois(?:e|ing)_loop|Denoise_Full_Loop)$", "source"),
    ("diff.sub", "stage", "@diff", r"^(?P<part>transformer_forward|vae_decode|vae_encode|_?scheduler_step|encode_prompt|_tokenize_prompt)$", "trace"),
    ("diff.sgl", "stage", "@words", r"^stage_(?P<part>[\w.]+?)(?:Stage)?$", "source"),
    ("kineto.step", "step", "", r"^ProfilerStep\s*#(?P<index>\d+)$", "trace"),
    ("kineto.odd", "nothing", "", r"^ProfilerStep\s*#", "source"),
    ("torch.opt", "stage", "optimizer", r"^Optimizer\.step#.+$", "trace"),
    ("torch.zero", "stage", "zero_grad", r"^Optimizer\.zero_grad#.+$", "trace"),
    ("torch.data", "stage", "data_loading", r"^enumerate\((?:DataLoader|DataPipe)\)#.+$", "trace"),
    ("torch.wrap", "stage", "forward", r"^(?:DistributedDataParallel|DataParallel|FullyShardedDataParallel)\.forward$", "trace"),
    ("torch.bwd", "nothing", "", r"^autograd::engine::evaluate_function: .+$", "trace"),
    ("torch.pp", "stage", "@pp", r"^(?P<part>Forward|Backward) \d+$", "source"),
    ("fsdp2", "nothing", "", r"^FSDP::", "trace"),
    ("fsdp1", "nothing", "", r"^FullyShardedDataParallel\.\w+$", "source"),
    ("region", "nothing", "", r"^Torch-Compiled Region", "trace"),
    ("fxgraph", "nothing", "", r"^## Call CompiledFxGraph \w+ ##$", "trace"),
    ("dynamo", "nothing", "", r"^.+ \(dynamo_timed\)$", "trace"),
    ("noise", "nothing", "", r"^(?:TorchDynamo Cache Lookup|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue|PyTorch Profiler \(\d+\)|record_param_comms)$", "trace"),
    ("comm", "nothing", "", r"^(?:nccl|hccl|gloo|mpi|ucc|xccl):\w+$", "trace"),
    ("comm.api", "nothing", "", r"^(?:nccl(?:AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|Group(?:Start|End)|Comm\w+)|MPI_\w+)$", "trace"),
    ("library", "nothing", "", r"^(?:cub|thrust|cuda::std)::|^nvshmemx?_\w+$|^(?:cublas|cudnn|cusparse|cusolver|cufft)[A-Z]\w*$", "trace"),
    ("gil", "nothing", "", r"\bGIL\b", "source"),
    ("hash.wait", "nothing", "", r"^#{1,2} .*\bwait\(\) #{1,2}$", "trace"),
    ("hash", "stage", "@label", r"^#{1,2} (?P<part>.+?) #{1,2}$", "trace"),
    ("pl.optimizer", "stage", "optimizer", r"^\[pl\]\[profile\].*\boptimizer_step$", "source"),
    ("pl.backward", "stage", "backward", r"^\[pl\]\[profile\].*\bbackward$", "source"),
    ("pl.training", "stage", "forward", r"^\[pl\]\[profile\].*\.(?:training|test|predict)_step$", "source"),
    ("pl.validation", "stage", "validation", r"^\[pl\]\[profile\].*\.validation_step$", "source"),
    ("pl.data", "stage", "data_loading", r"^\[pl\]\[profile\].*(?:dataloader\w*next|fetching).*$", "source"),
    ("pl", "nothing", "", r"^\[pl\]\[(?:profile|module)\]", "source"),
    ("megatron.step", "step", "", r"^training_step_(?P<index>\d+)$", "source"),
    ("megatron.part", "stage", "@part", r"^megatron\.[\w.]*\.(?P<part>forward|backward)_step$", "source"),
    ("megatron.func", "nothing", "", r"^megatron\.[\w.]+$", "source"),
    ("trt.exec", "stage", "forward", r"^ExecutionContext::(?:execute|enqueue)\w*$", "trace"),
    ("trt.layer", "nothing", "", r"^(?:Reformatting CopyNode for |\{ForeignNode\[|PWN\(|myelin\w+ ?$|/[\w./]+)", "trace"),
    ("torchtrt", "stage", "forward", r"^PythonTorchTensorRTModule:\w+$", "source"),
    ("triton", "stage", "@label", r"^(?:ModelInstanceExecute|Execute|Run) (?P<part>\w+?)(?:_\d+)?$", "source"),
    ("triton.wait", "nothing", "", r"^(?:ProcessRequests|RunCommand|DynamicBatchScheduler) \S+$", "source"),
    ("deepspeed", "stage", "@ds", r"^DeepSpeedEngine\.(?P<part>forward|backward|step)$", "source"),
    ("deepspeed.layer", "nothing", "", r"^(?:DeepSpeed\w*|PartitionedParameterCoordinator)\.\w+", "source"),
    ("xla.module", "step", "", r"^(?:TSL:)?XlaModule:#", "source"),
    ("xla.scope", "stage", "@scope", r"^(?:TSL:)?Thunk:#name=(?P<part>[^,#]+)", "source"),
    ("xla.thunk", "nothing", "", r"^(?:TSL:)?Thunk:#", "source"),
    ("xla.compiler", "nothing", "", r"^(?:TSL:)?Xla[A-Z]\w*:#", "trace"),
    ("param", "stage", "@param", r"^\[param\|(?P<part>[^|\]]+(?:\|[^|\]]+)*)\]$", "trace"),
    ("counter", "step", "", r"^(?:iter(?:ation)?|step|batch|micro_?batch|token|frame|req(?:uest)?|train(?:_step)?|warmup)[ _\-#:]*(?P<index>\d+)(?:_processing)?$", "trace"),
    ("xla.host", "nothing", "", r"^(?:ExecuteReplicated|PjitFunction|PyClient|PyArray|ParseArguments|ThunkExecutor|TfrtCpu|PjRt)", "trace"),
    ("xla.op", "nothing", "", r"^(?:[a-z][\w\-]*\.\d+|wrapped_\w+|\w*fusion(?:[_.]\d+)?)$", "trace"),
    ("tf.transfer", "nothing", "", r"^_(?:send|recv)_|:_(?:Send|Recv)$", "trace"),
    ("operator", "nothing", "", r"^(?:aten|c10d|prim|_c10d_functional|fbgemm|vllm|symm_mem|flash_attn|torch|torchvision|mtia)::", "trace"),
    ("emit_nvtx", "nothing", "", r", (?:seq|op_id) = \d+", "trace"),
)  # fmt: skip

_MAPS: Final[dict[str, dict[str, str]]] = {
    "@vllm": {
        "preprocess": "preprocess", "forward": "forward", "sample": "sample", "draft": "draft",
        "postprocess": "postprocess", "bookkeep": "postprocess", "ModelRunnerOutput": "postprocess", "eplb": "eplb",
    },
    "@sched": {
        "recv_requests": "schedule", "process_input_requests": "schedule", "get_next_batch_to_run": "schedule",
        "process_batch_result": "postprocess",
    },
    "@mode": {
        "extend": "prefill", "split_prefill": "prefill", "dllm_extend": "prefill", "decode": "decode",
        "mixed": "mixed", "target_verify": "verify", "draft_extend": "draft", "draft_extend_v2": "draft",
        "idle": "idle", "prebuilt": "kv_transfer",
    },
    "@diff": {
        "transformer_forward": "denoise", "vae_decode": "decoder", "vae_encode": "vae_encode",
        "scheduler_step": "scheduler", "_scheduler_step": "scheduler", "encode_prompt": "text_encoder",
        "_tokenize_prompt": "text_encoder",
    },
    "@pp": {"Forward": "forward", "Backward": "backward"},
    "@part": {"forward": "forward", "backward": "backward"},
    "@ds": {"forward": "forward", "backward": "backward", "step": "optimizer"},
}  # fmt: skip

_WORDS: Final = (
    ("text_encoder", r"text_?enc|encode_prompt|prompt_enc|clip_text|\bt5\b|tokeniz"),
    ("image_encoder", r"image_?enc|vision_(?:tower|model|enc)"),
    ("denoise", r"denois|\bunet\b|\bdit\b"),
    ("decoder", r"vae_?dec|decode_latents|\bvae\b|^decod(?:er|ing)$"),
)
"""What a part of a diffusion pipeline is called, by words in the name of its class."""

_NUMBER_AT_END: Final = re.compile(r"[\s_#:\-]*[0-9]+$")
_DIFFUSION: Final = "diff.sub"


@cache
def _table() -> tuple[tuple[str, str, str, re.Pattern[str]], ...]:
    """The rows, compiled when first needed: commands that ask for no stage do not wait for it."""
    # Programs count in ASCII digits; `\d` alone would take those of every script.
    return tuple(
        (family, kind, stage, re.compile(pattern.replace(r"\d", "[0-9]"))) for family, kind, stage, pattern, _ in _ROWS
    )


@lru_cache(maxsize=1 << 16)
def read_range_name(name: str) -> RangeName:
    """What the name of an annotated range says.

    Args:
        name: As recorded.
    """
    name = name.strip()
    if name.startswith(MARK_PREFIX):
        return RangeName(RangeKind.STAGE, _path(name.removeprefix(MARK_PREFIX)), known=False, family="mark")
    for family, kind, stage, pattern in _table():
        found = pattern.search(name)
        if found:
            return _of_match(family, RangeKind(kind), stage, found)
    label = _NUMBER_AT_END.sub("", name)
    return RangeName(RangeKind.STAGE, _one_level(label) or name, known=False, family="word")


def is_diffusion_part(name: RangeName) -> bool:
    """The name is used for parts of a diffusion pipeline; one of them alone may mean something else."""
    return name.family == _DIFFUSION


def _path(text: str) -> str:
    """A path of stages without parts that have no name; ``""`` if none has."""
    return "/".join(part.strip() for part in text.split("/") if part.strip())


def _one_level(label: str) -> str:
    """A label that is one stage, whatever is in it: ``/`` stands between outer and inner stages."""
    return label.replace("/", "|")


def _of_match(family: str, kind: RangeKind, stage: str, found: re.Match[str]) -> RangeName:
    groups = {key: value for key, value in found.groupdict().items() if value is not None}
    counts = _counts(groups)
    if stage == "@counts":
        stage = _phase(prefills=bool(groups["nctx"].strip("0")), decodes=bool(groups["ngen"].strip("0")))
    elif stage == "@unknown":
        stage = "iteration"
    elif stage == "@phase":
        stage = groups["phase"]
        counts |= _tokens(stage, groups["tok"])
    elif stage == "@mode":
        stage = _MAPS["@mode"].get(groups["mode"].lower(), "iteration")
        if "tok" in groups and stage == "prefill":
            counts |= _tokens(stage, groups["tok"])
        if stage == "decode" and "bs" in groups:
            counts |= _tokens(stage, groups["bs"])
    elif stage == "@words":
        stage = _by_word(groups["part"]) or groups["part"]
    elif stage == "@label":
        # torchrec writes the parts of `forward` as `forward:part`.
        stage = _path(_one_level(groups["part"]).replace(":", "/"))
    elif stage == "@scope":
        stage = _of_scopes(groups["part"])
        kind = RangeKind.STAGE if stage else RangeKind.NOTHING
    elif stage == "@param":
        kind, stage = _of_param(groups["part"])
    elif stage in _MAPS:
        stage = _MAPS[stage].get(groups["part"], groups["part"])
    return RangeName(kind, stage, known=family != "hash", counts=counts or None, family=family)


def _tokens(phase: str, text: str) -> dict[str, int]:
    number = read_number(text)
    return {} if number is None else {f"{phase}_tokens": number}


def _phase(*, prefills: bool, decodes: bool) -> str:
    if prefills and decodes:
        return "mixed"
    return "prefill" if prefills else "decode" if decodes else "idle"


_WRAPPER: Final = re.compile(
    r"^(?:jit|pjit|xmap|pmap|vmap|remat|checkpoint|shard_map|custom_jvp|custom_vjp)\(.*\)$"
    r"|^(?:while|cond|body|branch_[0-9]+_fun|checkpoint|remat|rematted_computation|shard_map|closed_call|pjit|main)$"
)
"""Parts of the path of an XLA op that are no scope of the program; the same as in the source of stages from XLA."""


def _of_scopes(path: str) -> str:
    """The scopes in the path of an XLA op, ``jit(step)/jvp(Decoder)/attn/dot_general``, without its primitive.

    XLA writes the path into the ranges around its launches, less what all ops of the module have in common (source of
    its annotations of thunks, read 2026-11).
    """
    scopes: list[str] = []
    for part in path.split("/")[:-1]:
        inner = re.match(r"^(?:transpose\()?jvp\((?P<inner>.*?)\)+$", part)
        name = inner["inner"] if inner else part
        if name and not _WRAPPER.match(name):
            scope = re.sub(r"[_.]?[0-9]+$", "", name) or name
            if not scopes or scopes[-1] != scope:
                scopes.append(scope)
    return _path("/".join(scopes))


def _of_param(body: str) -> tuple[RangeKind, str]:
    """``[param|model|…|measure|forward]``: the pass is the stage; the ranges around it are the whole run."""
    fields = body.split("|")
    if "warmup" in fields or "measure" in fields:
        return RangeKind.STAGE, "/".join(fields[-2:])
    return (RangeKind.STAGE, fields[0]) if len(fields) == 1 and fields[0] != "cuda" else (RangeKind.NOTHING, "")


_COUNTED: Final = {
    "index": "index", "it": "index", "bs": "requests", "reqs": "requests", "nctx": "prefill_requests",
    "ngen": "decode_requests", "ctok": "prefill_tokens", "gtok": "decode_tokens", "tok": "tokens",
}  # fmt: skip


def _counts(groups: Mapping[str, str]) -> dict[str, int]:
    read = {_COUNTED[key]: read_number(value) for key, value in groups.items() if key in _COUNTED}
    return {key: number for key, number in read.items() if number is not None}


def _by_word(text: str) -> str | None:
    return next((stage for stage, pattern in _WORDS if re.search(pattern, _spaced(text), re.IGNORECASE)), None)


def _spaced(text: str) -> str:
    """``TextEncoding`` as ``Text_Encoding``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text)
