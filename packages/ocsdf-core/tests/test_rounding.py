"""Directed rounding against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ocsdf import _rounding

finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)


@given(finite, finite)
@example(1e30, -1.0)
@example(1e16, 1.0)
@example(0.1, 0.2)
@example(0.0, -np.finfo(float).max)
def test_a_sum_is_never_under_the_exact_one(a, b):
    result = float(_rounding.add_up(a, b))
    exact = Fraction(a) + Fraction(b)
    if np.isfinite(result):
        assert Fraction(result) >= exact
        if result > -np.finfo(float).max:  # nothing finite lies below
            assert Fraction(float(np.nextafter(result, -np.inf))) <= exact
    else:
        assert result > 0 or exact < 0


@given(finite, finite)
def test_a_difference_is_never_over_the_exact_one(a, b):
    result = float(_rounding.subtract_down(a, b))
    if np.isfinite(result):
        assert Fraction(result) <= Fraction(a) - Fraction(b)


@given(positive, positive)
@example(5e-324, 1.2)
@example(1e-200, 1e-200)
@example(1e300, 1e300)
@example(1e305, 1.1)
def test_a_product_is_never_under_the_exact_one(a, b):
    result = float(_rounding.multiply_up(a, b))
    if np.isfinite(result):
        assert Fraction(result) >= Fraction(a) * Fraction(b)


@given(positive, st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False))
@example(1.0, 3.0)
@example(1e300, 1e-300)
@example(5e-324, 2.0)
@example(1e308, 1.0 + 2**-52)
def test_a_quotient_is_never_over_the_exact_one(a, b):
    result = float(_rounding.divide_down(a, b))
    assert Fraction(result) <= Fraction(a) / Fraction(b)


@pytest.mark.parametrize(
    ("operation", "a", "b", "exact"),
    [
        (_rounding.add_up, 0.5, 0.25, 0.75),
        (_rounding.subtract_down, 3.0, 1.0, 2.0),
        (_rounding.multiply_up, 0.5, 3.0, 1.5),
        (_rounding.multiply_up, 7.0, 0.0, 0.0),
        (_rounding.divide_down, 3.0, 2.0, 1.5),
        (_rounding.divide_down, 0.0, 2.0, 0.0),
    ],
)
def test_a_result_that_float64_holds_is_not_moved(operation, a, b, exact):
    assert float(operation(a, b)) == exact
