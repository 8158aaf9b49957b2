"""Record with the PyTorch profiler, with everything that the analyses look for."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Final, Self, overload

from traceview.capture import documents
from traceview.capture.frameworks import torch_gpus, torch_module, torch_versions
from traceview.capture.kineto_file import write_without_host
from traceview.capture.recording import Recording
from traceview.capture.steady import warm_up
from traceview.capture.torch_settings import SettingsWatch, read_settings
from traceview.capture_info import KEY, CaptureInfo
from traceview.errors import TraceviewError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from traceview.timeline import Timeline

    PathLike = str | os.PathLike[str]

ENDLESS: Final = 1 << 30
"""Steps of a recording whose number is not known."""


class TorchRecording(Recording):
    """Records a ``with`` block; :meth:`step` ends a step. See :func:`profile_torch` for the arguments.

    Attributes:
        path: The trace.
        info: What is written down about the recording; ``None`` before the end.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        warmup: int = 0,
        steps: int | None = None,
        shapes: bool = True,
        stacks: bool = False,
        memory: bool = False,
        sync_steps: bool = False,
        all_threads: bool = False,
        contract: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(path, warmup=warmup, steps=steps, sync_steps=sync_steps, contract=contract)
        self._options = {"record_shapes": shapes, "with_stack": stacks, "profile_memory": memory}
        self._all_threads = all_threads
        self._torch: Any = None
        self._profiler: Any = None
        self._watch: SettingsWatch | None = None

    def __enter__(self) -> Self:
        self.prepare()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # What was recorded until an error is what shows its cause.
            self.stop()
        finally:
            self.release()

    def step(self) -> None:
        """End a step. After ``warmup`` and ``steps`` of them the recording is complete, and more are ignored."""
        if self._profiler is None:
            return
        self._done += 1
        if self._complete:
            self.stop()
            return
        if self._sync_steps and self._done != self._warmup:
            synchronise(self._torch)
        if self._done == self._warmup:
            # Work of the warm-up that is still in flight would lie in the first step.
            synchronise(self._torch)
            if self._watch is not None:
                self._watch.restart()
        self._profiler.step()

    def prepare(self) -> None:
        """Import PyTorch and begin to watch its settings."""
        self._torch = torch_module("traceview.capture")
        if is_recording(self._torch):
            raise TraceviewError(
                "profiling",
                why="the PyTorch profiler is running already, and only one can.",
                next_step="Is this block inside another one that is profiled?",
            )
        self._watch = SettingsWatch(self._torch).__enter__()

    def release(self) -> None:
        """Stop watching the settings."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.__exit__(None, None, None)

    def warm_up(self, call: Callable[[], object], calls: int | None) -> None:
        """Call until steady, or ``calls`` times, without recording."""

        def waited() -> None:
            call()
            synchronise(self._torch)

        self._before = warm_up(waited, calls=calls, compilations=compilations)

    def start(self, *, marks: bool = True) -> None:
        """Begin to record; the settings are watched from now on.

        Args:
            marks: Mark steps; the first one begins at once.
        """
        profiler = self._torch.profiler
        plan = None
        if marks:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Profiler won't be using warmup")
                plan = profiler.schedule(wait=0, warmup=self._warmup, active=self._steps or ENDLESS)
        options = dict(self._options)
        if self._all_threads:
            options |= _all_threads(self._torch)
        started = profiler.profile(activities=activities(self._torch), schedule=plan, **options)
        synchronise(self._torch)
        if self._watch is not None:
            self._watch.restart()
        started.start()
        self._profiler = started

    def stop(self) -> None:
        """End the recording, write the trace; nothing happens if none runs."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        if self._done < self._warmup:
            profiler.stop()
            raise self._no_steps("recording")
        # Kernels still in flight would be missing from the trace.
        try:
            synchronise(self._torch)
        finally:
            info = self._described()
            profiler.add_metadata_json(KEY, json.dumps(info.document()))
            profiler.stop()
        with tempfile.TemporaryDirectory() as scratch:
            written = os.path.join(scratch, "trace.json")
            profiler.export_chrome_trace(written)
            unended = self._done if self._done and not self._complete else None
            write_without_host(written, self.path, without_step=unended)
        self.info = info

    def _described(self) -> CaptureInfo:
        watch = self._watch
        steps = self._done - self._warmup if self._done else None
        return CaptureInfo(
            session=documents.new_session(),
            framework="torch",
            versions=torch_versions(self._torch),
            gpus=torch_gpus(self._torch),
            settings=read_settings(self._torch),
            changed=watch.changed() if watch is not None else (),
            contract=self._contract,
            warmup_calls=self._before.calls + self._warmup,
            steady=self._before.steady,
            steps=steps,
        )


