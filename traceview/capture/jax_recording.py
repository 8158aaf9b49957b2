"""Record with the JAX profiler, with everything that the analyses look for."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, overload

from traceview.capture import documents
from traceview.capture.frameworks import jax_gpus, jax_module, jax_versions
from traceview.capture.jax_settings import CompileCounter, read_settings
from traceview.capture.recording import Recording
from traceview.capture.steady import warm_up
from traceview.capture.xspace_file import write_without_host
from traceview.capture_info import CaptureInfo
from traceview.errors import TraceviewError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from traceview.timeline import Timeline

    PathLike = str | os.PathLike[str]

STEP_NAME: Final = "step"
"""Name of the range of a step; its number is an argument, as ``StepTraceAnnotation`` wants it."""


class JaxRecording(Recording):
    """Records a ``with`` block; :meth:`step` ends a step. See :func:`profile_jax` for the arguments.

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
        stacks: bool = False,
        sync_steps: bool = False,
        contract: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(path, warmup=warmup, steps=steps, sync_steps=sync_steps, contract=contract)
        self._stacks = stacks
        self._jax: Any = None
        self._settings: dict[str, Any] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._mark: Any = None
        self._marks_steps = True

    def __enter__(self) -> Self:
        self.prepare()
        if not self._warmup:
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What was recorded until an error is what shows its cause.
        self.stop()
        if self.info is None and kind is None:
            raise self._no_steps("block")

    def step(self, result: object = None) -> None:
        """End a step. After ``warmup`` and ``steps`` of them the recording is complete, and more are ignored.

        Args:
            result: What the step computed. The recording waits for it before it starts and before it ends, because JAX
                returns before the work is done.
        """
        if self.info is not None:
            return
        self._done += 1
        if self._sync_steps:
            self._wait(result)
        if self._done == self._warmup:
            self._wait(result)
            self.start()
        elif self._complete:
            self._wait(result)
            self.stop()
        elif self._folder is not None:
            self._next_mark()

    def prepare(self) -> None:
        """Import JAX."""
        self._jax = jax_module("traceview.capture")

    def warm_up(self, call: Callable[[], object], calls: int | None) -> None:
        """Call until steady, or ``calls`` times, without recording."""
        with CompileCounter(self._jax) as counter:
            self._before = warm_up(lambda: self._wait(call()), calls=calls, compilations=lambda: counter.count)

    def start(self, *, marks: bool = True) -> None:
        """Begin to record; the settings of now are those of the recording.

        Args:
            marks: Open a step at once.
        """
        profiler = self._jax.profiler
        options = profiler.ProfileOptions()
        options.python_tracer_level = 1 if self._stacks else 0
        self._settings = read_settings(self._jax)
        self._marks_steps = marks
        folder = tempfile.TemporaryDirectory()
        try:
            profiler.start_trace(folder.name, profiler_options=options)
        except RuntimeError as error:
            folder.cleanup()
            raise TraceviewError(
                "profiling",
                why=f"the JAX profiler does not start: {str(error).splitlines()[0][:200]}.",
                next_step="Is this block inside another one that is profiled?",
            ) from None
        self._folder = folder
        if marks:
            self._next_mark()

    def stop(self) -> None:
        """End the recording, write the trace and its sidecar; nothing happens if none runs."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        with folder:
            mark, self._mark = self._mark, None
            if self._complete and mark is not None:
                mark.__exit__(None, None, None)
            try:
                # Work of effects; results of the last step were waited for by step().
                self._jax.effects_barrier()
            finally:
                # A step that nobody ended is empty; it is not closed before the end, and so it is not recorded.
                self._jax.profiler.stop_trace()
            written = sorted(Path(folder.name).rglob("*.xplane.pb"))
            if not written:
                raise TraceviewError("no-trace", where=self.path, why="the JAX profiler wrote no xplane.pb.")
            info = self._described()
            unfinished = f"{self.path}.part"
            write_without_host(written[-1], Path(unfinished))
            shutil.move(unfinished, self.path)
        documents.write_sidecar(self.path, info)
        self.info = info

    def _next_mark(self) -> None:
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
        number = self._done - self._warmup
        self._mark = self._jax.profiler.StepTraceAnnotation(STEP_NAME, step_num=number)
        self._mark.__enter__()

    def _wait(self, result: object) -> None:
        self._jax.block_until_ready(result)

    def _described(self) -> CaptureInfo:
        now = read_settings(self._jax)
        return CaptureInfo(
            session=documents.new_session(),
            framework="jax",
            versions=jax_versions(self._jax),
            gpus=jax_gpus(self._jax),
            settings=now,
            changed=tuple(sorted(name for name, value in self._settings.items() if now.get(name) != value)),
            contract=self._contract,
            warmup_calls=self._before.calls + self._warmup,
            steady=self._before.steady,
            steps=self._done - self._warmup if self._marks_steps and self._done else None,
        )


@overload
def profile_jax(
    fn: Callable[[], object],
    /,
    *,
    path: PathLike,
    warmup: int | None = None,
    steps: int = 3,
    stacks: bool = False,
    sync_steps: bool = False,
    contract: Mapping[str, Any] | None = None,
) -> Timeline: ...


@overload
def profile_jax(
    path: PathLike,
    /,
    *,
    warmup: int | None = None,
    steps: int | None = None,
    stacks: bool = False,
    sync_steps: bool = False,
    contract: Mapping[str, Any] | None = None,
) -> JaxRecording: ...


def profile_jax(
    what: Callable[[], object] | PathLike,
    /,
    *,
    path: PathLike | None = None,
    warmup: int | None = None,
    steps: int | None = None,
    stacks: bool = False,
    sync_steps: bool = False,
    contract: Mapping[str, Any] | None = None,
) -> Timeline | JaxRecording:
    """Record a function, or a block, with the JAX profiler.

    ``profile_jax(fn, path="run.xplane.pb")`` calls ``fn`` until it is steady, records ``steps`` calls as one step each
    and returns the loaded timeline. ``with profile_jax("run.xplane.pb") as run:`` records a block in which
    ``run.step(result)`` ends a step; ``run.timeline`` is the timeline afterwards.

    Beside the trace lies ``<trace>.traceview.json`` with versions, settings and the contract; keep the two together.
    The name of the host is written to neither.

    Args:
        what: The function, called without arguments, which returns what is to be waited for; or the trace to write.
        path: The trace to write, for a function.
        warmup: Calls before the first recorded one; ``None``: until steady, at most
            :data:`traceview.capture.steady.MOST_CALLS` calls and a minute. For a block: steps that are not recorded,
            ``None`` for none.
        steps: Calls to record (3). For a block: the recording ends after so many steps; ``None``: at the end of it.
        stacks: Record Python calls. Slower.
        sync_steps: Wait for the result of every step, so that steps do not overlap. That is slower than the program
            itself; without it only the start and the end of the recording wait.
        contract: What is measured, in plain values: model, dtype, batch, …. It is shown with every answer.

    Raises:
        TraceviewError: JAX is not installed, its profiler runs already, or the path cannot be written.
    """
    if not callable(what):
        return JaxRecording(
            what, warmup=warmup or 0, steps=steps, stacks=stacks, sync_steps=sync_steps, contract=contract
        )
    if path is None:
        raise TypeError("profile_jax(fn) needs path=, the trace to write")
    wanted = 3 if steps is None else steps
    recording = JaxRecording(path, steps=wanted, stacks=stacks, sync_steps=sync_steps, contract=contract)
    recording.prepare()
    recording.warm_up(what, warmup)
    recording.start()
    try:
        for _ in range(wanted):
            recording.step(what())
    finally:
        recording.stop()
    return recording.timeline
