"""Posteriors on the GPU that a classifier runs on: those of all threads that ask, in one batch.

A GPU takes about as long for ten documents as for one, and so does the processor that tells it what
to do: whoever finds it free computes for all who wait, and may wait for more of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from time import sleep

from slalom.classifiers.base import Classifier, accelerator
from slalom.surrogates.slalom.posterior import Posterior, Residuals

ENOUGH_DOCUMENTS = 12  # with so many nobody waits for more
PATIENCE = 0.03  # seconds, with fewer

Posteriors = Callable[[Sequence[Residuals]], list[Posterior] | None]  # None: not this time


def posteriors_by(classifier: Classifier) -> Posteriors | None:
    """Its own way to compute them, or its GPU's; None: there is neither."""
    own: Posteriors | None = getattr(classifier, "posteriors", None)
    return own or combined_on(accelerator(classifier))


@dataclass(eq=False)
class Order:
    """What one thread wants."""

    residuals: Sequence[Residuals]
    found: list[Posterior] | None = None
    done: bool = False


@dataclass(eq=False)
class Combined:
    """Calls of several threads, computed together."""

    compute: Posteriors
    waiting: list[Order] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    turn: Lock = field(default_factory=Lock)

    def __call__(
        self, residuals: Sequence[Residuals], *, patient: bool = False
    ) -> list[Posterior] | None:
        """`patient`: others are likely to come soon."""
        order = Order(residuals)
        with self.lock:
            self.waiting.append(order)
        with self.turn:
            if not order.done:
                if patient and self._n_documents() < ENOUGH_DOCUMENTS:
                    sleep(PATIENCE)
                self._compute()
        return order.found

    def _n_documents(self) -> int:
        with self.lock:
            return sum(len(order.residuals) for order in self.waiting)

    def _compute(self) -> None:
        with self.lock:
            orders, self.waiting = self.waiting, []
        found = self.compute([one for order in orders for one in order.residuals])
        left = iter(found or ())
        for order in orders:
            order.found = None if found is None else [next(left) for _ in order.residuals]
            order.done = True


@cache
def combined_on(device: str | None) -> Combined | None:
    """The one of this device; None: there is no device."""
    if device is None:
        return None

    def compute(residuals: Sequence[Residuals]) -> list[Posterior] | None:
        from slalom.surrogates.slalom.posterior_on_device import posteriors_on

        try:
            return posteriors_on(device, residuals)
        except RuntimeError:  # torch's own: most likely the model leaves too little memory
            return None

    return Combined(compute)
