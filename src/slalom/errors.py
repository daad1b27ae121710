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

A message says what was given, what was expected and what to do. Where it names a parameter it
holds a Setting, so that a command line or a page can name it in its own words.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True)
class Setting:
    """A parameter inside a message, alone or with a value to give it."""

    name: str
    value: str | int | None = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        return (
            f'{self.name}="{self.value}"'
            if isinstance(self.value, str)
            else (f"{self.name}={self.value}")
        )


class SlalomError(Exception):
    """The base of every error raised on purpose; its arguments are the parts of its message."""

    def __str__(self) -> str:
        return self.message(str)

    @property
    def parameter(self) -> str | None:
        """The name of the parameter that the message speaks of first, where it names one."""
        return next((part.name for part in self.args if isinstance(part, Setting)), None)

    def message(self, write: Callable[[Setting], str]) -> str:
        """The message, with every parameter written this way; any file can hold it."""
        message = "".join(
            write(part) if isinstance(part, Setting) else str(part) for part in self.args
        )
        return message.encode("utf-8", "backslashreplace").decode()  # halves of characters


class InputError(SlalomError):
    """The text, units, target or budget cannot be used as given."""


class UnknownNameError(SlalomError):
    """A name that does not exist; the message lists the names that do."""

    def __init__(self, what: str, given: object, known: Iterable[str], of: str = "") -> None:
        names, whose = list(known), f" of {of}" if of else ""
        near = nearest(str(given), names)
        hint = "expected" if near is None else f"did you mean {near!r}? Expected"
        choice = ("one of " if len(names) > 1 else "") + ", ".join(names)
        super().__init__(f"unknown {what} {given!r}{whose}: {hint} {choice}")
        self._arguments = (what, given, names, of)

    @property
    def parameter(self) -> str | None:
        return str(self._arguments[0])

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._arguments  # errors cross process borders on a cluster


def grouped(n: int) -> str:
    """ "1804", "12 345": from five digits on in groups of three, with narrow spaces."""
    return f"{n:,}".replace(",", "\u202f") if abs(n) >= 10_000 else str(n)


def signed(score: float) -> str:
    """ "+1.20", "−0.35"; no zero is negative."""
    return f"{round(score, 2) + 0.0:+.2f}".replace("-", "−")


def counted(n: int, what: str) -> str:
    """ "1 query", "2 queries", "1 unit", "12 345 units"."""
    if n == 1:
        return f"1 {what}"
    return f"{grouped(n)} {what[:-1]}ies" if what.endswith("ry") else f"{grouped(n)} {what}s"


def nearest(given: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant: written otherwise, part of one, or mistyped."""
    plain = {"".join(filter(str.isalnum, name.casefold())): name for name in reversed([*names])}
    typed = "".join(filter(str.isalnum, given.casefold()))
    if typed in plain:
        return plain[typed]
    holds = [name for name in reversed(plain) if typed in name] if len(typed) >= 3 else []
    found = sorted(holds, key=len)[:1] or get_close_matches(typed, list(plain), n=1)
    return plain[found[0]] if found else None


class BudgetError(SlalomError):
    """A limit on queries, requests or tokens leaves too little to go on."""


class ClassifierError(SlalomError):
    """The classifier raised, or returned something that is not a score."""


class NoModelError(SlalomError):
    """The scores come without a model of subsets, and one was asked for."""


class FileError(SlalomError):
    """An explanation, model or data file that cannot be read or written."""


class DamageError(SlalomError):
    """What does not fit a schema: "quality.seconds: expected a number, not 'x'"."""


class MissingExtraError(SlalomError):
    """An optional dependency is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"this needs {module}: install it with  pip install 'slalom-xai[{extra}]'")
        self._arguments = (module, extra)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._arguments


@contextmanager
def needing(module: str | None, extra: str) -> Iterator[None]:
    """Around the imports of an extra: where it is not installed, the command that installs it."""
    try:
        yield
    except ImportError as problem:
        raise MissingExtraError(module or problem.name or extra, extra) from problem


class SlalomWarning(UserWarning):
    """The result stands, but look at it twice."""
