"""An explanation in two lines of plain text, the strongest words first: what `repr` shows."""

import numpy as np

from slalom.explanation import Explanation
from slalom.views import reading
from slalom.views.numbers import counted, digits, number, r2

N_WORDS = 5
MAX_LENGTH = 40  # characters of a unit


def brief(explanation: Explanation) -> str:
    """What was predicted, how far to trust the explanation, and its strongest words."""
    quality = explanation.quality
    fit = "" if quality.r2 is None else f" (R² {r2(quality.r2)})"
    of_answer = explanation.said is not None
    facts = (
        *(() if of_answer else (f"predicted {reading.prediction(explanation)}",)),
        f"trust {quality.trust}{fit}",
        counted(len(explanation.units), "unit"),
        counted(quality.n_queries, "query"),
    )
    words = strongest_words(explanation) or "no word matters"
    what = "all classes" if explanation.target_index is None else f"“{explanation.target}”"
    what = reading.prediction(explanation) if of_answer else what
    lines = f"<Explanation of {what} by {explanation.method}: {' · '.join(facts)}\n {words}>"
    return reading.visible(lines)


def strongest_words(explanation: Explanation) -> str:
    """The units with the largest scores, signs included."""
    shown = reading.for_class(explanation, reading.shown_class(explanation))
    scores = shown.scores[reading.colouring(shown)]
    known = np.where(shown.identified, np.abs(scores), -1.0)
    decimals = digits(scores)
    words: dict[int, str] = {}
    for unit in np.argsort(-known, kind="stable"):
        feature = int(shown.features[unit])
        if feature not in words and known[unit] > 0 and len(words) < N_WORDS:
            score = number(float(scores[unit]), decimals)
            word = reading.short(reading.label(shown.units[unit]), MAX_LENGTH)
            words[feature] = f"{word} {score}"
    return " · ".join(words.values())
