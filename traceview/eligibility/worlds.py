"""The platforms and releases that a call can belong to, and the default order in each.

What the trace and the user do not say stays open: a question is then asked in every world that is left, and an answer
counts as certain only if all of them agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from traceview.knowledge import sdpa
from traceview.knowledge.releases import version_text, within

if TYPE_CHECKING:
    from traceview.eligibility.calls import SdpaCall
    from traceview.eligibility.facts import Device, Facts
    from traceview.knowledge.releases import Version
    from traceview.knowledge.sdpa import Order

PLATFORMS: Final = ("cuda", "rocm", "cpu")


@dataclass(frozen=True, slots=True)
class World:
    """One platform and one release."""

    platform: str
    release: Version


@dataclass(frozen=True, slots=True)
class Worlds:
    """All worlds that are left, and remarks on how they were found."""

    all: tuple[World, ...]
    notes: tuple[str, ...]

    @property
    def releases(self) -> tuple[Version, ...]:
        """The releases, oldest first."""
        return tuple(sorted({world.release for world in self.all}))

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms."""
        return tuple(dict.fromkeys(world.platform for world in self.all))


def find_worlds(call: SdpaCall, device: Device, torch: Version | None) -> Worlds:
    """The worlds in which a call can have been recorded."""
    recorded = _recorded_releases(call)
    notes = []
    releases = recorded
    if torch is not None:
        stated = _stated_releases(torch)
        releases = tuple(release for release in recorded if release in stated)
        newest = sdpa.releases()[-1]
        if torch[:2] > newest[:2]:
            notes.append(
                f"torch {version_text(torch)} is newer than the rulebook, which ends with {version_text(newest)}"
            )
        if not stated:
            notes.append(f"torch {version_text(torch)} has no scaled_dot_product_attention")
        elif not releases:
            notes.append(
                f"torch {version_text(torch)} was stated, but a call with {call.argument_count} recorded arguments is "
                f"from {range_text(recorded)}: judged for both"
            )
        # A stated version that the record contradicts: only what holds either way is certain.
        releases = releases or tuple(release for release in sdpa.releases() if release in {*recorded, *stated})
    platforms = PLATFORMS if device.platform is None else (device.platform,)
    return Worlds(tuple(World(platform, release) for platform in platforms for release in releases), tuple(notes))


def _recorded_releases(call: SdpaCall) -> tuple[Version, ...]:
    """The releases in which an op has as many arguments as were recorded."""
    signature = sdpa.signature_of(call.op)
    bounds = signature.counts.get(call.argument_count or 0) if signature else None
    if bounds is None:
        return sdpa.releases()
    return tuple(release for release in sdpa.releases() if within(release, *bounds))


def _stated_releases(torch: Version) -> tuple[Version, ...]:
    """The releases of the rulebook that a stated version stands for; the newest for anything newer."""
    known = sdpa.releases()
    if torch[:2] > known[-1][:2]:
        return known[-1:]
    same = tuple(release for release in known if release[: min(2, len(torch))] == torch[: min(2, len(torch))])
    if len(torch) < 3:
        return same
    # Several patch releases of one minor version: the last one that is not newer.
    older = [release for release in same if (*release, 0)[:3] <= torch[:3]]
    return tuple(older[-1:])


def range_text(releases: tuple[Version, ...]) -> str:
    """``"torch 2.5 to 2.13"``; gaps are kept (``"torch 2.0, 2.5 to 2.13"``)."""
    known = sdpa.releases()
    runs: list[list[Version]] = []
    for release in sorted(releases):
        if runs and known.index(release) == known.index(runs[-1][-1]) + 1:
            runs[-1].append(release)
        else:
            runs.append([release])
    parts = [
        version_text(run[0]) if len(run) == 1 else f"{version_text(run[0])} to {version_text(run[-1])}" for run in runs
    ]
    return "torch " + ", ".join(parts)


def possible_orders(facts: Facts) -> tuple[tuple[str, ...], ...]:
    """The default orders that are possible in one world; several if the cuDNN version decides and is not known."""
    found: list[tuple[str, ...]] = []
    for order in sdpa.orders():
        if facts.platform not in order.platforms or not within(facts.release, order.since, order.until):
            continue
        holds = _order_holds(order, facts)
        if holds is not False and order.backends not in found:
            found.append(order.backends)
        if holds:
            break
    return tuple(found)


def _order_holds(order: Order, facts: Facts) -> bool | None:
    """Whether the conditions of an order hold; ``None`` if something they need is not recorded."""
    unknown = not order.settled
    if order.sm or order.sm_min is not None:
        if facts.sm is None:
            unknown = True
        elif (order.sm and facts.sm not in order.sm) or facts.sm < (order.sm_min or 0):
            return False
    if order.cudnn_since is not None:
        if facts.cudnn is None:
            unknown = True
        elif (*facts.cudnn, 0, 0)[:3] < (*order.cudnn_since, 0, 0)[:3]:
            return False
    return None if unknown else True
