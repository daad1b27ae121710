"""What was typed about a picture: found out before the work whether it can be drawn."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from slalom.cli.typed import check_writable
from slalom.errors import InputError
from slalom.files import write_whole

if TYPE_CHECKING:
    from slalom.explanation import Explanation

Draw = Callable[["Explanation", Sequence[str]], None]


def picture_typed(name: str) -> Draw:
    """Draws bars of the first of the scores into a .png, .svg or .pdf file."""
    kind = Path(name).suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise InputError(f"cannot draw {name}: give a file that ends in .png, .svg or .pdf")
    check_writable(name)

    def draw(explanation: "Explanation", scores: Sequence[str]) -> None:
        from slalom.views.plots import picture, plot_units

        figure = plot_units(explanation, scores[0] if scores else None)
        write_whole(name, picture(figure, kind))

    return draw
