"""The rulebook of scaled dot-product attention, asked about calls of a timeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import polars as pl

from traceview.capture_info import agreed
from traceview.eligibility import Device, Explanation, SdpaCall, explain, read_call
from traceview.kernel_dtypes import proven_dtype
from traceview.knowledge.ops import find_attention_op
from traceview.knowledge.releases import parse_cudnn, parse_version
from traceview.knowledge.sdpa import signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from traceview.knowledge.releases import Version
    from traceview.timeline import Timeline

_Value = TypeVar("_Value")

_BACKEND_OF: Final = {
    "flash-1": "flash", "flash-2": "flash", "flash-3": "flash", "flash-4": "flash", "cpu-flash": "flash",
    "mem-efficient": "efficient", "cudnn": "cudnn", "math": "math",
}  # fmt: skip
"""Implementation id to backend; AMD's ``aotriton`` and ``ck`` serve two backends and are told apart by the op."""
_BACKEND_OPS: Final = "aten::_scaled_dot_product_"
_ACCELERATOR_KEYS: Final = ("cuda_", "cupti_", "hip_", "roc")
_PLATFORM_OF: Final = {"nvidia": "cuda", "amd": "rocm"}


class SdpaExplainer:
    """Explains calls of one timeline.

    Args:
        timeline: A linked timeline.
        torch: PyTorch version, if known; else the one that the trace itself states, if it does. What
            ``traceview.capture`` recorded outweighs both.
        cudnn: cuDNN version, likewise.
    """

    def __init__(self, timeline: Timeline, *, torch: str | None = None, cudnn: str | None = None) -> None:
        self._timeline = timeline
        self._torch = version_of(timeline, "torch", torch)
        self._cudnn = version_of(timeline, "cudnn", cudnn)
        self._capture = agreed(tuple(run.capture for run in timeline.runs))
        self._signatures = {row["inputs"]: row for row in timeline.inputs.iter_rows(named=True)}
        self._devices = {row["device"]: row for row in timeline.devices.iter_rows(named=True)}

    def explain(
        self,
        op: str | None,
        event_id: int,
        implementation: str | None,
        devices: Iterable[int],
        kernels: Iterable[str] = (),
    ) -> Explanation | None:
        """Why one call ran what it ran.

        Args:
            op: Name of the op that asked.
            event_id: Its event.
            implementation: Implementation id of what ran.
            devices: Keys of the devices on which its kernels ran.
            kernels: Names of its kernels, for what they prove where arguments are not recorded.

        Returns:
            The explanation, or ``None`` if ``op`` is not one of PyTorch's ops of scaled dot-product attention, or if
            it ran on hardware that the rulebook does not know (Apple, Intel, TPU, …).
        """
        if op is None or signature_of(op) is None:
            return None
        call = read_call(op, self._inputs_of(event_id))
        device = self._device(implementation, devices)
        below = self._backend_ops_below(event_id)
        # Other accelerators choose by rules of their own, through ops of their own.
        if call is None or device is None or any(signature_of(name) is None for name, _ in below):
            return None
        return explain(
            _with_dtype(_with_training(call, below), implementation, kernels),
            device,
            observed=_observed(op, implementation, [name for name, _ in below]),
            torch=self._torch,
            cudnn=self._cudnn,
            capture=self._capture,
        )

    def _inputs_of(self, event_id: int) -> Mapping[str, str | None] | None:
        return self._signatures.get(self._timeline.events["inputs"][event_id])

    def _backend_ops_below(self, event_id: int) -> list[tuple[str, Mapping[str, str | None] | None]]:
        """The backend ops that an op calls, with their inputs."""
        below = self._timeline.events.filter((pl.col("parent_id") == event_id) & (pl.col("kind") == "op"))
        named = below.select("id", pl.col("name").cast(pl.String)).iter_rows()
        return [(name, self._inputs_of(child)) for child, name in named if name.startswith(_BACKEND_OPS)]

    def _device(self, implementation: str | None, devices: Iterable[int]) -> Device | None:
        used = [self._devices[key] for key in sorted(set(devices)) if key in self._devices]
        if any(row["vendor"] is not None and row["vendor"] not in _PLATFORM_OF for row in used):
            return None
        if used:
            return Device(
                platform=_agreed(_PLATFORM_OF.get(row["vendor"] or "") for row in used),
                major=_agreed(row["compute_major"] for row in used),
                minor=_agreed(row["compute_minor"] for row in used),
                name=_agreed(row["name"] for row in used),
            )
        if implementation == "cpu-flash" or without_accelerator(self._timeline):
            return Device("cpu")
        return Device()


