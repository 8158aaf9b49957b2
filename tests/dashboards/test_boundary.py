"""What goes wrong on a page is told in a line; what Streamlit raises to end a script goes on its way."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def told(app):
    shown = AppTest.from_function(app, default_timeout=300).run()
    assert not shown.exception
    return [one.value for one in shown.text]


def test_a_mistake_in_the_use_of_streamlit_is_a_line_and_no_red_box():
    def app():
        import streamlit as st

        from traceview.dashboards import boundary

        boundary.guarded(lambda: st.columns(-1))

    (line,) = told(app)
    assert line.startswith("defect in traceview (Streamlit")
    assert line.endswith("`traceview report TRACE --debug`.")


def test_a_panic_of_a_library_is_a_line():
    def app():
        from polars.exceptions import PanicException

        from traceview.dashboards import boundary

        def page():
            raise PanicException("index out of bounds\nand more")

        boundary.guarded(page)

    (line,) = told(app)
    assert line.startswith("defect in traceview (PanicException: index out of bounds); ")


def test_stop_and_rerun_go_on_their_way():
    def app():
        import streamlit as st

        from traceview.dashboards import boundary

        def page():
            if "again" not in st.session_state:
                st.session_state["again"] = True
                st.rerun()
            st.text("second run")
            st.stop()

        boundary.guarded(page)
        st.text("not reached")

    assert told(app) == ["second run"]
