"""Texts as people and machines write them, for property tests."""

from hypothesis import strategies as st

PIECES = [
    "great", "film", "don't", "unbelievably", "A", "3.5", "…", "!", ",", '"', "-", "(", " ", "  ",
    "\n", "\t", "\n\n", "🎉", "👍🏽", "👨‍👩‍👧", "🇩🇪", "日本語", "ไทย", "مرحبا", "\u200f",
    "e\u0301", "naïve", "\x00", "\u00a0", "[SEP]", "<s>", "##s", "Ġ", "▁", "<0x0A>",
]  # fmt: skip
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join) | ANY
VISIBLE = TEXTS.filter(lambda text: bool(text.strip()))
