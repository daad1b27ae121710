"""Splits a text into words, sentences or the caller's spans, and groups tokens into units.

This part knows characters and token offsets, nothing of models. A unit is never blank: it includes
the whitespace before it, blank tokens too. Consecutive HTML tags are one unit, as is an entity: a
classifier may react to them, so they are scored like words, but nobody wants four scores for one
<br />.

In scripts without spaces between words, budoux finds the words if it is installed: Thai words,
Chinese words, Japanese phrases (a word with its particles). Without budoux, and for Lao, Khmer and
Burmese, for which it has no model, every character is a unit.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, pairwise
from numbers import Integral
from typing import Any, NamedTuple

from slalom.classifiers.base import UNIT_KINDS, Units
from slalom.document import Text
from slalom.errors import InputError, UnknownNameError

Cut = tuple[int, int]  # start and end of some characters

# Every character is mapped to the letter of its class, so that one pattern fits all scripts:
# s space, w letter, d digit, c letter of a script without spaces, m mark or invisible sign,
# j joins letters, p joins digits, z zero-width joiner, r half a flag, e emoji or symbol, o other;
# t where mark-up begins, u the rest of it.
WORDS = re.compile(
    "[mz]*(?:"
    "tu*"
    "|[wd][wdmz]*(?:(?:j(?=[wd])|(?<=d)p(?=d))[wd][wdmz]*)*"
    "|c[mz]*"
    "|rr[mz]*"
    "|em*(?:z+em*)*z*"
    "|[eropj][mz]*)"
    "|[mz]+"
)
TAG = (  # attributes have values, so that "a <b and c> d" is no tag
    r"<!--[^<>]*-->|<!?/?[A-Za-z][\w:.-]*"
    r"(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>]+))*\s*/?>"
)
MARKUP = re.compile(rf"(?:{TAG})(?:\s*(?:{TAG}))*|&(?:[A-Za-z]{{2,8}}\d{{0,2}}|#\w{{1,7}});")
JOINS_LETTERS = "'’-‐‑"
JOINS_DIGITS = ".,"
SENTENCE_ENDS = re.compile(
    r"""[.!?…]+["'”’»)\]]*(?=\s|</?[A-Za-z])|[。！？｡]+[”’」』）]*|\s*[\n\u2028\u2029]\s*""",
    re.VERBOSE,
)
ABBREVIATION = re.compile(r"\b(?:(?i:mr|mrs|ms|dr|prof|st|vs|e\.g|i\.e|cf)|[A-Z])\.$")
NOT_SPACE = re.compile(r"\S")
THAI = ((0x0E00, 0x0E7F),)
KANA = ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F))
HAN = ((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
OTHERS = ((0x0E80, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))  # Lao, Myanmar, Khmer
WORTH_A_HINT = 5  # characters


def _kind(character: str) -> str:
    code = ord(character)
    category = unicodedata.category(character)
    if character.isspace():
        return "s"
    if character == "\u200d":
        return "z"
    if category[0] == "M" or category == "Cf" or 0x1F3FB <= code <= 0x1F3FF:  # skin tones
        return "m"
    if category[0] in "LN" and _within(code, THAI + KANA + HAN + OTHERS):
        return "c"
    if category[0] == "N":
        return "d"
    if category[0] == "L" or character == "_":
        return "w"
    if character in JOINS_LETTERS:
        return "j"
    if character in JOINS_DIGITS:
        return "p"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "r"
    return "e" if category == "So" else "o"


class _Kinds(dict[int, str]):
    """Code point → the letter of its class, computed on first use; for `str.translate`."""

    def __missing__(self, code: int) -> str:
        return self.setdefault(code, _kind(chr(code)))


_kinds = _Kinds()


def word_cuts(text: str) -> list[Cut]:
    """Words, and every other visible character by itself; only whitespace is left out."""
    shape = _shape(text)
    cuts = [match.span() for match in WORDS.finditer(shape)]
    return joined_characters(text, cuts) if "c" in shape else cuts


def _shape(text: str) -> str:
    """The letter of its class for every character."""
    letters, parts, end = text.translate(_kinds), [], 0
    for match in MARKUP.finditer(text):
        parts += [letters[end : match.start()], "t", "u" * (len(match.group()) - 1)]
        end = match.end()
    return "".join([*parts, letters[end:]])


def sentence_cuts(text: str) -> list[Cut]:
    """Sentences end at . ! ? … before a space, at 。！？ and at line breaks."""
    borders = [0, *(match.end() for match in SENTENCE_ENDS.finditer(text) if _ends(text, match))]
    cuts = [stripped(text, start, end) for start, end in pairwise([*borders, len(text)])]
    return [(start, end) for start, end in cuts if start < end]


def _ends(text: str, match: re.Match[str]) -> bool:
    """A dot ends no sentence after an abbreviation or before a small letter."""
    if match.group()[0] != ".":
        return True
    follows = NOT_SPACE.search(text, match.end())
    if follows is not None and follows.group().islower():
        return False
    return not ABBREVIATION.search(text, max(0, match.start() - 8), match.start() + 1)


def stripped(text: str, start: int, end: int) -> Cut:
    """The same span without the whitespace at its ends."""
    inside = text[start:end]
    return start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())


def caller_cuts(sides: Sequence[str], spans: Sequence[Sequence[int]]) -> list[list[Cut]]:
    """The caller's spans, one list per side; an InputError if they are wrong."""
    expected = "(start, end)" if len(sides) == 1 else "(side, start, end)"
    cuts: list[list[Cut]] = [[] for _ in sides]
    for span in spans:
        numbers = tuple(span) if isinstance(span, Iterable) and not isinstance(span, str) else ()
        if len(numbers) != 1 + len(sides) or not all(isinstance(n, Integral) for n in numbers):
            raise InputError(f"the span {span!r} is not of the form {expected}")
        side, start, end = map(int, numbers if len(sides) == 2 else (0, *numbers))
        if not 0 <= side < len(sides):
            raise InputError(f"the span {span!r} names side {side}: a pair has sides 0 and 1")
        if not 0 <= start < end <= len(sides[side]):
            raise InputError(
                f"the span {span!r} is out of range: 0 ≤ start < end ≤ {len(sides[side])} is needed"
            )
        if cuts[side] and start < cuts[side][-1][1]:
            before = cuts[side][-1]
            wrong = "overlaps" if end > before[0] else "comes earlier in the text than"
            do = "no character can be in two units" if end > before[0] else "sort the spans"
            raise InputError(f"the span {span!r} {wrong} the one given before it, {before}: {do}")
        if not sides[side][start:end].strip():
            raise InputError(f"the span {span!r} holds only spaces: leave it out")
        cuts[side].append((start, end))
    if not any(cuts):
        raise InputError("no spans were given: at least one is needed")
    return cuts


def cuts_of(text: Text, units: Units) -> list[list[Cut]]:
    """Words, sentences or the caller's spans, one list per side."""
    sides = [text] if isinstance(text, str) else list(text)
    if units == "word":
        return [word_cuts(side) for side in sides]
    if units == "sentence":
        return [sentence_cuts(side) for side in sides]
    if units is None or isinstance(units, str):
        raise UnknownNameError("unit kind", units, UNIT_KINDS)
    if not isinstance(units, Iterable):
        kinds = ", ".join(UNIT_KINDS)
        raise InputError(f"units must be one of {kinds} or a list of spans, not {units!r}")
    return caller_cuts(sides, units)


class Run(NamedTuple):  # hundreds per text: a dataclass takes three times as long to create
    """Consecutive tokens that are shown or removed together, and the characters they stand for."""

    first: int
    last: int  # exclusive
    start: int
    end: int
    fixed: bool = False  # always shown


def token_runs(text: str, offsets: Sequence[Cut], first: int) -> list[Run]:
    """One run per token; tokens that share a character are one, blank ones join the next."""
    runs: list[Run] = []
    begin = first
    for position, (left, right) in enumerate(offsets, first):
        inside = text[left:right]
        if not inside or inside.isspace():
            continue
        is_stripped = len(inside.strip()) == len(inside)  # as most tokens are
        start, end = (left, right) if is_stripped else stripped(text, left, right)
        if runs and start < runs[-1].end:
            runs[-1] = runs[-1]._replace(last=position + 1, end=max(end, runs[-1].end))
        else:
            runs.append(Run(begin, position + 1, start, end))
        begin = position + 1
    if runs:  # blank tokens at the end of the text have no next one
        runs[-1] = runs[-1]._replace(last=first + len(offsets))
    return runs


def _touched(run: Run, cuts: Sequence[Cut]) -> tuple[int, int]:
    """The cuts that share a character with a run, as a range."""
    return bisect_right(cuts, run.start, key=lambda cut: cut[1]), bisect_left(
        cuts, run.end, key=lambda cut: cut[0]
    )


def grouped_runs(runs: Sequence[Run], cuts: Sequence[Cut]) -> list[Run]:
    """Runs grouped by word or sentence; a token that spans two of them joins the two."""
    groups: list[Run] = []
    reached = low = 0
    for run in runs:
        while cuts[low][1] <= run.start:  # both are in order: the cuts it shares characters with
            low += 1
        high = low + 1
        while high < len(cuts) and cuts[high][0] < run.end:
            high += 1
        start, end = min(run.start, cuts[low][0]), max(run.end, cuts[high - 1][1])
        if groups and low < reached:
            groups[-1] = groups[-1]._replace(last=run.last, end=max(end, groups[-1].end))
        else:
            groups.append(Run(run.first, run.last, start, end))
        reached = high
    return groups


def spanned_runs(text: str, runs: Sequence[Run], cuts: Sequence[Cut]) -> list[Run]:
    """Runs grouped by the caller's spans; tokens outside all spans are always shown."""
    groups: list[Run] = []
    owner = None
    for run in runs:
        low, high = _touched(run, cuts)
        if high - low > 1:
            raise InputError(
                f"the spans {cuts[low]} and {cuts[low + 1]} cut through one token, "
                f"{text[run.start : run.end]!r} at ({run.start}, {run.end}): move the border"
            )
        if low == high:
            groups.append(run._replace(fixed=True))
            owner = None
        elif owner == low:
            groups[-1] = groups[-1]._replace(last=run.last)
        else:
            groups.append(Run(run.first, run.last, *cuts[low]))
            owner = low
    held = {(group.start, group.end) for group in groups if not group.fixed}
    for cut in cuts:
        if cut not in held:
            raise InputError(f"the span {cut} ({text[slice(*cut)]!r}) holds no token: leave it out")
    return groups


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)


