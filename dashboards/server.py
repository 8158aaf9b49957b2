"""The server process: imports what analyses first, then serves; as ``python -m traceview.dashboards.server run …``.

Streamlit imports on the threads of its sessions, and two browsers may come at once. See :mod:`.preload`.
"""

from __future__ import annotations

from traceview.dashboards.preload import preload


def main() -> None:
    """What ``streamlit`` on the command line does, with everything imported."""
    preload()
    from streamlit.web.cli import main as streamlit

    streamlit(prog_name="streamlit")


if __name__ == "__main__":
    main()
