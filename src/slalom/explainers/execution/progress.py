"""Progress for the person who waits: how many queries are answered, of how many.

A bar is in a terminal on standard error, gone when the work is; in a notebook it is a cell's
output; elsewhere there is none.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from threading import Lock
from time import perf_counter
from typing import Any

Progress = Callable[[int, int], None]  # queries done, and in all; raise from it to stop


@dataclass(frozen=True)
class Wait:
    """What is waited for; `before` was done by an earlier run and has no rate."""

    doing: str
    what: str  # in the plural
    before: int = 0
    after: str = ""  # what is left to do when all are done
    begun: float = field(default_factory=perf_counter)

    def line(self, done: int, total: int) -> str:
        """ "120 of 300 queries · 45 per second · 0:04 left"."""
        parts = [f"{done} of {total} {self.what}"]
        seconds = perf_counter() - self.begun
        if done > self.before and seconds > 0:
            rate = (done - self.before) / seconds
            left = round((total - done) / rate)
            time = f"{left // 60}:{left % 60:02d} left" if done < total else self.after
            parts += [f"{rate:.3g} per second", *([time] if time else [])]
        return " · ".join(parts)


@contextmanager
def bar(total: int, wait: Wait) -> Iterator[Progress | None]:
    """A function to tell how far it is, or None where nobody watches."""
    display = _notebook_display()
    if display is not None:
        yield _in_notebook(display, wait)
    elif sys.stderr.isatty():
        with _in_terminal(total, wait) as show:
            yield show
    else:
        yield None


@contextmanager
def _in_terminal(total: int, wait: Wait) -> Iterator[Progress]:
    from rich import progress as rich
    from rich.console import Console

    columns = (wait.doing, rich.BarColumn(), rich.TextColumn("{task.description}"))
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        line = wait.line(wait.before, total)
        task = bars.add_task(line, total=total, completed=wait.before)
        yield lambda done, total: bars.update(
            task, completed=done, total=total, description=wait.line(done, total)
        )


def _in_notebook(
    display: Callable[..., Any], wait: Wait, *, seconds_between: float = 0.2
) -> Progress:
    from IPython.display import HTML

    handle: Any = None
    last = 0.0

    def show(done: int, total: int) -> None:
        nonlocal handle, last
        if done < total and perf_counter() - last < seconds_between:
            return
        last = perf_counter()
        drawn = f'<progress value="{done}" max="{total}"></progress>'
        html = HTML(f"<span>{escape(wait.doing)} {drawn} {escape(wait.line(done, total))}</span>")
        if handle is None:
            handle = display(html, display_id=True)
        else:
            handle.update(html)

    return show


def _notebook_display() -> Callable[..., Any] | None:
    """The function that shows things in the running notebook, if this is one."""
    interactive: Any = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display  # type: ignore[no-any-return]


@dataclass
class Meter:
    """Turns answered queries into progress; chunks at work at the same time add up."""

    progress: Progress
    total: int
    done: int = 0
    lock: Lock = field(default_factory=Lock)

    def chunk(self, n_planned: int) -> "ChunkMeter":
        return ChunkMeter(self, n_planned)

    def add(self, n_queries: int, unplanned: int) -> None:
        self.done += n_queries
        self.total += unplanned
        self.progress(self.done, self.total)


@dataclass
class ChunkMeter:
    """A chunk's share of the whole; where it needs more or fewer queries, the plan changes."""

    meter: Meter
    left: int

    def answered(self, n_queries: int) -> None:
        with self.meter.lock:
            more = max(0, n_queries - self.left)
            self.left -= n_queries - more
            self.meter.add(n_queries, more)

    def finish(self) -> None:
        with self.meter.lock:
            if self.left:
                self.meter.add(0, -self.left)
                self.left = 0
