"""Words of scripts that put no spaces between them, found by budoux where it is installed.

Thai words, Chinese words, Japanese phrases (a word with its particles); without budoux, and for
Lao, Khmer and Burmese, for which it has no model, every character is a unit of its own.
"""

from functools import cache
from itertools import accumulate
from typing import Any

Cut = tuple[int, int]  # start and end of some characters

THAI = ((0x0E00, 0x0E7F),)
KANA = ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F))
HAN = ((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
OTHERS = ((0x0E80, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))  # Lao, Myanmar, Khmer
WORTH_A_HINT = 5  # characters


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)


def is_spaceless(code: int) -> bool:
    """Whether the character of this code belongs to a script without spaces."""
    return _within(code, THAI + KANA + HAN + OTHERS)


def joined_characters(text: str, cuts: list[Cut]) -> list[Cut]:
    """The same cuts, with characters that make one word in one cut."""
    languages = _languages(text)
    if not languages or not has_words():
        return cuts
    borders = {language: _borders(language, text) for language in languages}
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
    """Han characters are Japanese where there is a Kana beside them."""
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


def _borders(language: str, text: str) -> set[int]:
    return set(accumulate(map(len, _parser(language).parse(text))))


@cache
def _parser(language: str) -> Any:
    import budoux

    return getattr(budoux, f"load_default_{language}_parser")()