def _agreed(values: Iterable[_Value | None]) -> _Value | None:
    """The one value of several devices, ``None`` if they differ."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def without_accelerator(timeline: Timeline) -> bool:
    """Whether no file shows any sign of an accelerator.

    A Kineto file of a build for CUDA or ROCm names the versions of its runtime even if no kernel ran, so a file that
    names none and has no device row comes from a CPU build. Other formats do not tell.
    """
    return timeline.devices.is_empty() and all(
        run.format == "kineto" and not any(key.startswith(_ACCELERATOR_KEYS) for key in run.metadata)
        for run in timeline.runs
    )


def recorded_version(timeline: Timeline, *keys: str) -> str | None:
    """The version under one of ``keys`` that every file of the timeline states, if they agree on one number."""
    stated = {str(run.metadata[key]) for run in timeline.runs for key in keys if run.metadata.get(key)}
    text = stated.pop() if len(stated) == 1 else None
    return text if text is not None and parse_version(text) is not None else None


_KEYS: Final = {
    "torch": ("torch_version", "pytorch_version"),
    "cudnn": ("cudnn_version",),
    "cuda": ("cuda_runtime_version",),
}
"""Where a trace itself states a version."""


def captured_version(timeline: Timeline, name: str) -> str | None:
    """The version that ``traceview.capture`` read in the process that made the trace; ``None`` without it."""
    capture = agreed(tuple(run.capture for run in timeline.runs))
    text = capture.versions.get(name) if capture is not None else None
    return text if text is not None and _parsed(name, text) is not None else None


def version_of(timeline: Timeline, name: str, given: str | None) -> str | None:
    """The version to judge by: what was captured, else what the user gives, else what the trace states.

    Args:
        timeline: The trace.
        name: ``"torch"``, ``"cudnn"`` or ``"cuda"``.
        given: By the user.
    """
    return captured_version(timeline, name) or given or recorded_version(timeline, *_KEYS[name])


def version_conflicts(timeline: Timeline, given: Mapping[str, str | None]) -> tuple[str, ...]:
    """One sentence for each version that was given and contradicts the captured one, which is then used.

    Args:
        timeline: The trace.
        given: Name to version, as in :func:`version_of`. ``2.13`` does not contradict ``2.13.0+cpu``.
    """
    found = []
    for name, text in given.items():
        captured = captured_version(timeline, name)
        if text is None or captured is None:
            continue
        mine, theirs = _parsed(name, text), _parsed(name, captured)
        if mine is None or theirs is None or theirs[: len(mine)] != mine[: len(theirs)]:
            found.append(
                f"{name} {text} was given, but traceview.capture recorded {captured} in the program itself: "
                f"judged by {captured}."
            )
    return tuple(found)


def _parsed(name: str, text: str) -> Version | None:
    return parse_cudnn(text) if name == "cudnn" else parse_version(text)


def _observed(op: str, implementation: str | None, below: list[str]) -> str | None:
    """The backend that ran: the op of the backend is the best witness, then the kernel."""
    for name in (*below, op):
        signature = signature_of(name)
        if signature is not None and signature.backend is not None:
            return signature.backend
        named = find_attention_op(name)
        if named is not None and named.backend in ("flash", "efficient", "cudnn", "math"):
            return named.backend
    return _BACKEND_OF.get(implementation or "")


def _with_dtype(call: SdpaCall, implementation: str | None, kernels: Iterable[str]) -> SdpaCall:
    """The call, with the dtype that its kernels prove if none is recorded."""
    if any(one.dtype is not None for one in (call.query, call.key, call.value)):
        return call
    dtype = proven_dtype(implementation, kernels)
    if dtype is None:
        return call
    query, key, value = (replace(one, dtype=dtype) for one in (call.query, call.key, call.value))
    return replace(call, query=query, key=key, value=value, dtype_by_kernels=True)


def _with_training(call: SdpaCall, below: list[tuple[str, Mapping[str, str | None] | None]]) -> SdpaCall:
    """The call, and whether a gradient was asked for if the op of its backend says so."""
    if call.training is not None:
        return call
    told = [one.training for name, inputs in below if (one := read_call(name, inputs)) is not None]
    return replace(call, training=next((training for training in told if training is not None), None))
