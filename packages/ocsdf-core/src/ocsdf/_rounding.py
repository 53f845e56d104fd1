"""Directed rounding: float64 results on the safe side, and exact wherever float64 can hold them.

NumPy cannot switch the processor's rounding mode, so the error of one operation is computed exactly and the
result moves to the next number when it fell on the wrong side. Source: T. J. Dekker, "A floating-point
technique for extending the available precision", Numerische Mathematik 18 (1971); D. E. Knuth, *The Art of
Computer Programming*, vol. 2, section 4.2.2 (the error of a sum).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_SPLITTER = 2.0**27 + 1
_TINY = 2.0**-960  # under it the error of a product may itself underflow


def add_up(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Smallest float64 known to be >= a + b, elementwise; a + b itself where that is exact."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(all="ignore"):
        total = a + b
        virtual = total - a
        error = (a - (total - virtual)) + (b - virtual)
        return np.where(error > 0, np.nextafter(total, np.inf), total)


def subtract_down(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Largest float64 known to be <= a - b, elementwise; a - b itself where that is exact."""
    return -add_up(-np.asarray(a, np.float64), b) + 0.0  # no negative zero


def multiply_up(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Float64 >= a * b for a, b >= 0, elementwise; a * b itself where that is exact."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(all="ignore"):
        product, error = _product_and_error(a, b)
        safe = (error <= 0) & ((product > _TINY) | (a == 0) | (b == 0))
        return np.where(safe, product, np.nextafter(product, np.inf))


def divide_down(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Float64 <= a / b for a >= 0, b > 0, elementwise; a / b itself where that is exact."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(all="ignore"):
        quotient = a / b
        product, error = _product_and_error(quotient, b)
        safe = ((product - a) + error <= 0) & ((product > _TINY) | (a == 0))
        return np.where(safe, quotient, np.nextafter(quotient, 0.0))


def _product_and_error(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b and its rounding error; NaN for the error where the splitting overflows."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high
