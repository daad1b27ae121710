"""Models of the transformers library as classifiers: tokens, padding, devices, their insides."""
