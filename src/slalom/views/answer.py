"""An answer and its sources in words: nats, factors, sentences with the marks of their sources.

    without source 4 the answer is 900 times less likely        exp(nats)

Knows an Explanation of a language model's answer and its citations; draws nothing.
"""

from collections.abc import Sequence
from math import exp

import numpy as np

from slalom.explanation import Explanation
from slalom.language.citations import citation_of, cite, shares_of, suffices
from slalom.views import reading
from slalom.views.numbers import number, r2_percent
from slalom.views.sentence import Part

ALIKE = 0.05  # nats either way; nobody would notice
MOST = 1e6  # a larger factor is not told in digits
N_NAMED, N_CITED = 3, 3
LONGEST = 50  # characters of a source in a line
BESIDE = 62  # columns beside it, up to "without it over a million times less likely"


def likely(nats: float) -> str:
    """ "as likely", "3.4 times less likely", "twice as likely": the answer after losing nats."""
    if abs(nats) < ALIKE:
        return "as likely"
    how = "less likely" if nats > 0 else "likelier"
    return f"{factor(nats)} {how}"


def factor(nats: float) -> str:
    """ "1.4 times", "900 times", "12 000 times", "over a million times"."""
    times = exp(min(abs(nats), 50.0))
    if times >= MOST:
        return "over a million times"
    if times < 9.95:
        return f"{times:.1f} times"
    digits = 10 ** max(0, len(str(int(times))) - 2)
    return f"{round(times / digits) * digits:,} times".replace(",", "\u202f")


def source_name(explanation: Explanation, unit: int, length: int = LONGEST) -> str:
    """Its number and title, or its beginning."""
    said = explanation.said
    name = said.names[unit] if said is not None and said.names[unit] else explanation.units[unit]
    return f"[{unit + 1}] {reading.short(reading.label(' '.join(name.split())), length)}"


def lost_without(explanation: Explanation, sets: Sequence[Sequence[int]]) -> list[float]:
    """Nats that the answer loses without each set of sources, measured where it was asked."""
    kept = np.ones((1 + len(sets), len(explanation.units)))
    for row, removed in enumerate(sets, start=1):
        kept[row, list(removed)] = 0.0
    scores = explanation.predict(kept)
    return [float(lost) for lost in scores[0] - scores[1:]]


def verdict(explanation: Explanation) -> tuple[Part, ...]:
    """One sentence: what the answer rests on, and what it would be without."""
    citation = citation_of(explanation, N_NAMED)
    if not citation.sources:
        return (Part("The answer rests on none of the sources: the model would say it anyway."),)
    names = [f"source {one.source + 1}" for one in citation.sources[:N_NAMED]]
    parts = [Part("The answer rests on ")]
    for place, name in enumerate(names):
        joint = "" if not place else " and " if place == len(names) - 1 else ", "
        parts += [Part(joint), Part(name, "for")]
    if citation.either:
        copies = citation.either[0]
        one = max(lost_without(explanation, [[unit] for unit in copies]))
        every = lost_without(explanation, [copies])[0]
        told = (
            f": {suffices(copies)}. Without one of them it is {likely(one)}, "
            f"without {'both' if len(copies) == 2 else 'all of them'} {likely(every)}."
        )
    else:
        top = citation.sources[0].source
        told = f": without source {top + 1} it is {likely(lost_without(explanation, [[top]])[0])}."
    return (*parts, Part(told))


def trust(explanation: Explanation) -> list[str]:
    """What the trust figure means, the most important first."""
    quality, n_sources = explanation.quality, len(explanation.units)
    measured = int(explanation.is_measured("removal").sum())
    if quality.trust == "exact":
        return ["Every set of sources was asked: these numbers are the model’s own, no estimates."]
    if quality.r2 is None:
        first = "How well this describes the model is unknown."
    elif quality.r2 <= 0:
        first = "This describes the model no better than a constant: do not rely on it."
    else:
        first = (
            f"It accounts for {r2_percent(quality.r2)} of how likely the answer is "
            "as sources are left out."
        )
    if not measured:
        return [first]
    some = "each source" if measured == n_sources else f"{measured} of {n_sources} sources"
    return [first, f"Measured, not estimated: the answer without {some}."]


def lines(explanation: Explanation, *, room: int = 100) -> list[str]:
    """For a terminal of that many columns: the verdict, the cited answer, the sources, trust."""
    longest = min(LONGEST, max(16, room - BESIDE))
    shares = shares_of(explanation)
    lost = lost_without(explanation, [[unit] for unit in range(len(shares))])
    order = np.argsort(-np.abs(shares.round(1)), kind="stable").tolist()
    names = [source_name(explanation, unit, longest) for unit in order]
    width = max(map(len, names))
    table = [
        f"  {name:<{width}}  {number(float(shares[unit])):>7}   without it {likely(lost[unit])}"
        for name, unit in zip(names, order, strict=True)
    ]
    quality = explanation.quality
    return [
        "".join(part.text for part in verdict(explanation)),
        "",
        *(str(citation) for citation in cite(explanation, N_CITED)),
        "",
        "Sources, with their fair share in nats:",
        *table,
        "",
        f"Trust: {quality.trust}. {' '.join(trust(explanation))}",
        *(f"Note: {note}" for note in reading.notes(explanation)),
        reading.cost(explanation),
    ]
