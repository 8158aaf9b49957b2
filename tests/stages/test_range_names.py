"""What names of ranges mean. The names are those of the frameworks' sources, or as seen in recorded traces."""

from __future__ import annotations

import pytest

from traceview.knowledge.range_names import RangeKind, read_range_name

STEP, REQUEST, PHASE, STAGE, NOTHING = (
    RangeKind.STEP,
    RangeKind.REQUEST,
    RangeKind.PHASE,
    RangeKind.STAGE,
    RangeKind.NOTHING,
)

NAMES = {
    "traceview.stage:denoise": (STAGE, "denoise"),
    "traceview.stage:denoise/attention": (STAGE, "denoise/attention"),
    "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)": (PHASE, "mixed"),
    "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)": (PHASE, "decode"),
    "execute_context_2(14721)_generation_0(0)": (PHASE, "prefill"),
    "execute_context_1(888_788544)_generation_0(0)": (PHASE, "prefill"),
    "execute_new_3_cached_12": (PHASE, "iteration"),
    "step[DECODE bs=32]": (PHASE, "decode"),
    "step[EXTEND bs=15 toks=15360]": (PHASE, "prefill"),
    "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8]": (PHASE, "mixed"),
    "step[DRAFT_EXTEND_V2 bs=1]": (PHASE, "draft"),
    "prefill[bs=2 tok=14721 ctx=[7803, 6918]]": (PHASE, "prefill"),
    "decode[bs=117/128 tok=117 d=117]": (PHASE, "decode"),
    "[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs": (PHASE, "decode"),
    "[Executor] _forward_step: 3 ctx reqs, 5 gen reqs": (PHASE, "mixed"),
    "execute_model: 4 reqs, 1024 toks": (PHASE, "iteration"),
    "gpu_model_runner: sample": (STAGE, "sample"),
    "schedule: allocate_slots": (STAGE, "schedule"),
    "scheduler.process_batch_result": (STAGE, "postprocess"),
    "execute_diffusion_1_256x256": (REQUEST, ""),
    "denoise_step 3": (STAGE, "denoise"),
    "vae_decode": (STAGE, "decoder"),
    "stage_TextEncodingStage": (STAGE, "text_encoder"),
    "stage_DenoisingStage": (STAGE, "denoise"),
    "ProfilerStep#105": (STEP, ""),
    "training_step_12": (STEP, ""),
    "iteration_3": (STEP, ""),
    "token_12_processing": (STEP, ""),
    "Optimizer.step#SGD.step": (STAGE, "optimizer"),
    "Optimizer.zero_grad#SGD.zero_grad": (STAGE, "zero_grad"),
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": (STAGE, "data_loading"),
    "DistributedDataParallel.forward": (STAGE, "forward"),
    "Forward 3": (STAGE, "forward"),
    "## forward ##": (STAGE, "forward"),
    "## forward:sparse_arch ##": (STAGE, "forward/sparse_arch"),
    "[param|pytorch.model.alex_net|0|0|0|measure|forward]": (STAGE, "measure/forward"),
    "[pl][profile][Strategy]SingleDeviceStrategy.training_step": (STAGE, "forward"),
    "find_centers": (STAGE, "find_centers"),
    "denoise 12": (STAGE, "denoise"),
    "## KJTListAwaitable wait() ##": (NOTHING, ""),
    "## Call CompiledFxGraph fud64jsrxcxliekg7lptyw24yz5k3oa65b73wjfbhz6j2fg6ouu7 ##": (NOTHING, ""),
    "autograd::engine::evaluate_function: AddmmBackward0": (NOTHING, ""),
    "nccl:all_reduce": (NOTHING, ""),
    "FSDP::pre_forward (blocks.3._checkpoint_wrapped_module)": (NOTHING, ""),
    "CUDAGraphNode.record (dynamo_timed)": (NOTHING, ""),
    "aten::to, seq = 1201, op_id = 5": (NOTHING, ""),
    "Torch-Compiled Region: 0/1": (NOTHING, ""),
    "custom-call.5": (NOTHING, ""),
    "wrapped_broadcast_1": (NOTHING, ""),
    "ExecuteReplicated.__call__": (NOTHING, ""),
    "_send_cond_16/pivot_t/_236_0:_Send": (NOTHING, ""),
    "/blocks.0/blocks.0.0/Conv + /blocks.0/blocks.0.1/Relu": (NOTHING, ""),
    "Thunk:#name=jit(step)/jvp(Decoder)/while/body/layer_3/attn/dot_general,hlo_op=gemm_fusion_dot.3#": (
        STAGE, "Decoder/layer/attn",
    ),
    "TSL:Thunk:#name=attn/transpose,hlo_op=wrapped_transpose#": (STAGE, "attn"),
    "Thunk:#name=jit(f)/dot_general,hlo_op=gemm_fusion_dot.3#": (NOTHING, ""),
    "Thunk:#hlo_op=command_buffer_1#": (NOTHING, ""),
    "cub::DeviceRadixSort": (NOTHING, ""),
    "thrust::sort_by_key": (NOTHING, ""),
    "cublasGemmEx": (NOTHING, ""),
    "Waiting for GIL": (NOTHING, ""),
    "XlaPassPipeline:#name=optimization,module=jit_step#": (NOTHING, ""),
    "[pl][profile][Callback]TQDMProgressBar.on_train_start": (NOTHING, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_name(name):
    kind, stage = NAMES[name]
    found = read_range_name(name)
    assert (found.kind, found.stage) == (kind, stage)


def test_counts_of_a_serving_iteration():
    mixed = read_range_name(
        "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)"
    )
    assert mixed.counts == {
        "tokens": 8192, "prefill_requests": 9, "prefill_tokens": 8155, "decode_requests": 37, "decode_tokens": 37,
    }  # fmt: skip
    assert read_range_name("step[EXTEND bs=15 toks=15360]").counts == {
        "requests": 15,
        "tokens": 15360,
        "prefill_tokens": 15360,
    }
    # A graph is padded to 128 requests; 117 are real.
    assert read_range_name("decode[bs=117/128 tok=117 d=117]").counts["requests"] == 117
