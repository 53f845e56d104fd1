"""The one error sentence: parameter of caller must be allowed; got value, where; remedy."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np


def sentence(parameter: str, caller: str, allowed: str, got: object, remedy: str = "") -> str:
    """Text of every error of this package.

    Parameters
    ----------
    parameter, caller : str
        Whose value was wrong, and the class or function that was given it.
    allowed : str
        What it must be, with its unit: ``">= 0 (l2 distance)"``.
    got : object
        The value, shown by its short repr; a string that starts with "a " or "an " is shown as it stands.
    remedy : str
        What to do, where that is not evident.

    Examples
    --------
    >>> sentence("epochs", "OCSDF", "an integer >= 1", 0)
    '`epochs` of OCSDF must be an integer >= 1; got 0.'
    """
    return f"`{parameter}` of {caller} must be {allowed}; got {_shown(got)}{'; ' + remedy if remedy else ''}."


def number(
    value: Any,
    parameter: str,
    caller: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    unit: str = "",
    remedy: str = "",
) -> float:
    """``value`` as a finite float within the interval; the ends belong to it unless opened.

    Raises TypeError on what is no real number (a bool is none), ValueError outside the interval.
    """
    allowed = _interval("a finite number", low, high, open_low, open_high, unit)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        raise TypeError(sentence(parameter, caller, allowed, value, remedy))
    result = float(value)
    too_low = result <= low if open_low else result < low
    too_high = result >= high if open_high else result > high
    if not math.isfinite(result) or too_low or too_high:
        raise ValueError(sentence(parameter, caller, allowed, value, remedy))
    return result


def integer(
    value: Any,
    parameter: str,
    caller: str,
    *,
    low: int,
    high: float = math.inf,
    unit: str = "",
    remedy: str = "",
) -> int:
    """``value`` as an int within [low, high]; TypeError on a bool or non-integer, ValueError outside."""
    allowed = _interval("an integer", low, high, False, False, unit)
    if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)):
        raise TypeError(sentence(parameter, caller, allowed, value, remedy))
    result = int(value)
    if result < low or result > high:
        raise ValueError(sentence(parameter, caller, allowed, value, remedy))
    return result


def choice(value: Any, parameter: str, caller: str, allowed: Sequence[str]) -> str:
    """``value`` if it is one of ``allowed``; the error names the nearest one. Raises ValueError."""
    if isinstance(value, str) and value in allowed:
        return value
    near = difflib.get_close_matches(value, allowed, n=1) if isinstance(value, str) else []
    names = ", ".join(repr(name) for name in allowed)
    remedy = f"did you mean {near[0]!r}?" if near else ""
    text = sentence(parameter, caller, f"one of {names}", value, remedy)
    raise ValueError(text.replace("?.", "?"))


def array(
    value: Any,
    parameter: str,
    caller: str,
    *,
    ndim: int | None = None,
    low: float = -math.inf,
    high: float = math.inf,
    min_size: int = 1,
    unit: str = "",
) -> np.ndarray:
    """``value`` as a float64 array: real numbers, finite, of ``ndim`` dimensions, within [low, high].

    Raises TypeError on text or objects, ValueError on a wrong dimension, an empty array, NaN, inf or a value
    outside the interval; the message gives the index of the first wrong entry.
    """
    allowed = _interval("finite real numbers", low, high, False, False, unit)
    try:
        raw = np.asarray(value)
    except ValueError:
        raise ValueError(sentence(parameter, caller, allowed, "a ragged sequence")) from None
    if raw.dtype.kind not in "biuf":
        raise TypeError(sentence(parameter, caller, allowed, f"an array of dtype {raw.dtype}"))
    result = raw.astype(np.float64)
    shape = f"an array of shape {result.shape}"
    if ndim is not None and result.ndim != ndim:
        raise ValueError(sentence(parameter, caller, f"{ndim}-dimensional", shape))
    if result.size < min_size:
        raise ValueError(sentence(parameter, caller, f"an array of at least {min_size} entries", shape))
    wrong = ~np.isfinite(result) | (result < low) | (result > high)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = f" at index {index[0] if len(index) == 1 else index}" if index else ""
        raise ValueError(sentence(parameter, caller, allowed, f"a value of {result[index]}{where}"))
    return result


def radii(value: Any, caller: str, parameter: str = "radius") -> np.ndarray:
    """Attack radii as a float64 array of 0 or 1 dimensions, >= 0. Raises TypeError or ValueError."""
    result = array(value, parameter, caller, low=0.0, unit="l2 distance, unit of the scaled features")
    if result.ndim > 1:
        shape = f"an array of shape {result.shape}"
        raise ValueError(sentence(parameter, caller, "a number or of shape (n_radii,)", shape))
    return result


def generator(value: Any, parameter: str, caller: str) -> np.random.Generator:
    """NumPy generator from None (fresh entropy), an int >= 0, a RandomState, or a Generator used as it is."""
    if isinstance(value, np.random.Generator):
        return value
    if isinstance(value, np.random.RandomState):
        return np.random.default_rng(value.randint(2**31, size=4))
    if value is None:
        return np.random.default_rng()
    return np.random.default_rng(
        integer(value, parameter, caller, low=0, remedy="None and NumPy generators are allowed too")
    )


def _interval(kind: str, low: float, high: float, open_low: bool, open_high: bool, unit: str) -> str:
    ends = []
    if low != -math.inf:
        ends.append(f"{'>' if open_low else '>='} {low:g}")
    if high != math.inf:
        ends.append(f"{'<' if open_high else '<='} {high:g}")
    text = f"{kind} {' and '.join(ends)}".rstrip()
    return f"{text} ({unit})" if unit else text


def _shown(got: object) -> str:
    if isinstance(got, str) and got.startswith(("a ", "an ")):
        return got.removeprefix("a value of ")
    text = repr(got)
    return text if len(text) <= 60 else text[:57] + "..."
