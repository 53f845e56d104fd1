"""Reconstructions of a suite of shapes: numbers go to runs.csv, surfaces to meshes/ beside it."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import KDTree

from ocsdf_bench.dataset import DataUnavailableError, Source
from ocsdf_bench.shapes import metrics
from ocsdf_bench.shapes.loader import get_shape
from ocsdf_bench.shapes.methods import METHODS, Reconstruction
from ocsdf_bench.shapes.reconstruct import extract_surface
from ocsdf_bench.shapes.shape import Sample, Shape, ball_points, sample_surface, sample_volume
from ocsdf_bench.study import Measurement, StudyLog

if TYPE_CHECKING:
    import trimesh

Say = Callable[[str], None]

N_COMPARED = 20_000
"""Points on each of the two surfaces that are compared."""


@dataclass(frozen=True)
class ShapeMethod:
    """A method of a suite: label in the tables, key of ``METHODS``, its parameters, and what it learns from.

    sample : "surface", or "volume" for uniform points inside the shape. resolution : of its own grid, if any.
    """

    label: str
    method: str
    params: dict[str, Any]
    sample: str = "surface"
    resolution: int | None = None


@dataclass(frozen=True)
class ShapeSuite:
    """Checked content of a shape suite.

    shapes : names of ``get_shape``. n_points : rows of each sample; sweep_shapes, sweep_n_points : shapes
    that are learned from other numbers too. resolution : marching cubes' grid. query_dimensions,
    query_n_points : of the comparison of query times.
    """

    name: str
    shapes: tuple[str, ...]
    n_points: int
    sweep_shapes: tuple[str, ...]
    sweep_n_points: tuple[int, ...]
    seed: int
    resolution: int
    methods: tuple[ShapeMethod, ...]
    query_dimensions: tuple[int, ...] = ()
    query_n_points: tuple[int, ...] = ()

    def cases(self) -> list[tuple[str, int]]:
        """(shape, n) of every reconstruction."""
        return [(s, self.n_points) for s in self.shapes] + [
            (s, n) for s in self.sweep_shapes for n in self.sweep_n_points
        ]


def read_suite(path: Path) -> ShapeSuite:
    """The suite of a TOML file; ValueError on a key or method that does not exist."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    fields = ShapeSuite.__dataclass_fields__
    unknown = sorted(set(content) - set(fields))
    missing = sorted(set(fields) - set(content) - {"query_dimensions", "query_n_points"})
    if unknown or missing:
        raise ValueError(
            f"{path} must have the keys {', '.join(fields)}; unknown {unknown}, missing {missing}."
        )
    methods = tuple(_method(path, entry) for entry in content.pop("methods"))
    lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    return ShapeSuite(**lists, methods=methods)


def _method(path: Path, entry: dict[str, Any]) -> ShapeMethod:
    method = entry.get("method", "")
    if method not in METHODS:
        raise ValueError(f"`method` of {path} must be one of {', '.join(METHODS)}; got {method!r}.")
    return ShapeMethod(**{"label": method, "params": {}, **entry})


def measure(suite: ShapeSuite, out: Path, source: Source, say: Say = print) -> None:
    """Reconstruct every case that ``out`` lacks; a shape that is not to be had becomes skipped rows."""
    log = StudyLog(out / "runs.csv", suite.name, "reconstruction")
    (out / "meshes").mkdir(exist_ok=True)
    for name, n in suite.cases():
        waiting = [(m, p) for m in suite.methods if not log.has(p := _planned(name, n, suite, m))]
        if not waiting:
            continue
        try:
            shape = get_shape(name, source)
        except DataUnavailableError as error:
            for _, planned in waiting:
                log.add(replace(planned, status="skipped", reason=str(error)))
            continue
        for method, planned in waiting:
            say(f"{shape.name}, n={n}: {method.label}")
            log.add(_reconstruct(shape, method, planned, suite, out / "meshes"))
    for dimension in suite.query_dimensions:
        for n in suite.query_n_points:
            _time_queries(dimension, n, suite, log, say)


def mesh_path(folder: Path, name: str, label: str, n: int) -> Path:
    """Where the surface of a case lies."""
    return folder / f"{Path(name).stem}-{label.replace(' ', '_')}-{n}.ply"


def _planned(name: str, n: int, suite: ShapeSuite, method: ShapeMethod) -> Measurement:
    params = {**method.params, "sample": method.sample}
    return Measurement(Path(name).stem, method.label, suite.seed, n, params=params, n_features=3)


