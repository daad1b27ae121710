"""What must hold of every explanation, file and answer, tried on what nobody thought of.

A bounded number of examples here; `make fuzz` goes on for an hour.
"""

import json
import os
import string
from urllib.error import URLError

import pytest
from benchmarks.fuzz import GAPS, METHODS, SCORES, WORDS, Case, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import slalom
from explanations import made
from servers import served
from slalom.web.limits import Limits

N = int(os.environ.get("SLALOM_EXAMPLES", "50"))  # of each law
QUIETLY = settings(
    max_examples=N,
    deadline=None,
    derandomize="SLALOM_EXAMPLES" not in os.environ,  # the same ones every time
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
words = st.one_of(st.sampled_from(WORDS), st.text(max_size=8))
texts = st.lists(st.tuples(words, st.sampled_from(GAPS)), min_size=1, max_size=15).map(
    lambda parts: "".join(word + gap for word, gap in parts)
)
cases = st.builds(
    Case,
    classifier=st.builds(
        lambda kind, form: kind + form,
        st.sampled_from(sorted(SCORES)),
        st.sampled_from(["", "", " 3", " 1", " certain"]),
    ),
    text=st.one_of(texts, texts, st.tuples(texts, texts)),
    method=st.sampled_from(METHODS),
    target=st.sampled_from([None, None, None, 0, 1, "all"]),
    units=st.sampled_from([None, None, None, "word", "sentence", "phrase"]),
    n_queries=st.one_of(st.none(), st.integers(5, 120)),
    seed=st.integers(0, 2**31 - 1),
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.dictionaries(st.text(string.ascii_letters, max_size=10), inside, max_size=4)
    ),
    max_leaves=8,
)
FIELDS = {
    "/api/explain": ("text", "method", "target", "units", "n_queries", "seed", "too_long"),
    "/api/predict": ("text", "texts", "model"),
    "/api/whatif": ("explanations", "removed"),
    "/api/order": ("explanation", "class"),
    "/api/pairs": ("explanation", "k"),
    "/api/open": tuple(made().to_json()),
}


@QUIETLY
@given(case=cases)
def test_the_laws_of_explanations(case):
    assert check(case) in ("explained", "refused")


FOUND = (  # by `make fuzz`, where no example above comes by
    Case("constant 1", "it's", "slalom-analytic"),  # the pair of a unit with itself
    Case("constant", "slow slow film", "slalom-analytic"),
    Case("long certain", "it's\xa0", "slalom-eff", units="phrase"),  # one unit, and a few answers
)


@pytest.mark.parametrize("case", FOUND, ids=str)
def test_cases_that_broke_a_law(case):
    assert check(case) == "explained"


@QUIETLY
@given(record=plain, key=st.sampled_from(sorted(made().to_json())))
def test_any_value_in_any_field_of_a_file(record, key, tmp_path):
    file = tmp_path / "e.json"
    file.write_text(json.dumps({**made().to_json(), key: record}))
    try:
        read = slalom.read(file)
    except slalom.SlalomError:
        return
    assert slalom.Explanation.from_json(read.to_json()) == read
    read.to_html()


@QUIETLY
@given(content=st.binary(max_size=200))
def test_any_bytes_as_a_file(content, tmp_path):
    file = tmp_path / "e.json"
    file.write_bytes(content)
    with pytest.raises(slalom.SlalomError):
        slalom.read(file)


@pytest.fixture(scope="module")
def server():
    with served(limits=Limits(queries=60)) as running:
        yield running


@pytest.mark.parametrize("path", FIELDS)
def test_any_request_is_answered(server, path):
    known = {"text": "a great film", "explanation": "x", "explanations": ["x"], "texts": ["great"]}

    @QUIETLY
    @given(
        given_fields=st.dictionaries(st.sampled_from(FIELDS[path]), plain, max_size=2),
        body=st.one_of(st.none(), st.none(), st.binary(max_size=40)),
        headers=st.dictionaries(
            st.sampled_from(["Host", "Origin", "Content-Type", "Cookie", "Accept", "X-Any"]),
            st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
            max_size=1,
        ),
    )
    def asked(given_fields, body, headers):
        base = made().to_json() if path == "/api/open" else known
        record = {name: base[name] for name in FIELDS[path] if name in base} | given_fields
        try:
            status, answer, _ = server.ask(path, body or record, headers)
        except URLError:
            return  # urllib refuses to send such a header
        assert status in (200, 400, 403, 404, 413, 415, 422), answer
        assert status == 200 or {"error", "kind"} == answer.keys()

    asked()
