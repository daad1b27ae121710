"""Messages name parameters in a way that others can put in their own words."""

import pickle

import pytest

import slalom
from slalom.cli.typed import as_typed
from slalom.errors import InputError, Setting, UnknownNameError


def test_an_error_names_its_parameter():
    error = InputError("too long: cut it with ", Setting("too_long", "truncate"), ", or ask less")
    assert str(error) == 'too long: cut it with too_long="truncate", or ask less'
    assert error.told(as_typed) == "too long: cut it with --too-long truncate, or ask less"
    assert error.parameter == "too_long"
    assert str(Setting("n_samples", 32)) == "n_samples=32"
    assert as_typed(Setting("n_queries")) == "--queries"
    assert InputError("nothing to name").parameter is None


def test_its_parts_survive_a_process_border():
    error = pickle.loads(pickle.dumps(InputError("set ", Setting("units", "word"))))
    assert (str(error), error.parameter) == ('set units="word"', "units")
    unknown = pickle.loads(pickle.dumps(UnknownNameError("method", "slolam", ["slalom"])))
    assert unknown.parameter == "method"
    assert "did you mean 'slalom'?" in str(unknown)


def test_the_library_says_which_parameter_was_wrong():
    classifier = slalom.load()
    for settings, parameter in (
        ({"n_queries": 3}, "n_queries"),
        ({"n_queries": 0}, "n_queries"),
        ({"seed": -1}, "seed"),
        ({"too_long": "cut"}, "too_long"),
        ({"target": "neutral"}, "target"),
        ({"method": "slolam"}, "method"),
    ):
        with pytest.raises(slalom.SlalomError) as caught:
            slalom.explain(classifier, "A slow start, but a wonderful film.", **settings)
        assert caught.value.parameter == parameter
