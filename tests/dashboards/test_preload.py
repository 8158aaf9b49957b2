"""Nothing that analyses is left to import when threads begin, however many want it at once."""

from __future__ import annotations

import json
import subprocess
import sys

_MANY = """
import json, sys, threading
from traceview.dashboards.preload import preload

start, wrong = threading.Barrier(24), []

def one(at):
    start.wait()
    try:
        preload()
        # What is imported first differs from thread to thread.
        if at % 3 == 0:
            from traceview.launches import graph_replays
        elif at % 3 == 1:
            from traceview.rules.catalogue import RULES
        else:
            from traceview.compare import compare_sides
    except BaseException as error:
        wrong.append(repr(error))

threads = [threading.Thread(target=one, args=(at,)) for at in range(24)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(wrong))
"""

_NOTHING_LEFT = """
import json, sys
from traceview.dashboards.preload import preload

preload()
before = set(sys.modules)
from traceview import load
from traceview.compare import compare_sides, side
from traceview.gate import check
from traceview.report import report
for path in sys.argv[1:]:
    timeline = load(path)
    report(timeline)
    check(timeline)
    compare_sides(side(timeline), side(timeline))
print(json.dumps(sorted(name for name in set(sys.modules) - before if name.startswith("traceview"))))
"""


def _run(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_many_threads_at_once_get_whole_modules():
    assert _run(_MANY) == []


def test_an_analysis_imports_nothing_more(repository):
    samples = repository / "sample_traces"
    paths = [
        samples / "mixed-backends.cuda-authored.json",
        samples / "two-ranks.nsys-authored.sqlite",
        samples / "xprof" / "jax-tpu-unfused.xprof-authored.xplane.pb",
    ]
    assert _run(_NOTHING_LEFT, *map(str, paths)) == []


def test_the_server_imports_before_it_serves(monkeypatch):
    from streamlit.web import cli

    from traceview.dashboards import server

    order = []
    monkeypatch.setattr(server, "preload", lambda: order.append("import"))
    monkeypatch.setattr(cli, "main", lambda **_: order.append("serve"))
    server.main()
    assert order == ["import", "serve"]
