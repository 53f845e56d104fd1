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
                hint = _near(value, _choices(parameter.annotation))
                yield name, f"`{name}` of {info.name} must be {_words(parameter)}; got {value!r}.{hint}"
        elif not open_ended:
            hint = _near(name, list(allowed))
            names = ", ".join(allowed) or "none"
            yield name, f"detector {info.name} has no parameter {name!r}.{hint} It has: {names}."


def _near(word: Any, known: list[Any]) -> str:
    near = difflib.get_close_matches(str(word), [str(k) for k in known], 1, 0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


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
        return isinstance(value, list | tuple) and all(_matches(_item(annotation), v) for v in value)
    if isinstance(plain, type) and plain in (str, bool, dict):
        return isinstance(value, plain)
    return True


def _item(annotation: Any) -> Any:
    """What each item of a sequence must be; a tuple of several kinds is not looked into."""
    items = [item for item in get_args(annotation) if item is not Ellipsis]
    return items[0] if len(items) == 1 else Any


def _choices(annotation: Any) -> list[Any]:
    """The values that a Literal allows, alone or among others."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        return [choice for option in get_args(annotation) for choice in _choices(option)]
    return []


def _words(parameter: inspect.Parameter) -> str:
    if parameter.annotation is inspect.Parameter.empty:
        return f"of type {type(parameter.default).__name__}"
    annotation = parameter.annotation
    if get_origin(annotation) is Literal:
        return f"one of {', '.join(map(repr, get_args(annotation)))}"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
