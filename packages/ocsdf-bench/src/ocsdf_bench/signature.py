"""Parameters of a suite against the signature of the function that will receive them."""

from __future__ import annotations

import difflib
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

from ocsdf_bench.detector import DetectorInfo


def parameter_problems(info: DetectorInfo, params: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(parameter, sentence) for each one that ``info.build`` does not have or whose type is wrong."""
    signature = _signature(info)
    allowed = {n: p for n, p in signature.items() if n != "seed" and p.kind is not p.VAR_KEYWORD}
    open_ended = any(p.kind is p.VAR_KEYWORD for p in signature.values())
    for name, value in params.items():
        if name in allowed:
            parameter = allowed[name]
            if not _accepts(parameter, value):
                yield name, f"`{name}` of {info.name} must be {_words(parameter)}; got {value!r}."
        elif not open_ended:
            near = difflib.get_close_matches(name, list(allowed), 1, 0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            names = ", ".join(allowed) or "none"
            yield name, f"detector {info.name} has no parameter {name!r}.{hint} It has: {names}."


def _signature(info: DetectorInfo) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(info.build, eval_str=True).parameters)
    except NameError:  # an annotation of a module that is imported inside `build` only
        return dict(inspect.signature(info.build).parameters)


def _accepts(parameter: inspect.Parameter, value: Any) -> bool:
    annotation, default = parameter.annotation, parameter.default
    if annotation is inspect.Parameter.empty or isinstance(annotation, str):
        if default is inspect.Parameter.empty or default is None:
            return True
        return _matches(type(default), value)
    return _matches(annotation, value)


def _matches(annotation: Any, value: Any) -> bool:
    origin = get_origin(annotation)
    if annotation is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_matches(option, value) for option in get_args(annotation))
    if origin is Literal:
        return value in get_args(annotation)
    plain = origin or annotation
    if plain is None or plain is type(None):
        return value is None
    if plain is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if plain is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(plain, type) and plain in (list, tuple) or plain in (typing.Sequence, set):
        return isinstance(value, list | tuple)
    if isinstance(plain, type) and plain in (str, bool, dict):
        return isinstance(value, plain)
    return True


def _words(parameter: inspect.Parameter) -> str:
    if parameter.annotation is inspect.Parameter.empty:
        return f"of type {type(parameter.default).__name__}"
    annotation = parameter.annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
