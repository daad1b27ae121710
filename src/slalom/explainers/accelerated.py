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

ENOUGH = 12  # documents that nobody waits for more of
SECONDS = 0.03  # that are waited at most

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
                if patient and sum(len(one.residuals) for one in self.waiting) < ENOUGH:
                    sleep(SECONDS)
                self._compute()
        return order.found

    def _compute(self) -> None:
        with self.lock:
            orders, self.waiting = self.waiting, []
        found = self.compute([one for order in orders for one in order.residuals])
        left = iter(found or ())
        for order in orders:
            order.found = None if found is None else [next(left) for _ in order.residuals]
            order.done = True


def combined_on(device: str | None) -> Combined | None:
    """The one of this device; None: there is no device."""
    return None if device is None else _on(device)


@cache
def _on(device: str) -> Combined:
    def compute(residuals: Sequence[Residuals]) -> list[Posterior] | None:
        from slalom.surrogates.slalom.posterior_on_device import posteriors_on

        try:
            return posteriors_on(device, residuals)
        except RuntimeError:  # torch's own: most likely the model leaves too little memory
            return None

    return Combined(compute)
