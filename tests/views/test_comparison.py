"""Methods side by side on one page: nothing that came from outside becomes markup."""

import re
from dataclasses import replace

from explanations import made, with_one_score
from slalom.views import comparison

HOSTILE = "<img src=x onerror=alert(1)>"


def test_labels_names_notes_and_words_are_text() -> None:
    explanation = made(f"good {HOSTILE} film")
    labels = ("<b>no</b>", "<i>yes</i>")
    hostile = replace(
        explanation,
        labels=labels,
        target=labels[1],
        method="<u>mine</u>",
        classifier=f"model {HOSTILE}",
        quality=replace(explanation.quality, notes=(f"note {HOSTILE}",)),
        units=tuple(HOSTILE for _ in explanation.units),
    )
    source = comparison.page([explanation, hostile], {"<u>mine</u>": {"<s>error</s>": 0.5}})
    first = comparison.page([hostile], {})
    for page in (source, first):
        markup = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
        assert not re.findall(r"<(?:img|b|i|u|s)[ >]", markup)
    for told in ("&lt;i&gt;yes", "model &lt;img", "note &lt;img", "&lt;u&gt;mine", "&lt;img"):
        assert told in first
    assert "&lt;s&gt;error" in source
    assert first.count("&lt;i&gt;yes&lt;/i&gt;") == 4  # title, heading, scores and legend


def test_methods_head_their_rows() -> None:
    page = comparison.page([made(), replace(made(), method="lime")], {})
    assert re.findall(r'<th scope="row">(.*?)</th>', page) == ["slalom", "lime"]


def test_only_scores_in_log_odds_are_called_so() -> None:
    page = comparison.page([made(), with_one_score(made())], {})
    assert "scores: log-odds of “positive”, Shapley values where a method has them" in page
    assert page.count("scores: the method’s own scale, not log-odds") == 1
