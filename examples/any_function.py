"""Explain anything that turns texts into class probabilities: here a scikit-learn pipeline."""

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import slalom

texts = ["great plot", "great songs and a fine end", "awful plot", "an awful, tired end"]
pipeline = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, ["good"] * 2 + ["bad"] * 2)

explanation = slalom.explain(pipeline, "great songs but an awful end", target="good")
ranked = sorted(zip(explanation.scores["shapley"], explanation.units, strict=True))
print("most against:", ranked[0][1])
print("most for:    ", ranked[-1][1])
