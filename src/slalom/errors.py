"""Every error and warning raised on purpose.

    SlalomError
    ├── InputError          the text, units, target or budget cannot be used as given
    ├── UnknownNameError    a method, label or unit kind that does not exist; lists those that do
    ├── BudgetError         a limit on queries, requests or tokens leaves too little to go on
    ├── ClassifierError     the classifier raised, or returned something that is not a score
    ├── NoModelError        the scores come without a model of subsets, and one was asked for
    ├── FileError           an explanation, model or data file that cannot be read or written
    └── MissingExtraError   an optional dependency is not installed; names its install command

    SlalomWarning           the result stands, but look at it twice (a poor fit, for example)

A message says what was given, what was expected and what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class SlalomError(Exception):
    """The base of every error raised on purpose."""


class InputError(SlalomError):
    """The text, units, target or budget cannot be used as given."""


class UnknownNameError(SlalomError):
    """A name that does not exist; the message lists the names that do."""

    def __init__(self, what: str, given: object, known: Iterable[str]) -> None:
        names = list(known)
        near = get_close_matches(str(given), names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        super().__init__(f"unknown {what} {given!r}: expected one of {', '.join(names)}{hint}")
        self._arguments = (what, given, names)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._arguments  # errors cross process borders on a cluster


class BudgetError(SlalomError):
    """A limit on queries, requests or tokens leaves too little to go on."""


class ClassifierError(SlalomError):
    """The classifier raised, or returned something that is not a score."""


class NoModelError(SlalomError):
    """The scores come without a model of subsets, and one was asked for."""


class FileError(SlalomError):
    """An explanation, model or data file that cannot be read or written."""


class MissingExtraError(SlalomError):
    """An optional dependency is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"this needs {module}: install it with  pip install 'slalom-xai[{extra}]'")
        self._arguments = (module, extra)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._arguments


class SlalomWarning(UserWarning):
    """The result stands, but look at it twice."""
