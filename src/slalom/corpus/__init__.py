"""A corpus explained: files in, Parquet out, on one machine or many, resumed where it stopped."""

from slalom.corpus.explain import explain_dataset as explain_dataset
