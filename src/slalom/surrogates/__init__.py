"""Models of a classifier: from counts of features to a score. They know no text."""