def _reconstruct(
    shape: Shape, method: ShapeMethod, planned: Measurement, suite: ShapeSuite, folder: Path
) -> Measurement:
    if method.sample == "volume" and not shape.watertight:
        reason = "the shape encloses no volume to draw points from"
        return replace(planned, status="skipped", reason=reason)
    draw = sample_volume if method.sample == "volume" else sample_surface
    sample = draw(shape, planned.n_train, suite.seed)
    start = time.perf_counter()
    try:
        made = METHODS[method.method](sample, suite.seed, **method.params)
    except ImportError as error:
        return replace(planned, status="skipped", reason=f"{error.name} is not installed")
    fit_seconds = time.perf_counter() - start
    mesh, budget = made.mesh, made.budget
    if mesh is None:
        resolution = method.resolution or suite.resolution
        mesh, budget = (
            extract_surface(made.field, resolution, lipschitz=made.lipschitz),
            {**budget, "grid": resolution},
        )
    planned = replace(planned, budget=budget, fit_seconds=fit_seconds, n_test=N_COMPARED)
    if not len(mesh.faces):
        return replace(planned, status="failed", reason="the field has no zero level in B")
    mesh.export(mesh_path(folder, planned.dataset, planned.detector, planned.n_train))
    values, query_seconds = figures_of_merit(shape, made, mesh, suite.seed)
    values |= {"fit_seconds": fit_seconds, "query_seconds": query_seconds}
    return replace(planned, metrics=values, score_seconds=query_seconds)


def figures_of_merit(
    shape: Shape, made: Reconstruction, mesh: trimesh.Trimesh, seed: int
) -> tuple[dict[str, float | str], float]:
    """Metrics of a reconstruction (a str: why one is undefined) and seconds for 20,000 queries."""
    reference = sample_surface(shape, N_COMPARED, seed + 1)
    points = sample_surface(Shape("made", mesh, None, False), N_COMPARED, seed + 2)
    values: dict[str, float | str] = {
        "chamfer": metrics.chamfer(points.points, reference.points),
        "hausdorff95": metrics.hausdorff95(points.points, reference.points),
        "normal_consistency": _normal_consistency(points, reference),
    }
    # Central differences must stay in B, where the field was learned.
    probes = 0.99 * ball_points(N_COMPARED, seed + 3)
    start = time.perf_counter()
    inside = made.field(probes) > 0
    seconds = time.perf_counter() - start
    values["volume_iou"] = _volume_iou(shape, made, probes, inside)
    values["eikonal_residual"] = metrics.eikonal_residual(made.field, probes[:4000])
    return values, seconds


def _normal_consistency(points: Sample, reference: Sample) -> float | str:
    if points.normals is None or reference.normals is None:
        return "the reference is a point cloud without normals"
    return metrics.normal_consistency(points.points, points.normals, reference.points, reference.normals)


def _volume_iou(shape: Shape, made: Reconstruction, probes: np.ndarray, inside: np.ndarray) -> float | str:
    if shape.signed_distance is None or not shape.watertight:
        return "the reference is not watertight"
    if not made.encloses:
        return "the reconstruction encloses no volume"
    return metrics.volume_iou(inside, shape.signed_distance(probes) > 0)


def _time_queries(dimension: int, n: int, suite: ShapeSuite, log: StudyLog, say: Say) -> None:
    """Seconds for 1,000 queries of the network and of a k-d tree on ``n`` Gaussian rows."""
    from ocsdf import OCSDF

    rng = np.random.default_rng(suite.seed)
    rows, queries = rng.standard_normal((n, dimension)), rng.standard_normal((1000, dimension))
    hidden = next(m.params["hidden"] for m in suite.methods if m.method == "OCSDF")

    def network() -> Callable[[np.ndarray], np.ndarray]:
        model = OCSDF.paper(hidden=tuple(hidden), epochs=None, max_steps=2, random_state=suite.seed).fit(rows)
        return model.score_samples

    def tree() -> Callable[[np.ndarray], np.ndarray]:
        built = KDTree(rows)
        return lambda x: built.query(x)[0]

    for label, build in (("OCSDF", network), ("k-d tree", tree)):
        planned = Measurement(
            f"gaussian-{dimension}d", label, suite.seed, n, n_test=1000, n_features=dimension
        )
        if log.has(planned):
            continue
        say(f"query time, {dimension} dimensions, n={n}: {label}")
        query = build()
        best = min(_seconds(query, queries) for _ in range(3))
        log.add(replace(planned, metrics={"query_seconds": best}, score_seconds=best))


def _seconds(call: Callable[[np.ndarray], np.ndarray], queries: np.ndarray) -> float:
    start = time.perf_counter()
    call(queries)
    return time.perf_counter() - start
