"""The colours of every view: one pair, told apart by colour-blind readers.

Blue speaks for the target, orange against it; violet is for what has strength but no side.
Each comes in three strengths for a terminal; a page mixes its own from the middle one.
"""

FOR = ("#3b8eea", "#2c7cde", "#0b4f9e")  # faint, clear, strong
AGAINST = ("#d9822b", "#f08c1e", "#ff9d2e")
UNSIGNED = ("#9a86d8", "#7c5ccc", "#5b3fb0")


def channels(colour: str) -> str:
    """ "#2c7cde" as a style sheet wants it: "44 124 222"."""
    return " ".join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))
