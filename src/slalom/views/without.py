"""What if some words were not there: the surrogate's answer, in a sentence and as struck-out text.

No query is needed, so it works on a saved explanation too. The classifier's answer for the full
text is known; the surrogate predicts how far it moves. If the removal of a single word was
measured, that is the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from slalom.document import FloatArray, masks_without
from slalom.errors import InputError
from slalom.explanation import Explanation
from slalom.views import reading
from slalom.views.answer import likely, source_name
from slalom.views.numbers import listed, number, percent


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf:
    """The answer without some units; `str()` gives a sentence, notebooks add the text."""

    explanation: Explanation
    removed: tuple[int, ...]  # units
    score: FloatArray  # (1,) of the target, or (n_classes,), as the explanation's scores
    measured: bool  # False: the surrogate's estimate

    @property
    def sentence(self) -> str:
        """ "Without “awful”: positive 98 % (estimated); full text: 67 %."."""
        how = "measured" if self.measured else "estimated"
        if self.explanation.said is not None:
            sources = listed([f"“{source_name(self.explanation, unit)}”" for unit in self.removed])
            lost = float(reading.answer(self.explanation)[0] - self.score[0])
            return f"Without {sources} the answer is {likely(lost)} ({how})."
        shown = reading.shown_class(self.explanation)
        words = [f"“{reading.label(self.explanation.units[unit])}”" for unit in self.removed]
        label = reading.label(self.explanation.labels[shown])
        after = _prediction(self.explanation, self.score)
        before = _prediction(self.explanation, reading.answer(self.explanation))
        return f"Without {listed(words)}: {label} {after} ({how}); full text: {before}."

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        sides = [
            "".join(
                f"<del>{escape(piece.text)}</del>"
                if piece.unit in self.removed
                else escape(piece.text)
                for piece in side
            )
            for side in reading.segments(self.explanation)
        ]
        return f"<p>{escape(self.sentence)}</p>" + "".join(f"<p>{side}</p>" for side in sides)


def without(explanation: Explanation, which: Sequence[str | int]) -> WhatIf:
    """Leave out units: a word means every unit spelled like it, a number one unit."""
    removed = sorted({unit for one in which for unit in explanation.places(one)})
    if not removed:
        raise InputError("name the words to leave out, or their numbers: e.without('awful', 3)")
    answer = reading.answer(explanation)
    if len(removed) == 1 and explanation.is_measured("removal")[removed[0]]:
        falls = np.atleast_1d(explanation.scores["removal"][removed[0]])
        return WhatIf(explanation, tuple(removed), answer - falls, measured=True)
    left, whole = explanation.predict(masks_without([removed, []], len(explanation.units)))
    exact = explanation.quality.trust == "exact"
    return WhatIf(explanation, tuple(removed), answer + np.atleast_1d(left - whole), measured=exact)


def _prediction(explanation: Explanation, score: FloatArray) -> str:
    """The probability of the shown class, or the number of a single output."""
    share = reading.chance(explanation, score)
    return number(float(score[0])).strip() if share is None else percent(share)
