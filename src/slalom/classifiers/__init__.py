"""Classifiers: tokens, special tokens, prompts, devices and batches."""
