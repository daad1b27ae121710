"""Classifiers that read plain text: functions and pipelines, and how queries become strings."""
