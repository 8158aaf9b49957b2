"""What a team expects a trace to show: read from ``dispatch.toml``, judged against a dispatch table, written back."""
