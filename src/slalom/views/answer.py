"""An answer and its sources in words: nats, factors, sentences with the marks of their sources.

    without source 4 the answer is 900 times less likely        exp(nats)

Knows an Explanation of a language model's answer and its citations; draws nothing.
"""

from collections.abc import Sequence
from itertools import combinations
from math import exp

from slalom.errors import grouped
from slalom.explanation import Explanation
from slalom.language.citations import (
    Citation,
    Cited,
    citation_of,
    cite,
    lost_without,
    said_by,
    suffices,
    weighed,
)
from slalom.views import reading
from slalom.views.numbers import listed, number, r2_percent
from slalom.views.sentence import Part

ALIKE = 0.05  # nats; a smaller change is called none
MOST = 1e6  # a larger factor is not written out
N_NAMED, N_CITED = 3, 3
BY_SHARE = "Sources by their Shapley value in nats, and the answer without each one:"
LONGEST = 50  # characters of a source in a line


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
    return f"{grouped(round(times / digits) * digits)} times"


def source_name(explanation: Explanation, unit: int, length: int = LONGEST) -> str:
    """Its number with its title or beginning, or with both if several share the title."""
    names = said_by(explanation).names
    title, text = names[unit], " ".join(explanation.units[unit].split())
    name = title or text
    if title and names.count(title) > 1:  # sources of one document differ by their words
        name = f"{reading.short(title, length // 2)}: {text}"
    number = f"[{unit + 1}] "
    return number + reading.short(reading.label(name), length - len(number))


def answer_left(source: Cited) -> str:
    """ "2.6 times less likely, far less without [6] too": the answer without this source."""
    loss = likely(source.lost)
    if source.stand_ins:
        others = " and ".join(f"[{n + 1}]" for n in source.stand_ins)
        return f"{loss}, far less without {others} too"
    made_up = source.side > 0 and source.lost < ALIKE
    return f"{loss}: the others make up for it" if made_up else loss


def without_all(citation: Citation) -> str:
    """ "without it the answer is …", "without both it is …", "without all three it is …"."""
    n = len(citation.sources)
    all_of = {1: "it the answer", 2: "both it", 3: "all three it"}
    return f"without {all_of.get(n, 'all of them it')} is {likely(citation.lost)}"


def without_cited(citation: Citation) -> str:
    """ "without [3] this sentence is …", "without [3] and [5] this sentence is …"."""
    cited = listed([f"[{one.source + 1}]" for one in citation.sources])
    return f"without {cited} this sentence is {likely(citation.lost)}"


def without_any(explanation: Explanation) -> float:
    """The nats that the answer loses without any source."""
    (lost,) = lost_without(explanation, [range(len(explanation.units))])
    return lost


def verdict(explanation: Explanation) -> tuple[Part, ...]:
    """One sentence: what the answer rests on, and how likely it is without that."""
    citation = citation_of(explanation, N_NAMED)
    if not citation.sources:
        bare = f"without any of them it is {likely(without_any(explanation))}"
        return (Part(f"The answer rests on none of the sources: {bare}."),)
    names = [f"source {one.source + 1}" for one in citation.sources]
    parts = [Part("The answer rests on ")]
    for place, name in enumerate(names):
        joint = "" if not place else " and " if place == len(names) - 1 else ", "
        parts += [Part(joint), Part(name, "for")]
    end = f": {without_all(citation)}."
    if abs(citation.lost) < ALIKE:  # many say it: those not named make up for it
        lost = likely(without_any(explanation))
        end = f", or on others that say the same: without any source it is {lost}."
    for one in citation.either[:1]:
        rest = [max(lost_without(explanation, list(combinations(one, len(one) - 1))))]
        end += f" {suffices(one).capitalize()}: with only one of them it is {likely(rest[0])}."
    return (*parts, Part(end))


def trust(explanation: Explanation) -> list[str]:
    """What the trust figure means, the most important first."""
    quality, n_sources = explanation.quality, len(explanation.units)
    measured = int(explanation.is_measured("removal").sum())
    if quality.trust == "exact":
        return [
            "Every subset of the sources was queried: these numbers are the model’s own, "
            "not estimates."
        ]
    if quality.r2 is None:
        first = "How well this describes the model is unknown."
    elif quality.r2 <= 0:
        first = "This describes the model no better than a constant: do not rely on it."
    else:
        first = (
            f"The explanation accounts for {r2_percent(quality.r2)} of how the model reacts when "
            "sources are left out."
        )
    if not measured:
        return [first]
    some = "each source" if measured == n_sources else f"{measured} of {n_sources} sources"
    return [first, f"Measured, not estimated: the answer without {some}."]


def lines(explanation: Explanation, *, room: int = 100) -> list[str]:
    """For a terminal with `room` columns: the verdict, the cited answer, the sources, trust."""
    ranked, _ = weighed(explanation)
    shown = [one for one in ranked if one.side]
    others = [one.lost for one in ranked if not one.side]
    beside = [f"  {number(one.nats):>7}   {answer_left(one)}" for one in shown]
    longest = min(LONGEST, max(16, room - max(map(len, beside), default=0) - 2))
    names = [source_name(explanation, one.source, longest) for one in shown]
    width = max(map(len, names), default=0)
    table = [f"  {name:<{width}}{text}" for name, text in zip(names, beside, strict=True)]
    quality = explanation.quality
    found = [
        "".join(part.text for part in verdict(explanation)),
        "",
        *(str(citation) for citation in cite(explanation, N_CITED)),
        "",
        *([BY_SHARE, *table] if table else []),
        *_rest(others, listed=bool(shown)),
        f"Without any source the answer is {likely(without_any(explanation))}.",
        "",
        f"Trust: {quality.trust}. {' '.join(trust(explanation))}",
        *(f"Note: {note}" for note in reading.notes(explanation)),
        reading.cost(explanation),
    ]
    return [reading.visible(line) for line in found]


def _rest(lost: Sequence[float], *, listed: bool) -> list[str]:
    """One line about the sources that are not listed."""
    if not lost:
        return []
    most = max(lost, key=abs)
    if listed and len(lost) == 1:
        return [f"The other source matters less: without it the answer is {likely(most)}."]
    who = f"The other {len(lost)} matter less" if listed else "No source matters much"
    bound = likely(most) if abs(most) < ALIKE else f"at most {likely(most)}"
    return [f"{who}: without one of them the answer is {bound}."]
