"""The one error sentence: parameter, caller, allowed, value, remedy."""

import numpy as np
import pytest

from ocsdf import _check


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: _check.number("a", "margin", "OCSDF", low=0), TypeError, "a finite number >= 0; got 'a'."),
        (lambda: _check.number(True, "margin", "OCSDF"), TypeError, "a finite number; got True."),
        (lambda: _check.number(np.nan, "margin", "OCSDF"), ValueError, "a finite number; got nan."),
        (lambda: _check.number(np.inf, "margin", "OCSDF"), ValueError, "a finite number; got inf."),
        (
            lambda: _check.number(0, "margin", "OCSDF", low=0, open_low=True, unit="scaled units"),
            ValueError,
            "a finite number > 0 (scaled units); got 0.",
        ),
        (
            lambda: _check.number(0.7, "margin", "OCSDF", low=0, high=0.5, open_low=True),
            ValueError,
            "a finite number > 0 and <= 0.5; got 0.7.",
        ),
        (lambda: _check.integer(0, "margin", "OCSDF", low=1), ValueError, "an integer >= 1; got 0."),
        (lambda: _check.integer(1.5, "margin", "OCSDF", low=1), TypeError, "an integer >= 1; got 1.5."),
        (
            lambda: _check.integer(9, "margin", "OCSDF", low=1, high=8, remedy="use fewer"),
            ValueError,
            "an integer >= 1 and <= 8; got 9; use fewer.",
        ),
        (
            lambda: _check.choice("groupsrt", "margin", "OCSDF", ("fullsort", "groupsort")),
            ValueError,
            "one of 'fullsort', 'groupsort'; got 'groupsrt'; did you mean 'groupsort'?",
        ),
        (lambda: _check.choice(3, "margin", "OCSDF", ("a",)), ValueError, "one of 'a'; got 3."),
        (
            lambda: _check.array([1.0, np.inf], "margin", "OCSDF"),
            ValueError,
            "finite real numbers; got inf at index 1.",
        ),
        (
            lambda: _check.array([[1.0], [-2.0]], "margin", "OCSDF", low=0.0),
            ValueError,
            "finite real numbers >= 0; got -2.0 at index (1, 0).",
        ),
        (
            lambda: _check.array([[1], [1, 2]], "margin", "OCSDF"),
            ValueError,
            "finite real numbers; got a ragged sequence.",
        ),
        (
            lambda: _check.array(["1"], "margin", "OCSDF"),
            TypeError,
            "finite real numbers; got an array of dtype <U1.",
        ),
        (
            lambda: _check.array([[1.0]], "margin", "OCSDF", ndim=1),
            ValueError,
            "1-dimensional; got an array of shape (1, 1).",
        ),
        (
            lambda: _check.generator(-1, "margin", "OCSDF"),
            ValueError,
            "an integer >= 0; got -1; None and NumPy generators are allowed too.",
        ),
    ],
)
def test_error_names_parameter_allowed_value_and_remedy(check, error, message):
    with pytest.raises(error) as raised:
        check()
    assert str(raised.value) == f"`margin` of OCSDF must be {message}"


def test_long_values_are_cut_in_the_message():
    assert len(_check.sentence("a", "b", "short", list(range(1000)))) < 120


def test_allowed_values_pass_as_plain_python_numbers():
    assert type(_check.number(np.float32(0.5), "margin", "OCSDF")) is float
    assert type(_check.number(np.array(2), "margin", "OCSDF")) is float
    assert type(_check.integer(np.int64(3), "epochs", "OCSDF", low=1)) is int
    assert _check.choice("a", "kind", "OCSDF", ("a", "b")) == "a"
    assert _check.array([True, False], "x", "f").dtype == np.float64


def test_an_array_is_a_copy_so_that_a_frozen_value_stays_so():
    given = np.zeros(3)
    taken = _check.array(given, "x", "f")
    given[0] = 1.0
    assert taken[0] == 0.0


def test_generators_are_seeded_by_int_and_used_as_they_are():
    def draw(seed):
        return _check.generator(seed, "random_state", "OCSDF").random()

    assert draw(3) == draw(3) != draw(4)
    assert draw(np.random.RandomState(3)) == draw(np.random.RandomState(3))
    rng = np.random.default_rng(0)
    assert _check.generator(rng, "random_state", "OCSDF") is rng
    assert draw(None) != draw(None)
