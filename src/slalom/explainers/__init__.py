"""Methods: each turns documents and a classifier into explanations."""
