"""How numbers are written, the same in every view."""

from collections.abc import Sequence
from math import floor

import numpy as np

from slalom.document import FloatArray
from slalom.errors import counted as counted
from slalom.explanation import FAIR_TRUST, HIGH_TRUST
from slalom.scales import logistic

NEARLY_ALL = 0.9995  # of the variation; more digits would mean nothing to a reader
ROUNDING = 1e-7  # log-odds: what 32-bit rounding makes of a difference of 0


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


def digits(scores: FloatArray) -> int:
    """How many decimals a column of scores needs so that its largest is not shown as 0."""
    peak = float(np.abs(scores).max(initial=0.0))
    return 2 if peak >= 0.1 or peak < ROUNDING else 1 - floor(np.log10(peak))


def percent(share: float) -> str:
    if share > 0.999:
        return "> 99.9 %"
    if share < 0.001:
        return "< 0.1 %"
    decimals = 0 if 0.0095 <= share <= 0.9905 else 1  # 1 %, not 1.0 %
    return f"{100 * share:.{decimals}f} %"


def probability(log_odds: float) -> float:
    return float(logistic(np.asarray(log_odds)))


def r2(share: float | None) -> str:
    """Rounded to hundredths, or finer where rounding would lift it over a threshold."""
    if share is None:
        return "–"
    if NEARLY_ALL <= share < 1.0:
        return "> 0.999"
    return f"{share:.{_decimals(share)}f}".replace("-", "−")


def r2_percent(share: float) -> str:
    """The same as a percentage."""
    if NEARLY_ALL <= share < 1.0:
        return "more than 99.9 %"
    return f"{100 * share:.{_decimals(share) - 2}f} %"


def _decimals(share: float) -> int:
    """0.899 must not be shown as 0.90, which is called high, nor 0.996 as 1.00."""
    for decimals in (2, 3, 4):
        if not any(share < bar <= round(share, decimals) for bar in (FAIR_TRUST, HIGH_TRUST, 1.0)):
            return decimals
    return 5


def listed(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def ordinal(n: int) -> str:
    """ "1st", "2nd", "11th"."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{n}{'th' if n % 100 in (11, 12, 13) else ends.get(n % 10, 'th')}"
