"""Fits and posteriors of many documents at once, in torch, on the device of a model."""
