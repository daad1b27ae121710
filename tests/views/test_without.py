"""What if some words were not there: measured where it was, estimated elsewhere, and said so."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from explanations import made, with_facts
from oracles import TEXT, slalom_oracle
from slalom.errors import InputError, UnknownNameError
from slalom.views.numbers import percent, probability


def test_an_exact_classifier_is_predicted_and_files_know_as_much(tmp_path):
    oracle = slalom_oracle()
    e = slalom.explain(oracle.classifier, TEXT, target="pos", n_queries=800)
    e.save(tmp_path / "e.json")
    oracle.asked.clear()
    found = slalom.read(tmp_path / "e.json").without("beauty", "weak", 0)
    assert not oracle.asked
    assert not found.measured
    left = [w for at, w in enumerate(TEXT.split()) if at and w not in ("beauty", "weak")]
    said = oracle.classifier([" ".join(left)])[0]
    assert found.score[0] == pytest.approx(said[1] - said[0], abs=0.02)
    assert str(found).startswith("Without “a”, “beauty” and “weak”: pos ")
    assert "(estimated); full text: " in str(found)


def test_one_measured_removal_is_the_classifiers_own_answer():
    e = with_facts(made("great slow film awful"))
    found = e.without("great")
    assert found.measured
    assert found.score[0] == pytest.approx(e.logits[1] - e.logits[0] - e["great"]["removal"])
    after, before = (percent(probability(float(s))) for s in (found.score[0], e.logits[1]))
    told = f"Without “great”: positive {after} (measured); full text: {before}."
    assert repr(found) == found.sentence == told
    assert not e.without("awful").measured


def test_every_occurrence_goes_and_is_struck_out():
    e = made("great songs, a great <b> end")
    page = e.without("great")._repr_html_()
    assert page.count("<del>great</del>") == 2
    assert "&lt;" in page
    assert e.without(0).removed == (0,)


def test_all_classes_and_single_outputs():
    e = made("great slow film", n_classes=3, all_classes=True)
    after = e.predict([[0, 1, 1]])[0] - e.predict([[1, 1, 1]])[0] + e.logits - e.logits.mean()
    odds = np.exp(after)
    best = int(np.argmax(e.logits))
    assert percent(float(odds[best] / odds.sum())) in e.without("great").sentence
    number = replace(made("great slow"), labels=("stars",), target="stars", target_index=0)
    number = replace(number, logits=number.logits[1:], independent=True)
    assert "%" not in number.without("great").sentence


def test_what_is_not_there_is_said():
    e = made("great slow film")
    with pytest.raises(UnknownNameError, match="did you mean 'great'"):
        e.without("graet")
    with pytest.raises(InputError, match="3 units"):
        e.without(3)
    with pytest.raises(InputError, match="name the words"):
        e.without()
