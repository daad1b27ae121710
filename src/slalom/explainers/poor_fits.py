"""How many explanations of a call are not to be trusted, and the one warning that says so.

Counts alone are kept: the explanations themselves may be the caller's, and gone.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from slalom.errors import SlalomWarning
from slalom.explainers.case import UNREAD
from slalom.explanation import FAIR_TRUST, Explanation, Quality


@dataclass
class PoorFits:
    """A poor fit must not pass for an explanation."""

    n_explanations: int = 0
    n_unread: int = 0  # texts unknown to the tokenizer
    n_poor: int = 0  # others whose trust is low
    lowest_r2: float = 1.0  # of these

    def add(self, results: Iterable[object]) -> None:
        """What is no explanation does not count."""
        for result in results:
            if isinstance(result, Explanation):
                self.n_explanations += 1
                if result.quality.trust == "low":
                    self._add_low(result.quality)

    def _add_low(self, quality: Quality) -> None:
        if any(note.endswith(UNREAD) for note in quality.notes):
            self.n_unread += 1
        elif quality.r2 is not None:
            self.n_poor += 1
            self.lowest_r2 = min(self.lowest_r2, quality.r2)

    def warn(self) -> None:
        """At most once per cause, on the line that called the caller."""
        for message in (self._unread(), self._poor()):
            if message:
                warnings.warn(message, SlalomWarning, stacklevel=3)

    def _unread(self) -> str:
        if not self.n_unread:
            return ""
        what = (
            "most of the text is unknown to the tokenizer: the classifier cannot have read it"
            if self.n_explanations == 1
            else f"texts mostly unknown to the tokenizer: {self.n_unread} of "
            f"{self.n_explanations}; the classifier cannot have read them"
        )
        return f"{what}, whatever the fit says"

    def _poor(self) -> str:
        if not self.n_poor:
            return ""
        is_poor = self.lowest_r2 < FAIR_TRUST
        how = (
            "poorly"
            if is_poor
            else "perhaps less well than R² suggests, as it rests on few queries"
        )
        r2 = f"held-out R² {self.lowest_r2:.2f}"
        what = (
            f"the explanation describes the classifier {how} ({r2}): treat it"
            if self.n_explanations == 1
            else f"{self.n_poor} of {self.n_explanations} explanations describe the classifier "
            f"{how} (lowest {r2}): treat them"
        )
        return f"{what} with caution; more queries or another method may help"
