"""Fits and posteriors on a GPU, which takes about as long for ten documents as for one.

Posteriors are computed wherever the model's GPU is at hand, those of all threads that ask in one
batch: whoever finds it free computes for all who wait. Fits come from processes of their own only
(device_process.py), which have many of them at once: a single one is sooner done by a core.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Lock
from typing import Any, Generic, TypeVar

from slalom.classifiers.base import Classifier, accelerator
from slalom.surrogates.base import Fit, Observations, Surrogate
from slalom.surrogates.slalom.fit import Solved, Unsolved
from slalom.surrogates.slalom.on_device.posed import Found, Posed
from slalom.surrogates.slalom.posterior import Posterior, Residuals
from slalom.surrogates.slalom.problem import Solution, project
from slalom.surrogates.slalom.trials import ByLeaveOneOut, firm
from slalom.surrogates.threads import one_thread

Given = TypeVar("Given")
Result = TypeVar("Result")
Posteriors = Callable[[Sequence[Residuals]], list[Posterior] | None]  # None: not this time
Fits = Callable[[Sequence[Posed]], list[Found] | None]  # likewise


def posteriors_by(classifier: Classifier) -> Posteriors | None:
    """Its own way to compute them, or its GPU's; None: there is neither."""
    own: Posteriors | None = getattr(classifier, "posteriors", None)
    return own or posteriors_together(accelerator(classifier))


def fits_by(classifier: Classifier) -> Fits | None:
    """Its own way to compute them; None: it has none."""
    own: Fits | None = getattr(classifier, "fits", None)
    return own


def fit_with(
    fits: Fits, surrogate: Surrogate, observed: Sequence[Observations]
) -> list[Fit] | None:
    """Fits of SLALOM whose first half is computed elsewhere; None: it is another surrogate."""
    if not isinstance(getattr(surrogate, "solver", None), ByLeaveOneOut):
        return None
    able: Any = surrogate
    with one_thread():
        solved = _solved([able.unsolved(one) for one in observed], fits)
        return [able.fit(*pair) for pair in zip(observed, solved, strict=True)]


def _solved(unsolved: Sequence[list[Unsolved]], fits: Fits) -> list[Solved | None]:
    """Those that a device solves; None: not this one, or not this time."""
    posed = {at: Posed.of(one.problem) for at, (one, *others) in enumerate(unsolved) if not others}
    able = {at: one for at, one in posed.items() if one is not None}
    found = dict(zip(able, fits(list(able.values())) or (), strict=False)) if able else {}
    return [
        _completed(one[0], found[at]) if at in found else None for at, one in enumerate(unsolved)
    ]


def _completed(unsolved: Unsolved, found: Found) -> Solved:
    """With what a device left out, because a core has it at once."""
    problem = unsolved.problem
    ridges = firm(problem, found.strengths.ridges(problem), found.error)
    state = project(problem, found.importances, ridges)
    return unsolved.solved(Solution(state, ridges), found.without[:, :, None])


@dataclass(eq=False)
class Order(Generic[Given, Result]):
    """What one thread wants."""

    given: Sequence[Given]
    found: list[Result] | None = None
    done: bool = False


@dataclass(eq=False)
class Combined(Generic[Given, Result]):
    """Calls of several threads, computed together."""

    compute: Callable[[Sequence[Given]], list[Result] | None]
    waiting: list[Order[Given, Result]] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    turn: Lock = field(default_factory=Lock)

    def __call__(self, given: Sequence[Given]) -> list[Result] | None:
        order: Order[Given, Result] = Order(given)
        with self.lock:
            self.waiting.append(order)
        with self.turn:
            if not order.done:
                self._compute()
        return order.found

    def _compute(self) -> None:
        with self.lock:
            orders, self.waiting = self.waiting, []
        found = self.compute([one for order in orders for one in order.given])
        left = iter(found or ())
        for order in orders:
            order.found = None if found is None else [next(left) for _ in order.given]
            order.done = True


@cache
def posteriors_together(device: str | None) -> Combined[Residuals, Posterior] | None:
    """The one of this device; None: there is no device."""
    return None if device is None else Combined(partial(posteriors_or_none, device))


def posteriors_or_none(device: str, residuals: Sequence[Residuals]) -> list[Posterior] | None:
    from slalom.surrogates.slalom.on_device.posteriors import posteriors_on

    with suppress(RuntimeError):  # torch's own: most likely the model leaves too little memory
        return posteriors_on(device, residuals)
    return None
