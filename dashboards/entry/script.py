"""What Streamlit runs for every interaction."""

from traceview.dashboards.app import main

main()
