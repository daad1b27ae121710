"""The --plot option: checks before the work whether the picture can be drawn."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from slalom.cli.typed import check_writable, complain
from slalom.errors import InputError, counted
from slalom.files import write_whole

if TYPE_CHECKING:
    from slalom.explanation import Explanation

Draw = Callable[["Explanation", Sequence[str]], None]


def picture_typed(name: str) -> Draw:
    """A function that draws bars of the first score into a .png, .svg or .pdf file."""
    kind = Path(name).suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise InputError(f"cannot draw {name}: give a file that ends in .png, .svg or .pdf")
    check_writable(name)

    def draw(explanation: "Explanation", scores: Sequence[str]) -> None:
        from slalom.views.plots import picture, plot_units

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figure = plot_units(explanation, scores[0] if scores else None)
            drawn = picture(figure, kind)
        write_whole(name, drawn)
        _say(name, caught)

    return draw


def _say(name: str, caught: "Sequence[warnings.WarningMessage]") -> None:
    """One sentence for all characters that no font has; other warnings as they are."""
    lacking = {str(one.message) for one in caught if str(one.message).startswith("Glyph ")}
    if lacking:
        signs = counted(len(lacking), "character")
        complain(f"matplotlib has no font for {signs} of the text: {name} shows boxes instead")
    for one in caught:
        if str(one.message) not in lacking:
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)
