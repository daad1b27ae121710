"""Files with something wrong: refused by a sentence that names it, or as good as any other."""

import json
import random

import pytest
from benchmarks.broken_files import damaged, tried, use, written

import slalom
from explanations import made, with_facts, with_pairs

pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")


@pytest.fixture(scope="module")
def originals():
    return written()


@pytest.mark.parametrize("seed", range(10))
def test_what_can_be_read_can_be_shown_saved_and_asked(originals, tmp_path, seed):
    rng = random.Random(seed)
    became = [tried(damaged(rng.choice(originals), rng), tmp_path) for _ in range(40)]
    assert {*became} == {"refused", "used"}


def test_what_was_written_is_read(originals, tmp_path):
    assert {tried(content.encode(), tmp_path) for content in originals} == {"used"}
    use(with_pairs(with_facts(made()), (1, 2)), tmp_path, draw=True)


WRONG = {
    "scores": ({}, "expected at least one unit and one score"),
    "scores.value[3]": (1e999, "scores.value: expected numbers from"),
    "scores.value[2]": ("1.5", "scores.value: expected numbers, not"),
    "scores.share[0]": (-1e90, "scores.share: a share of the attention is not negative"),
    "scores.value[1]": ([1.0], "scores.value: expected rows of one length"),
    "errors.value[0]": (-1.0, "errors.value: expected numbers from 0"),
    "errors.shapely": ([], "errors.shapely: expected 21 entries (units), not 0"),
    "units[3]": (7, "units[3]: expected a text, not 7"),
    "units[4]": ("\ud800", "units[4]: expected a text, all characters whole"),
    "spans[0][1]": (10**6, "spans: (0, 1000000) lies outside of the text"),
    "spans[1]": ([0, 1], "spans: (0, 1) lies outside of the text or before another one"),
    "features[0]": (99, "expected features from 0 to 20"),
    "identified": ([1, 0], "identified: expected true or false"),
    "quality.trust": ("very", "quality.trust: expected one of exact, high, fair, low, not 'very'"),
    "quality.n_queries": (3.5, "quality.n_queries: expected a whole number, not 3.5"),
    "quality.seconds": (float("nan"), "quality.seconds: expected a number from 0"),
    "target.index": (2, "target: 'positive' is not the class 2 of 2"),
    "labels": (["a"], "labels: expected 2 entries (labels), not 1"),
    "model.kind": ("neural", "model: expected slalom or"),
    "model.values": ([], "model.values: expected 21 entries (units), not 0"),
    "model.values[0]": (1e99, None),
    "model.anchor": ({}, "model.anchor: value is missing"),
    "length_curve": ([0.0], "length_curve: expected 22 entries (units and one more), not 1"),
    "pairs.pairs[0].units": ([1, 99], "pairs: a pair of the units (1, 99), of 21"),
    "anchor.value": ([0.1], "anchor.value: expected one number"),
    "text": (None, "text: expected a text or a list, not None"),
    "seed": (-1, "seed: expected a number from 0"),
}


@pytest.mark.parametrize("place", WRONG)
def test_the_sentence_names_what_is_wrong(place, tmp_path):
    record = with_pairs(with_facts(made()), (1, 2)).to_json()
    *path, last = place.replace("[", ".").replace("]", "").split(".")
    holder = record
    for step in path:
        holder = holder[int(step) if step.isdigit() else step]
    value, sentence = WRONG[place]
    holder[int(last) if last.isdigit() else last] = value
    file = tmp_path / "e.json"
    file.write_text(json.dumps(record))
    if sentence is None:
        use(slalom.read(file), tmp_path)
        return
    with pytest.raises(slalom.SlalomError) as caught:
        slalom.read(file)
    assert f"{file} is an explanation file, but damaged: {sentence}" in str(caught.value)


@pytest.mark.parametrize("value", [[0.1], 0.1])
def test_an_anchor_has_a_value_for_every_class(value, tmp_path):
    record = made(all_classes=True).to_json()
    record["anchor"]["value"] = value
    (tmp_path / "e.json").write_text(json.dumps(record))
    with pytest.raises(slalom.SlalomError, match=r"anchor.value: expected one number per class"):
        slalom.read(tmp_path / "e.json")


def test_a_spread_is_none_or_one_that_levels_can_be_divided_by(originals, tmp_path):
    record = json.loads(originals[0])
    record["model"]["mean"]["frame"]["level_spread"] = 1e-300
    (tmp_path / "e.json").write_text(json.dumps(record))
    with pytest.raises(slalom.SlalomError, match="level_spread: expected 0 or a number from"):
        slalom.read(tmp_path / "e.json")


def test_the_target_must_be_there(tmp_path):
    record = made().to_json()
    for target, sentence in (
        (None, "target: expected an object, not None"),
        ({"label": "positive"}, "target: index is missing"),
        ({"label": 3, "index": 1}, "target.label: expected a text, not 3"),
    ):
        (tmp_path / "e.json").write_text(json.dumps({**record, "target": target}))
        with pytest.raises(slalom.SlalomError, match=sentence):
            slalom.read(tmp_path / "e.json")


def test_a_vocabulary_is_read_as_strictly(tmp_path):
    classifier = slalom.FunctionClassifier(
        lambda texts: [[0.0, float(len(t))] for t in texts], gives="logits"
    )
    made = slalom.explain_vocabulary(classifier, ["a b", "b c", "a c"], n_queries=20)
    file = tmp_path / "v.json"
    made.save(file)
    assert slalom.Vocabulary.read(file) == made
    for name, value, sentence in (
        ("counts", ["1"], "counts: expected whole numbers"),
        ("scores", {}, "scores: expected value and importance"),
        ("keys", 3, "keys: expected a list, not 3"),
        ("keys", ["a", {}, "b"], r"keys\[1\]: expected a text, a number or a list of them"),
        ("target", {"index": 7, "label": "0"}, "target: 2 labels have no 7"),
    ):
        file.write_text(json.dumps({**made.to_json(), name: value}))
        with pytest.raises(slalom.SlalomError, match=f"a vocabulary file, but damaged: {sentence}"):
            slalom.Vocabulary.read(file)
