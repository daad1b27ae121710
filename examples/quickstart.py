import slalom

classifier = slalom.load()  # the bundled sentiment model, or slalom.load("org/name-or-folder")
text = "A slow start and one awful song, but a wonderful film."
e = slalom.explain(classifier, text, target="positive")

for word, score in e.top(5):
    print(f"{word:10} {score:+.2f}")  # Shapley values, in log-odds
print(e["wonderful"]["removal"])  # how far the score falls without it: measured
print("trust:", e.quality.trust, "R²:", e.quality.r2)
e.save("page.html")  # or "explanation.json", which slalom.read opens again
