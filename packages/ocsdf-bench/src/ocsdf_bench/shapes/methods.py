"""Ways from points to a surface: OCSDF and what it is compared with."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import Delaunay, KDTree

from ocsdf_bench.shapes.loader import mesh_distance
from ocsdf_bench.shapes.shape import Field, Sample, ball_points

if TYPE_CHECKING:
    import trimesh


@dataclass(frozen=True)
class Reconstruction:
    """What a method makes of a sample.

    field : (n, 3) -> (n,), positive inside, zero on the surface; of a method that returns a mesh it is the
    signed distance to that mesh. mesh : None where the surface is the field's zero level. lipschitz : proven
    constant of ``field``, if there is one. budget : what was resolved or reduced. encloses : False where the
    mesh has no inside, so that no volume can be compared.
    """

    field: Field
    mesh: trimesh.Trimesh | None = None
    lipschitz: float | None = None
    budget: dict[str, Any] = dataclasses.field(default_factory=dict)
    encloses: bool = True


def ocsdf(
    sample: Sample,
    seed: int,
    *,
    margin: float = 0.02,
    weight: float = 100.0,
    hidden: tuple[int, ...] = (512, 512, 512, 512),
    activation: str = "fullsort",
    batch_size: int = 1024,
    newton_steps: int = 8,
    max_steps: int = 10_000,
    learning_rate: float = 5e-4,
    learning_rate_end: float | None = None,
    quantile: float = 0.01,
) -> Reconstruction:
    """The distance recipe on B; the surface is the level at ``quantile`` of the training scores."""
    from ocsdf import OCSDF, Ball

    model = OCSDF.paper(
        margin=margin,
        weight=weight,
        hidden=tuple(hidden),
        activation=activation,
        batch_size=batch_size,
        steps=newton_steps,
        epochs=None,
        max_steps=max_steps,
        learning_rate=learning_rate,
        learning_rate_end=learning_rate_end,
        domain=Ball(1.0),
        scale="none",
        random_state=seed,
    )
    model.fit(sample.points)
    level = float(np.quantile(model.score_samples(sample.points), quantile))
    budget = {"steps": max_steps, "hidden": list(hidden), "batch": batch_size, "level": round(level, 5)}
    return Reconstruction(lambda x: model.score_samples(x) - level, None, float(model.lipschitz_), budget)


def knn_field(sample: Sample, seed: int, *, quantile: float = 0.99) -> Reconstruction:
    """Distance to the nearest sample point, cut at a level: a union of balls around the points.

    The level is ``quantile`` of the points' distances to their nearest other point, the same rule as
    OCSDF's where each point is left out of its own score. The constant is 1.
    """
    tree = KDTree(sample.points)
    level = float(np.quantile(tree.query(sample.points, k=2)[0][:, 1], quantile))
    return Reconstruction(lambda x: level - tree.query(x)[0], None, 1.0, {"level": round(level, 5)})


def deepsdf(
    sample: Sample,
    seed: int,
    *,
    hidden: tuple[int, ...] = (128, 128, 128, 128),
    n_targets: int = 20_000,
    spread: float = 0.05,
    clamp: float = 0.1,
    epochs: int = 30,
) -> Reconstruction:
    """A ReLU network a shape, regressed on clamped distances, after DeepSDF (Park et al., CVPR 2019).

    Targets: distance to the nearest sample point by a k-d tree, signed by that point's normal. Half of the
    places are sample points moved by N(0, spread²), half are uniform in B. Without normals there is no sign
    and the surface is the level of ``knn_field``.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    rng = np.random.default_rng(seed)
    near = sample.points[rng.integers(len(sample.points), size=n_targets // 2)]
    places = np.concatenate(
        [near + spread * rng.standard_normal(near.shape), ball_points(n_targets // 2, seed)]
    )
    distance, nearest = KDTree(sample.points).query(places)
    level = 0.0
    if sample.normals is None:
        target = -distance
        level = -knn_field(sample, seed).budget["level"]
    else:
        outward = ((places - sample.points[nearest]) * sample.normals[nearest]).sum(1)
        target = np.where(outward > 0, -distance, distance)
    network = MLPRegressor(
        hidden_layer_sizes=tuple(hidden),
        batch_size=512,
        max_iter=epochs,
        tol=0.0,
        alpha=0.0,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the epochs are the budget, not a stopping rule
        network.fit(places, np.clip(target, -clamp, clamp) / clamp)
    budget = {"epochs": epochs, "hidden": list(hidden), "targets": n_targets}
    return Reconstruction(lambda x: clamp * network.predict(x) - level, None, None, budget)


def alpha_shape(sample: Sample, seed: int, *, factor: float = 1.0) -> Reconstruction:
    """Boundary of the alpha complex: small Delaunay tetrahedra, and the small triangles that belong to none.

    Small: the circumscribed sphere (or circle) has at most ``factor`` times the 99 % quantile of the points'
    distances to their eighth neighbour as radius. Points on a surface leave mostly triangles without a
    consistent side, so the result encloses no volume.

    Source: Edelsbrunner and Mücke, ACM Transactions on Graphics 1994.
    """
    import trimesh

    points = sample.points
    limit = factor * float(np.quantile(KDTree(points).query(points, k=9)[0][:, 8], 0.99))
    cells = np.sort(Delaunay(points).simplices, axis=1)
    small = _circumradius(points[cells]) <= limit
    faces = np.sort(cells[:, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]].reshape(-1, 3), axis=1)
    faces, owner = np.unique(faces, axis=0, return_inverse=True)
    # 0: a face of no small tetrahedron, 1: on their boundary, 2: between two of them.
    sides = np.bincount(owner.ravel(), np.repeat(small, 4), minlength=len(faces))
    lone = (sides == 0) & (_circumradius(points[faces]) <= limit)
    mesh = trimesh.Trimesh(points, faces[lone | (sides == 1)], process=False)
    return Reconstruction(mesh_distance(mesh), mesh, None, {"radius": round(limit, 5)}, encloses=False)


def poisson(sample: Sample, seed: int, *, depth: int = 7) -> Reconstruction:
    """Screened Poisson (Kazhdan and Hoppe, 2013) as MeshLab has it; needs the extra ``poisson``.

    It is given the reference's outward normals; a cloud has none, so they are estimated from 10 neighbours.
    """
    import pymeshlab
    import trimesh

    meshes = pymeshlab.MeshSet()
    known = {} if sample.normals is None else {"v_normals_matrix": sample.normals}
    meshes.add_mesh(pymeshlab.Mesh(vertex_matrix=sample.points, **known))
    if sample.normals is None:
        meshes.compute_normal_for_point_clouds(k=10, smoothiter=2)
    meshes.generate_surface_reconstruction_screened_poisson(depth=depth, threads=1)
    made = meshes.current_mesh()
    mesh = trimesh.Trimesh(made.vertex_matrix(), made.face_matrix(), process=True)
    return Reconstruction(mesh_distance(mesh), mesh, None, {"depth": depth})


def _circumradius(corners: np.ndarray) -> np.ndarray:
    """Radius (n,) of the circle or sphere through corners (n, 3 or 4, 3); infinite for flat simplices.

    The centre relative to the first corner lies in the span of the edges e: centre = Σ c_i e_i with
    2 (e eᵀ) c = diag(e eᵀ).
    """
    edges = corners[:, 1:] - corners[:, :1]
    gram = edges @ edges.transpose(0, 2, 1)
    flat = np.linalg.det(gram) < 1e-24
    gram[flat] = np.eye(edges.shape[1])
    diagonal = np.diagonal(gram, axis1=1, axis2=2)
    weights = np.linalg.solve(2 * gram, diagonal[..., None])
    radius = np.linalg.norm((weights * edges).sum(1), axis=1)
    return np.where(flat, np.inf, radius)


Method = Callable[..., Reconstruction]

METHODS: dict[str, Method] = {
    "OCSDF": ocsdf,
    "kNN field": knn_field,
    "DeepSDF-style": deepsdf,
    "alpha shape": alpha_shape,
    "Poisson": poisson,
}
