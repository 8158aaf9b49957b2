"""The app of ``traceview dashboard``: drop a trace, read the answer.

``views`` turn results into frames and chart specifications and know nothing of Streamlit; ``pages`` show them.
"""
