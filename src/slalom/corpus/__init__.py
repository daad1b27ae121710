"""Explain a corpus: from files to Parquet, on one machine or many; interrupted runs resume."""

from slalom.corpus.explain import explain_dataset as explain_dataset
