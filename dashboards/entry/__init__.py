"""The script that Streamlit runs, in a folder of its own.

Streamlit puts the folder of its script on ``sys.path``, and takes a folder ``pages`` beside it for pages of its own.
Both would go wrong beside the modules of the app.
"""
