"""What an explanation says, in the words, numbers and order that every view shares.

Knows an Explanation and its readers; knows neither terminals nor HTML, and no method.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor

import numpy as np

from slalom.document import FloatArray
from slalom.errors import UnknownNameError
from slalom.explanation import Explanation
from slalom.surrogates.slalom.model import Anchor

SAYS = {  # in the order in which views offer them
    "value": "what the unit says on its own",
    "importance": "how strongly it outweighs the others",
    "shapley": "its fair share of the whole prediction",
    "removal": "how far the score falls when it is removed",
    "gradient": "how far the score falls when it is faded out a little",
    "linearised": "value times the weight of the importance",
    "score": "the method's one score",
}
COLOURS_FIRST = ("shapley", "removal", "score")  # the first there is colours the text
LOG_ODDS = {"value", "gradient", "removal", "shapley"}
FAINT = 0.1  # log-odds; a text whose strongest word weighs less is not painted in full colour
STEERING = {
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
}  # directions, lines


@dataclass(frozen=True)
class Segment:
    """A piece of the text as shown; `unit` is None between units."""

    text: str
    unit: int | None


@dataclass(frozen=True)
class Row:
    """Units that share their scores, as one line of a table."""

    unit: int  # the first of them stands for all
    label: str
    times: int


def for_class(explanation: Explanation, index: int) -> Explanation:
    """One class of an explanation of all classes; any other comes back as it is."""
    if explanation.target_index is not None:
        return explanation
    scores, errors = (
        {name: part[:, index] if part.ndim == 2 else part for name, part in parts.items()}
        for parts in (explanation.scores, explanation.errors)
    )
    anchor = explanation.anchor
    if anchor is not None and isinstance(anchor.value, tuple):
        anchor = Anchor(anchor.value[index], anchor.importance)
    return replace(explanation, scores=scores, errors=errors, anchor=anchor)


def shown_class(explanation: Explanation) -> int:
    """The class a view of one class shows: the target, else the predicted one."""
    chosen = explanation.target_index
    return int(np.argmax(explanation.logits)) if chosen is None else chosen


def colouring(explanation: Explanation, wanted: Sequence[str] = ()) -> str:
    """The score that colours the text and orders the table."""
    if wanted:
        return wanted[0]
    if explanation.primary_score in explanation.scores:
        return str(explanation.primary_score)
    return next(
        (n for n in COLOURS_FIRST if n in explanation.scores), next(iter(explanation.scores))
    )


def checked_names(explanation: Explanation, wanted: Sequence[str]) -> tuple[str, ...]:
    """The names as given, each once; SlalomError for one this explanation does not have."""
    for name in wanted:
        if name not in explanation.scores:
            raise UnknownNameError(
                f"score of method {explanation.method!r}", name, explanation.scores
            )
    return tuple(dict.fromkeys(wanted))


def names(explanation: Explanation) -> list[str]:
    """The scores an explanation has, in the order of SAYS."""
    known = [name for name in SAYS if name in explanation.scores]
    return [*known, *(name for name in explanation.scores if name not in SAYS)]


def strengths(explanation: Explanation, name: str) -> FloatArray:
    """(n_units,) in −1..1: the sign of a score and how strong it is beside the strongest one.

    Only what stands clear of the standard error counts: a large score that may as well be
    zero must not shine.
    """
    if name == "importance":
        shares = weight_shares(explanation)
        return np.asarray(shares / max(float(shares.max(initial=0.0)), 1e-300))
    score = np.where(explanation.identified, explanation.scores[name], 0.0)
    error = explanation.errors.get(name, np.zeros_like(score))
    sure = np.sign(score) * np.maximum(np.abs(score) - error, 0.0)
    floor = FAINT if name in LOG_ODDS else 0.0
    return np.asarray(sure / max(float(np.abs(sure).max(initial=0.0)), floor, 1e-300))


def takes_sides(explanation: Explanation, name: str) -> bool:
    """False for what has strength but no sign: importances, attention, norms of gradients."""
    if name == "importance":
        return False
    return explanation.model is not None or bool((explanation.scores[name] < 0).any())


def weight_shares(explanation: Explanation) -> FloatArray:
    """(n_units,) share of the attention each unit takes from the others: exp(s) over its sum."""
    importance = explanation.scores["importance"]
    raw = np.where(
        explanation.identified, np.exp(importance - importance.max(initial=-np.inf)), 0.0
    )
    return np.asarray(raw / max(float(raw.sum()), 1e-300))


def rows(explanation: Explanation, by: str) -> list[Row]:
    """One row per feature, the strongest first, those without a score last."""
    first: dict[int, int] = {}
    times: dict[int, int] = {}
    for unit, feature in enumerate(explanation.features.tolist()):
        first.setdefault(feature, unit)
        times[feature] = times.get(feature, 0) + 1
    strength = np.abs(strengths(explanation, by))
    found = [Row(unit, label(explanation.units[unit]), times[f]) for f, unit in first.items()]
    return sorted(
        found, key=lambda row: (-strength[row.unit], not explanation.identified[row.unit])
    )


def segments(explanation: Explanation) -> list[list[Segment]]:
    """The text cut at its units, one list per side; nothing of the text is lost."""
    text = explanation.text
    sides = text if isinstance(text, tuple) else (text,)
    cut: list[list[Segment]] = [[] for _ in sides]
    cursors = [0] * len(sides)
    for unit, (*side, start, end) in enumerate(explanation.spans):
        at = side[0] if side else 0
        shown = sides[at][start:end]
        start += len(shown) - len(shown.lstrip() or shown)  # a unit may bring the gap before it
        if start > cursors[at]:
            cut[at].append(Segment(sides[at][cursors[at] : start], None))
        if end > max(start, cursors[at]):
            cut[at].append(Segment(sides[at][max(start, cursors[at]) : end], unit))
            cursors[at] = end
    for at, whole in enumerate(sides):
        if cursors[at] < len(whole):
            cut[at].append(Segment(whole[cursors[at] :], None))
    return cut


def probabilities(explanation: Explanation) -> FloatArray | None:
    """(n_classes,) or None for a single output, which may not be a probability at all."""
    if len(explanation.logits) < 2:
        return None
    if explanation.independent:
        return np.asarray(1.0 / (1.0 + np.exp(-explanation.logits.clip(-700, 700))))
    odds = np.exp(explanation.logits - explanation.logits.max())
    return np.asarray(odds / odds.sum())


def prediction(explanation: Explanation) -> str:
    """ "positive 97 %"."""
    shares = probabilities(explanation)
    if shares is None:
        return f"{explanation.labels[0]} {explanation.logits[0]:+.2f}"
    best = int(np.argmax(shares))
    return f"{explanation.labels[best]} {percent(float(shares[best]))}"


def explained(explanation: Explanation) -> tuple[str, str]:
    """What the scores measure, and the label they are about: "" for all of them."""
    if explanation.target_index is None:
        each = "all labels, each its own log-odds" if explanation.independent else ""
        return each or "all classes, centred logits", ""
    is_output = explanation.independent and len(explanation.labels) == 1
    return "output" if is_output else "log-odds", explanation.target


def percent(share: float) -> str:
    if share > 0.999:
        return "> 99.9 %"
    if share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.0f} %" if 0.01 <= share <= 0.99 else f"{100 * share:.1f} %"


def trust_sentence(explanation: Explanation) -> str:
    """What the trust figure means, in one honest sentence."""
    r2 = explanation.quality.r2
    if r2 is None and explanation.model is None:
        return "This method does not say how well it describes the classifier."
    if r2 is None:
        return "How well this describes the classifier is unknown."
    if r2 <= 0:
        return "This model describes the classifier no better than a constant: do not rely on it."
    share = f"{_hundredths(r2)} %"
    return f"This model describes {share} of how the classifier reacts when words are removed."


def r2(share: float | None) -> str:
    """Never rounded up: 1.00 is said of what is exact alone."""
    return "–" if share is None else f"{_hundredths(share) / 100:.2f}".replace("-", "−")


def facts(explanation: Explanation) -> list[str]:
    """The small print: method, fit and cost."""
    quality = explanation.quality
    fit = [] if quality.r2 is None else [f"R² {r2(quality.r2)}"]
    miss = [] if quality.rmse is None else [f"RMSE {quality.rmse:.2f}"]
    asked = f"{quality.n_queries} {'query' if quality.n_queries == 1 else 'queries'}"
    return [explanation.method, *fit, *miss, asked]


def _hundredths(r2: float) -> int:
    """Rounded down: 0.899 is not yet what is called high, and 0.999 not perfect."""
    return floor(100 * r2 + 1e-9)


def counted(n: int, what: str) -> str:
    """ "1 unit", "2 units"."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def digits(scores: FloatArray) -> int:
    """How many decimals a column of scores needs for its largest to be seen."""
    peak = float(np.abs(scores).max(initial=0.0))
    return 2 if peak >= 0.1 or peak == 0 else min(1 - floor(np.log10(peak)), 9)


def number(score: float, decimals: int = 2) -> str:
    """Three digits or so, always with its sign."""
    size = abs(score)
    if size >= 1e5:
        return f"{score:+.0e}"
    if size >= 9.995:
        decimals = 1 if size < 99.95 else 0
    shown = f"{score:+.{decimals}f}"
    return f" {shown[1:]}" if float(shown) == 0 else shown.replace("-", "−")


def margin(error: float, decimals: int = 2) -> str:
    return f"±{number(error, decimals)[1:]}"


def label(unit: str) -> str:
    """A unit on one line, so that blanks and control characters can be seen."""
    inner = unit.strip(" ")
    return "".join(map(_visible, inner or "␣" * len(unit)))


def visible(text: str) -> str:
    """The text with everything that could steer a terminal or a browser made visible."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(c if c == "\n" else _visible(c) for c in lines)


def _visible(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0x80 <= code < 0xA0:
        return f"\\x{code:02x}"
    if code in STEERING or 0xD800 <= code < 0xE000:
        return f"\\u{code:04x}"
    return character