def activities(torch: Any) -> list[Any]:
    """What can be recorded here: the CPU, and the accelerators that are there."""
    kinds = torch.profiler.ProfilerActivity
    found = [kinds.CPU]
    if torch.cuda.is_available():
        found.append(kinds.CUDA)
    if hasattr(torch, "xpu") and torch.xpu.is_available() and hasattr(kinds, "XPU"):
        found.append(kinds.XPU)
    return found


def is_recording(torch: Any) -> bool:
    """Whether a profiler of PyTorch records, whichever threads it looks at."""
    profiler = torch.autograd.profiler
    return bool(getattr(profiler, "_is_profiler_enabled", False) or torch.autograd._profiler_enabled())  # noqa: SLF001 - no public way


def synchronise(torch: Any) -> None:
    """Wait for the work of every accelerator in use."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        for at in range(torch.cuda.device_count()):
            torch.cuda.synchronize(at)
    elif hasattr(torch, "xpu") and torch.xpu.is_available():
        torch.xpu.synchronize()


def compilations() -> int:
    """How many frames Dynamo looked at so far; 0 while nobody uses ``torch.compile``."""
    import sys

    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if counters is None:
        return 0
    return int(counters["frames"]["total"]) + int(counters["stats"]["unique_graphs"])


def _all_threads(torch: Any) -> dict[str, Any]:
    """The option that records the ops of every thread, where the release has it (torch 2.7 and later)."""
    try:
        return {"experimental_config": torch._C._profiler._ExperimentalConfig(profile_all_threads=True)}  # noqa: SLF001 - the documented way
    except (AttributeError, TypeError):
        return {}


@overload
def profile_torch(
    fn: Callable[[], object],
    /,
    *,
    path: PathLike,
    warmup: int | None = None,
    steps: int = 3,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
    sync_steps: bool = False,
    contract: Mapping[str, Any] | None = None,
) -> Timeline: ...


@overload
def profile_torch(
    path: PathLike,
    /,
    *,
    warmup: int | None = None,
    steps: int | None = None,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
    sync_steps: bool = False,
    contract: Mapping[str, Any] | None = None,
) -> TorchRecording: ...


def profile_torch(
    what: Callable[[], object] | PathLike,
    /,
    *,
    path: PathLike | None = None,
    warmup: int | None = None,
    steps: int | None = None,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
    sync_steps: bool = False,
    contract: Mapping[str, Any] | None = None,
) -> Timeline | TorchRecording:
    """Record a function, or a block, with the PyTorch profiler.

    ``profile_torch(fn, path="run.json.gz")`` calls ``fn`` until it is steady, records ``steps`` calls as one step each
    and returns the loaded timeline. ``with profile_torch("run.json.gz") as run:`` records a block in which
    ``run.step()`` ends a step; ``run.timeline`` is the timeline afterwards.

    Versions, the switches that decide which kernel runs, and the contract stand in the trace under ``traceview``.
    The name of the host is not written.

    Args:
        what: The function, called without arguments; or the trace to write, ``.gz`` to compress it.
        path: The trace to write, for a function.
        warmup: Calls before the first recorded one; ``None``: until steady, at most
            :data:`traceview.capture.steady.MOST_CALLS` calls and a minute. For a block: steps that are not recorded,
            ``None`` for none. The profiler itself warms up in one more call.
        steps: Calls to record (3). For a block: the recording ends after so many steps; ``None``: at the end of it.
        shapes: Record the shapes of arguments; without them little can be explained.
        stacks: Record Python call stacks. Slower, and paths of source files are then in the trace.
        memory: Record allocations.
        sync_steps: Wait for the device at the end of every step, so that steps do not overlap. That is slower than the
            program itself; without it only the start and the end of the recording wait.
        contract: What is measured, in plain values: model, dtype, batch, …. It is shown with every answer.

    Raises:
        TraceviewError: PyTorch is not installed, a profiler runs already, or the path cannot be written.
    """
    options = {
        "shapes": shapes, "stacks": stacks, "memory": memory, "sync_steps": sync_steps, "contract": contract
    }  # fmt: skip
    if not callable(what):
        return TorchRecording(what, warmup=warmup or 0, steps=steps, **options)  # type: ignore[arg-type]
    if path is None:
        raise TypeError("profile_torch(fn) needs path=, the trace to write")
    recording = TorchRecording(path, warmup=1, steps=3 if steps is None else steps, **options)  # type: ignore[arg-type]
    recording.prepare()
    try:
        recording.warm_up(what, warmup)
        recording.start()
        try:
            for _ in range(1 + (3 if steps is None else steps)):
                what()
                recording.step()
        finally:
            recording.stop()
    finally:
        recording.release()
    return recording.timeline
