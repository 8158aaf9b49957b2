"""Of many devices a table shows those that stood idle longest."""

from __future__ import annotations

from traceview.render.many_devices import MOST_DEVICES, most_idle


def test_few_devices_are_all_shown():
    assert most_idle([3, 1, 2], lambda idle: idle) == ([3, 1, 2], ())


def test_of_many_the_longest_idle_stay_in_their_order():
    idle = [(7 * at) % 40 for at in range(40)]
    shown, remarks = most_idle(list(enumerate(idle)), lambda one: one[1])
    assert [ns for _, ns in shown] == [ns for ns in idle if ns >= 40 - MOST_DEVICES]
    assert remarks == ("The 16 devices that stood idle longest; 24 more devices: --format json lists all.",)
