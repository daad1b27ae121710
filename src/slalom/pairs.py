"""Pairs of units that act together, as they are kept with an explanation and drawn by every view.

Knows what was found, not how: the search is in metrics/interactions.py.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from slalom.document import Span, visible
from slalom.errors import grouped, signed
from slalom.schema import Within, plain

NONE = "no two words act together"


@dataclass(frozen=True)
class Effects:
    """What two units add, with nothing else shown."""

    together: float
    apart: float


@dataclass(frozen=True)
class Pair:
    """Two units, and what they add together and apart; `str()` gives a line."""

    units: tuple[int, int]
    words: tuple[str, str]
    together: float  # what both add to the rest of the text
    apart: float  # what each adds to it without the other, summed
    alone: Effects | None  # the same with nothing else shown; None: it cannot be queried

    @property
    def size(self) -> float:
        """The second difference: what is due to their being there together."""
        return self.together - self.apart

    def __str__(self) -> str:
        first, second = (visible(word.strip()) for word in self.words)
        return f"“{first}” × “{second}”: {self.in_words}"

    @property
    def in_words(self) -> str:
        """ "+2.70 (together +1.90, separately −0.80)"."""
        size, together, apart = map(signed, (self.size, self.together, self.apart))
        return f"{size} (together {together}, separately {apart})"


@dataclass(frozen=True, repr=False)
class Interactions:
    """The pairs found, strongest first; `str()` gives a line for each, and one on how."""

    pairs: tuple[Pair, ...]
    n_queries: Annotated[int, Within(0)]  # asked to find and to measure them
    measured: bool  # False: what the model says, nothing was asked
    spans: Annotated[tuple[Span, ...], "units"]  # of all units of the text

    def check(self) -> None:
        for pair in self.pairs:
            if not 0 <= pair.units[0] < pair.units[1] < len(self.spans):
                raise ValueError(f"a pair of the units {pair.units}, of {len(self.spans)}")

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, place: int) -> Pair:
        return self.pairs[place]

    def __str__(self) -> str:
        return "\n".join([*(map(str, self.pairs) if self.pairs else [NONE]), f"({self.how})"])

    def __repr__(self) -> str:
        return f"Interactions:\n{self}"

    @property
    def how(self) -> str:
        """Where the numbers come from, in words."""
        if not self.measured:
            return "estimated by the fit; with the classifier they would be measured"
        return f"measured with {grouped(self.n_queries)} more queries"

    def phrases(self) -> tuple[Span, ...]:
        """All spans of the text, neighbours that act together made one: `units=` of explain."""
        neighbours = (pair.units for pair in self.pairs if pair.units[1] == pair.units[0] + 1)
        return joined(self.spans, {first for first, _ in neighbours})

    def to_json(self) -> dict[str, Any]:
        """What a view needs to draw arcs between words."""
        record = {"pairs": self.pairs, "n_queries": self.n_queries, "measured": self.measured}
        return {name: plain(part) for name, part in record.items()}


def joined(spans: Sequence[Span], one_with_next: Collection[int]) -> tuple[Span, ...]:
    """Units made one with the unit after them where this is wanted; never across two sides."""
    found: list[Span] = []
    for unit, span in enumerate(spans):
        if unit - 1 in one_with_next and found[-1][:-2] == span[:-2]:
            found[-1] = (*found[-1][:-1], span[-1])
        else:
            found.append(span)
    return tuple(found)
