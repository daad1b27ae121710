"""The Softmax-Linked Additive Log-Odds Model: the model, its fitting, and what is read off it."""
