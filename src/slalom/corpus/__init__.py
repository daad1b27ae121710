"""A corpus explained: files in, Parquet out, on one machine or many, taken up where it stopped."""

from slalom.corpus.explain import explain_dataset as explain_dataset
