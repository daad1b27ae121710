"""A hard limit on requests and tokens, shared by the threads that spend them.

The cost of a request is not known before it is answered, so an upper bound is reserved first and
replaced by the actual cost afterwards. A thread that finds too little left waits until the others
have released what they did not need before it gives up.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from typing import Any

from slalom.errors import BudgetError, InputError


@dataclass
class Reservation:
    """An upper bound on the cost of one request; the holder sets `tokens` to the actual cost."""

    tokens: int


class Budget:
    """Counts every request sent, repeated ones included, and every token billed."""

    def __init__(self, max_requests: int | None, max_tokens: int | None) -> None:
        for name, given in (("max_requests", max_requests), ("max_tokens_total", max_tokens)):
            if given is not None and (not isinstance(given, int) or given < 1):
                raise InputError(f"{name} must be a whole number of at least 1, not {given!r}")
        self.max_requests = max_requests
        self.max_tokens = max_tokens
        self.n_requests = 0
        self.n_tokens = 0
        self._reserved = 0
        self._in_flight = 0
        self._changed = Condition()

    @contextmanager
    def reserve(self, most: int) -> Iterator[Reservation]:
        """One request that costs at most this many tokens, or a BudgetError before it is sent."""
        reservation = Reservation(most)
        with self._changed:
            while not self._fits(most):
                if not self._in_flight or self._requests_left() < 1:
                    raise BudgetError(self._spent())
                self._changed.wait()
            self.n_requests += 1
            self._reserved += most
            self._in_flight += 1
        try:
            yield reservation
        finally:
            with self._changed:
                self._reserved -= most
                self._in_flight -= 1
                self.n_tokens += reservation.tokens
                self._changed.notify_all()

    def _requests_left(self) -> float:
        return float("inf") if self.max_requests is None else self.max_requests - self.n_requests

    def _fits(self, most: int) -> bool:
        if self._requests_left() < 1:
            return False
        return self.max_tokens is None or self.n_tokens + self._reserved + most <= self.max_tokens

    def _spent(self) -> str:
        used = f"{self.n_requests} requests and {self.n_tokens} tokens were used"
        if self._requests_left() < 1:
            return f"the budget of {self.max_requests} requests is used up ({used})"
        return f"the budget of {self.max_tokens} tokens does not allow another request ({used})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_changed"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _changed=Condition(), _reserved=0, _in_flight=0)
