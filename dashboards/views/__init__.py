"""What the pages show, as data: result in, frame, sentence or chart specification out; no Streamlit here."""
