import slalom

classifier = slalom.load()  # the bundled sentiment model; or slalom.load("org/name-or-folder")
text = "A slow start and one awful song, but a wonderful film."
e = slalom.explain(classifier, text, target="positive")

for unit, value, error, importance in zip(
    e.units, e.scores["value"], e.errors["value"], e.scores["importance"], strict=True
):
    print(f"{unit:10} says {value:+5.1f} ± {error:4.1f}, loudness {importance:+4.1f}")
print("trust:", e.quality.trust, "R²:", e.quality.r2)
e.save("explanation.json")
