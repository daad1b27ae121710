"""Training of the models and the experiments of the paper; reads the library's public API only."""
