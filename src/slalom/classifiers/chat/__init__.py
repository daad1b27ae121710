"""Chat models behind an OpenAI-compatible API as classifiers: requests, replies, budgets."""