def joined_characters(text: str, cuts: list[Cut]) -> list[Cut]:
    """The same cuts, with characters that make one word in one cut."""
    languages = _languages(text)
    if not languages or not has_words():
        return cuts
    pieces = {language: _parser(language).parse(text) for language in languages}
    borders = {language: set(accumulate(map(len, words))) for language, words in pieces.items()}
    joined = cuts[:1]
    for start, end in cuts[1:]:
        language = _language(ord(text[start]), languages)
        last_start, last_end = joined[-1]
        goes_on = language is not None and last_end == start and start not in borders[language]
        if goes_on and _language(ord(text[last_start]), languages) == language:
            joined[-1] = (last_start, end)
        else:
            joined.append((start, end))
    return joined


def would_have_words(text: str) -> bool:
    """Whether budoux is missing and would find words in this text."""
    n_characters = sum(_within(ord(character), THAI + KANA + HAN) for character in text)
    return n_characters >= WORTH_A_HINT and not has_words()


def has_words() -> bool:
    try:
        import budoux  # noqa: F401
    except ImportError:
        return False
    return True


def _languages(text: str) -> set[str]:
    """The languages in a text; Han characters are Japanese if there is Kana, else Chinese."""
    codes = {ord(character) for character in text}
    found = {"thai"} if any(_within(code, THAI) for code in codes) else set()
    if any(_within(code, KANA) for code in codes):
        return found | {"japanese"}
    return found | ({"simplified_chinese"} if any(_within(code, HAN) for code in codes) else set())


def _language(code: int, languages: set[str]) -> str | None:
    if _within(code, THAI):
        return "thai"
    if not _within(code, KANA + HAN):
        return None
    return "japanese" if "japanese" in languages else "simplified_chinese"


@cache
def _parser(language: str) -> Any:
    import budoux

    return getattr(budoux, f"load_default_{language}_parser")()
