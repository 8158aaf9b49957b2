"""Renderers: one result in, one text out. Nothing is computed here."""
