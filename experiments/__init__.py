"""The experiments of the paper: what is done with trained models; reads the public API only."""
