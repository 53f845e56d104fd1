"""Reconstructions of a suite of shapes: numbers go to runs.csv, surfaces to meshes/ beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ocsdf_bench.dataset import DataUnavailableError, Source
from ocsdf_bench.shapes import metrics
from ocsdf_bench.shapes.loader import get_shape
from ocsdf_bench.shapes.methods import METHODS, Reconstruction
from ocsdf_bench.shapes.query_time import measure_query_times
from ocsdf_bench.shapes.reconstruct import extract_surface
from ocsdf_bench.shapes.render import camera_for, render_field
from ocsdf_bench.shapes.results import Results, read_results
from ocsdf_bench.shapes.shape import Sample, Shape, ball_points, sample_surface, sample_volume
from ocsdf_bench.shapes.suite import ShapeMethod, ShapeSuite
from ocsdf_bench.study import Measurement, StudyLog

if TYPE_CHECKING:
    import trimesh

Say = Callable[[str], None]

FLOOR = "the shape itself, sampled twice"


def measure(suite: ShapeSuite, out: Path, source: Source, say: Say = print) -> None:
    """Reconstruct every case that ``out`` lacks; a shape that is not to be had becomes skipped rows.

    Surfaces are too large to be committed with runs.csv: those that pictures need and that are gone are made
    again, and their rows stay as they are.
    """
    log = StudyLog(out / "runs.csv", suite.name, "reconstruction")
    (out / "meshes").mkdir(exist_ok=True)
    before = read_results(log.path)
    for name, n in suite.cases():
        methods = [method for method in suite.methods if method.has_case(name, n, suite)]
        cases = [(method, _planned(name, n, suite, method)) for method in methods]
        waiting = [(m, p) for m, p in cases if not log.has(p) or _lost(name, p, suite, before, out)]
        if not waiting:
            continue
        try:
            shape = get_shape(name, source)
        except DataUnavailableError as error:
            for _, planned in waiting:
                log.add_new(replace(planned, status="skipped", reason=str(error)))
            continue
        _measure_floor(shape, suite, log)
        for method, planned in waiting:
            say(f"{shape.name}, n={n}: {method.label}")
            log.add_new(_reconstruct(shape, method, planned, suite, out))
    measure_query_times(suite, log, say)


def _lost(name: str, planned: Measurement, suite: ShapeSuite, before: Results, out: Path) -> bool:
    """Whether a measured case that pictures show has no surface any more."""
    label, n = planned.detector, planned.n_train
    drawn = n == suite.n_points and not before.reason(name, label, n)
    return drawn and not mesh_path(out, name, label, n).exists()


def _measure_floor(shape: Shape, suite: ShapeSuite, log: StudyLog) -> None:
    """Figures between two samples of a shape, which no reconstruction can be expected to undercut."""
    n = suite.n_compared
    planned = Measurement(shape.name, FLOOR, suite.seed, n, n_test=n, n_features=3)
    if not log.has(planned):
        pair = (sample_surface(shape, n, suite.seed + i) for i in (1, 4))
        log.add(replace(planned, metrics=surface_metrics(*pair)))


def mesh_path(out: Path, name: str, label: str, n: int) -> Path:
    """Where the surface of a case lies."""
    return out / "meshes" / f"{Path(name).stem}-{label.replace(' ', '_').replace(',', '')}-{n}.ply"


def traced_path(out: Path) -> Path:
    """Where the picture by sphere tracing lies: ``image`` and ``evaluations`` a pixel."""
    return out / "meshes" / "traced.npz"


def _planned(name: str, n: int, suite: ShapeSuite, method: ShapeMethod) -> Measurement:
    params = {**method.params, "sample": method.sample}
    return Measurement(Path(name).stem, method.label, suite.seed, n, params=params, n_features=3)


def _reconstruct(
    shape: Shape, method: ShapeMethod, planned: Measurement, suite: ShapeSuite, out: Path
) -> Measurement:
    if method.sample == "volume" and not shape.watertight:
        reason = "the shape encloses no volume to draw points from"
        return replace(planned, status="skipped", reason=reason)
    draw = sample_volume if method.sample == "volume" else sample_surface
    sample = draw(shape, planned.n_train, suite.seed)
    start = time.process_time()
    try:
        made = METHODS[method.method](sample, suite.seed, **method.params)
    except ImportError as error:
        return replace(planned, status="skipped", reason=f"{error.name} is not installed")
    fit_seconds = time.process_time() - start
    mesh, budget = made.mesh, made.budget
    if mesh is None:
        resolution = method.resolution or suite.resolution
        mesh, budget = _surface(made, resolution), {**budget, "grid": resolution}
    planned = replace(planned, budget=budget, fit_seconds=fit_seconds, n_test=suite.n_compared)
    if not len(mesh.faces):
        return replace(planned, status="failed", reason="the field has no zero level in B")
    mesh.export(mesh_path(out, planned.dataset, planned.detector, planned.n_train))
    if suite.traced_shape and _is_traced(planned, suite):
        _trace(made, suite.traced_shape, out)
    values, query_seconds = figures_of_merit(shape, made, mesh, suite.seed, suite.n_compared)
    values |= {"fit_seconds": fit_seconds, "query_seconds": query_seconds}
    return replace(planned, metrics=values, score_seconds=query_seconds)


def _surface(made: Reconstruction, resolution: int) -> trimesh.Trimesh:
    from tqdm import tqdm

    with tqdm(desc="grid", unit="block", leave=False, mininterval=2) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return extract_surface(made.field, resolution, lipschitz=made.lipschitz, progress=progress)


def _is_traced(planned: Measurement, suite: ShapeSuite) -> bool:
    case = (Path(suite.traced_shape or "").stem, suite.n_points, "OCSDF")
    return (planned.dataset, planned.n_train, planned.detector) == case


def _trace(made: Reconstruction, name: str, out: Path) -> None:
    assert made.lipschitz is not None
    image, evaluations = render_field(made.field, camera_for(name), made.lipschitz)
    np.savez_compressed(traced_path(out), image=image.astype(np.float32), evaluations=evaluations)


def figures_of_merit(
    shape: Shape, made: Reconstruction, mesh: trimesh.Trimesh, seed: int, n: int
) -> tuple[dict[str, float | str], float]:
    """Metrics of a reconstruction (a str: why one is undefined) and CPU seconds for ``n`` queries."""
    made_points = sample_surface(Shape("made", mesh, None, False), n, seed + 2)
    values = surface_metrics(made_points, sample_surface(shape, n, seed + 1))
    # Central differences must stay in B, where the field was learned.
    probes = 0.99 * ball_points(n, seed + 3)
    start = time.process_time()
    inside = made.field(probes) > 0
    seconds = time.process_time() - start
    values["volume_iou"] = _volume_iou(shape, made, probes, inside)
    values["eikonal_residual"] = metrics.eikonal_residual(made.field, probes[:4000])
    return values, seconds


def surface_metrics(points: Sample, reference: Sample) -> dict[str, float | str]:
    """Chamfer and Hausdorff distance and normal consistency of two samples of surfaces."""
    normals: float | str = "the reference is a point cloud without normals"
    if points.normals is not None and reference.normals is not None:
        normals = metrics.normal_consistency(
            points.points, points.normals, reference.points, reference.normals
        )
    return {
        "chamfer": metrics.chamfer(points.points, reference.points),
        "hausdorff95": metrics.hausdorff95(points.points, reference.points),
        "normal_consistency": normals,
    }


def _volume_iou(shape: Shape, made: Reconstruction, probes: np.ndarray, inside: np.ndarray) -> float | str:
    if shape.signed_distance is None or not shape.watertight:
        return "the reference is not watertight"
    if not made.encloses:
        return "the reconstruction encloses no volume"
    return metrics.volume_iou(inside, shape.signed_distance(probes) > 0)
