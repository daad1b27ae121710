"""Explanations for people: in a terminal, as a self-contained HTML page."""
