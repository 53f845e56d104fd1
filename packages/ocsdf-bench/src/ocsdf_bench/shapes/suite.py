"""What a shape suite asks for, read from TOML and checked before anything is fitted."""

from __future__ import annotations

import inspect
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ocsdf_bench.shapes.methods import METHODS

LIBRARIES = ("trimesh", "skimage", "igl", "embreex")


@dataclass(frozen=True)
class ShapeMethod:
    """A method of a suite: label in the tables, key of ``METHODS``, its parameters, and what it learns from.

    sample : "surface", or "volume" for uniform points inside the shape. resolution : of its own grid, if any.
    shapes : those it is tried on, at the suite's ``n_points`` alone; empty for every case of the suite.
    """

    label: str
    method: str
    params: dict[str, Any]
    sample: str = "surface"
    resolution: int | None = None
    shapes: tuple[str, ...] = ()

    @property
    def resolved(self) -> dict[str, Any]:
        """``params`` over the method's own defaults."""
        parameters = list(inspect.signature(METHODS[self.method]).parameters.values())
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        return {**defaults, **self.params}

    def has_case(self, shape: str, n: int, suite: ShapeSuite) -> bool:
        """Whether the method reconstructs ``shape`` from ``n`` points."""
        return not self.shapes or (shape in self.shapes and n == suite.n_points)


@dataclass(frozen=True)
class ShapeSuite:
    """Checked content of a shape suite; only ``shapes`` and ``methods`` have no default.

    shapes : names of ``get_shape``. n_points : rows of each sample; sweep_shapes, sweep_n_points : shapes
    that are learned from other numbers too. traced_shape : the one that is drawn by sphere tracing as well.
    resolution : marching cubes' grid. n_compared : points on each of two surfaces. query_dimensions,
    query_n_points, query_networks : of the comparison of query times; a network is a list of widths.
    """

    shapes: tuple[str, ...]
    methods: tuple[ShapeMethod, ...]
    name: str = "shapes"
    n_points: int = 2048
    sweep_shapes: tuple[str, ...] = ()
    sweep_n_points: tuple[int, ...] = ()
    traced_shape: str | None = None
    seed: int = 0
    resolution: int = 200
    n_compared: int = 20_000
    query_dimensions: tuple[int, ...] = ()
    query_n_points: tuple[int, ...] = ()
    query_networks: tuple[tuple[int, ...], ...] = ()

    def cases(self) -> list[tuple[str, int]]:
        """(shape, n) of every reconstruction."""
        return [(s, self.n_points) for s in self.shapes] + [
            (s, n) for s in self.sweep_shapes for n in self.sweep_n_points
        ]


def read_suite(path: Path) -> ShapeSuite:
    """The suite of a TOML file.

    Raises ValueError on a key, method or parameter that does not exist, and without the extra ``shapes``.
    """
    absent = [library for library in LIBRARIES if find_spec(library) is None]
    if absent:
        raise ValueError(
            f"shapes need {', '.join(absent)}; install them with `pip install 'ocsdf-bench[shapes]'`."
        )
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    unknown = sorted(set(content) - set(ShapeSuite.__dataclass_fields__))
    missing = sorted({"shapes", "methods"} - set(content))
    if unknown or missing:
        raise ValueError(
            f"{path} must have shapes and methods, and may have any key of "
            f"{', '.join(ShapeSuite.__dataclass_fields__)}; unknown {unknown}, missing {missing}."
        )
    for key in ("sweep_shapes", "traced_shape"):
        named = content.get(key, [])
        wrong = sorted(set(named if isinstance(named, list) else [named]) - set(content["shapes"]))
        if wrong:
            raise ValueError(f"`{key}` of {path} must be among its `shapes`; got {wrong}.")
    methods = tuple(_method(path, entry, content["shapes"]) for entry in content.pop("methods"))
    networks = tuple(tuple(widths) for widths in content.pop("query_networks", []))
    lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    return ShapeSuite(**lists, methods=methods, query_networks=networks)


def _method(path: Path, entry: dict[str, Any], shapes: list[str]) -> ShapeMethod:
    method = entry.get("method", "")
    if method not in METHODS:
        raise ValueError(f"`method` of {path} must be one of {', '.join(METHODS)}; got {method!r}.")
    unknown = sorted(set(entry) - set(ShapeMethod.__dataclass_fields__))
    allowed = list(inspect.signature(METHODS[method]).parameters)[2:]  # after the sample and the seed
    unknown += [f"params.{k}" for k in sorted(set(entry.get("params", {})) - set(allowed))]
    if unknown:
        raise ValueError(
            f"the method {method!r} of {path} takes label, sample, resolution, shapes and "
            f"params.{{{', '.join(allowed)}}}; got {', '.join(unknown)}."
        )
    if entry.get("sample", "surface") not in ("surface", "volume"):
        raise ValueError(f"`sample` of {path} must be 'surface' or 'volume'; got {entry['sample']!r}.")
    wrong = sorted(set(entry.get("shapes", [])) - set(shapes))
    if wrong:
        raise ValueError(f"`shapes` of a method of {path} must be among the suite's; got {wrong}.")
    return ShapeMethod(**{"label": method, "params": {}, **entry, "shapes": tuple(entry.get("shapes", ()))})
