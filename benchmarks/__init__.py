"""Peers side by side, as ratios within one run."""
