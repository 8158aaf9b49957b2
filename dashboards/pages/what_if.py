"""What a step would take if stages got faster, went away, were overlapped, or reached the hardware's floor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import streamlit as st

from traceview.dashboards import drawings, state, ui
from traceview.dashboards.pages.loading import opened
from traceview.dashboards.views import what_if as view
from traceview.whatif import Change, Effect, host_work, what_if

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.dashboards.shelf import Opened

_CHANGES: Final = "what"
"""The query parameter that holds the changes, so that a link shows the same answer."""
_DEFAULT_FACTOR: Final = 2.0


def page() -> None:
    """The page."""
    trace = opened()
    stages = trace.report.stages
    if stages is None or stages.stages is None:
        notes = [note for note in trace.report.notes if note.part == "stages"]
        ui.not_recorded("Stages, whose change could be tried out", notes)
        return
    head = st.container()
    left, right = st.columns([2, 3], gap="large")
    shares = dict(view.stages_to_change(stages))
    with left:
        changes, attributed_only = _choices(trace, shares, host_only=not stages.devices)
    state.to_address(**{_CHANGES: view.encoded(changes) if changes else None})
    found = what_if(stages, changes, host_ns=_host_ns(trace.id, trace), attributed_only=attributed_only)
    with head:
        ui.text(view.answer(found), kind="headline", key="what-if")
        if changes:
            for at, (name, words) in enumerate(view.bounds(found)):
                ui.text(f"{name}: {words}", kind="small", key=f"bound-{at}")
        for at, (stage, why) in enumerate(found.not_applied):
            with st.container(key=f"refused-{at}"):
                st.markdown(f"{ui.ICONS['unknown']} **Not applied**")
                ui.text(f"{stage}: {why}.")
    with right:
        drawings.steps(view.bars(found), "what-if", title="A step as recorded, and at both ends of the range")
        ui.table(view.stages_table(found))
        for text in found.assumptions:
            st.caption(text)


@st.cache_resource(max_entries=3, show_spinner=False)
def _host_ns(trace_id: str, _trace: Opened) -> int | None:
    """What the host needs per step; known by the id of the trace alone."""
    assert trace_id
    assert _trace.report.stages is not None
    return host_work(_trace.timeline, _trace.report.stages)


def _choices(trace: Opened, shares: Mapping[str, float], *, host_only: bool) -> tuple[dict[str, Change], bool]:
    """A control for each stage; what was chosen."""
    given = view.decoded(st.query_params.get(_CHANGES, ""), shares)
    chosen: dict[str, Change] = {}
    st.markdown("#### Change a stage")
    for at, (stage, share) in enumerate(shares.items()):
        with st.container(border=True, gap="xsmall"):
            ui.text(stage, kind="strong", key=f"stage-{at}")
            before = given.get(stage)
            first = view.AS_RECORDED if before is None else before.effect.value
            # Labels are read as Markdown, so the name of a stage is none.
            effect = st.selectbox(
                f"What happens to stage {at + 1}",
                view.EFFECTS,
                index=view.EFFECTS.index(first),
                key=f"effect-{trace.id}-{at}",
                label_visibility="collapsed",
                help=None,
            )
            if effect == Effect.FASTER.value:
                factor = st.slider(
                    f"How many times faster stage {at + 1} gets",
                    view.LEAST_FACTOR,
                    view.MOST_FACTOR,
                    before.factor if before is not None and before.effect is Effect.FASTER else _DEFAULT_FACTOR,
                    0.5,
                    format="%.1f x",
                    key=f"factor-{trace.id}-{at}",
                    label_visibility="collapsed",
                )
                chosen[stage] = Change(Effect.FASTER, factor)
            elif effect != view.AS_RECORDED:
                chosen[stage] = Change(Effect(effect))
            st.caption(view.share_words(share))
    attributed_only = host_only and st.checkbox(
        "Leave out time in no stage: in a recording of annotations alone it is often no part of the program",
        key=f"attributed-{trace.id}",
    )
    return chosen, attributed_only
