import slalom

classifier = slalom.load()  # the bundled sentiment model; or slalom.load("org/name-or-folder")
text = "A slow start and one awful song, but a wonderful film."
e = slalom.explain(classifier, text, target="positive")

for unit, change, error in zip(e.units, e.scores["removal"], e.errors["removal"], strict=True):
    print(f"{unit:10} {change:+.2f} ±{error:.2f}")  # log-odds lost without it; ±0.00: measured
print("trust:", e.quality.trust, "R²:", e.quality.r2)
print(e.counterfactual(classifier))
e.save("explanation.json")
