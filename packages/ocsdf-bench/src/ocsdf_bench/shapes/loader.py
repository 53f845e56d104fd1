"""Shapes from files: meshes (OFF, OBJ, PLY, STL), point clouds (.npy, .xyz, .ply) and ModelNet10."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ocsdf_bench.archive import members
from ocsdf_bench.dataset import DataCorruptError, Source
from ocsdf_bench.shapes.analytic import ANALYTIC
from ocsdf_bench.shapes.shape import Field, Shape, to_domain

if TYPE_CHECKING:
    import trimesh

MODELNET10_URL = "http://3dvision.princeton.edu/projects/2014/3DShapeNets/ModelNet10.zip"
"""Wu et al., "3D ShapeNets", CVPR 2015. Princeton publishes no checksum, so none is checked."""

MESH_SUFFIXES = (".off", ".obj", ".ply", ".stl")


def get_shape(name: str, source: Source) -> Shape:
    """The shape a suite names.

    Parameters
    ----------
    name : str
        "sphere", "box" or "torus"; "modelnet10/chair/train/chair_0001" for a mesh of ModelNet10; else the
        path of a mesh or a point cloud, relative to the folder of data or as it stands.
    source : Source
        Where files come from. Raises its ``DataUnavailableError`` where the file is not to be had.
    """
    if name in ANALYTIC:
        return ANALYTIC[name]()
    if name.startswith("modelnet10/"):
        return _modelnet10(name, source)
    path = Path(name) if Path(name).exists() else source.path(name, url=None, sha256=None)
    return load_shape(path)


def load_shape(path: Path) -> Shape:
    """The mesh or point cloud of a file, normalised to B and named by the file's stem.

    Raises ``DataCorruptError`` on a file that holds no finite surface or points.
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return cloud_shape(path.stem, np.load(path, allow_pickle=False))
    if suffix == ".xyz":
        return cloud_shape(path.stem, np.loadtxt(path, usecols=(0, 1, 2), ndmin=2))
    if suffix not in MESH_SUFFIXES:
        allowed = ", ".join((*MESH_SUFFIXES, ".npy", ".xyz"))
        raise ValueError(f"`path` of load_shape must end in one of {allowed}; got '{path.name}'.")
    return _from_bytes(path.stem, path.read_bytes(), suffix[1:])


def cloud_shape(name: str, points: np.ndarray) -> Shape:
    """A bare point cloud (n, 3), normalised to B: it has no inside and no signed distance."""
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4 or not np.isfinite(points).all():
        raise DataCorruptError(
            f"point cloud '{name}' must be >= 4 finite rows of 3; got shape {points.shape}."
        )
    centre, factor = to_domain(points)
    return Shape(name, None, None, False, (points - centre) * factor, centre, factor)


def mesh_shape(name: str, mesh: trimesh.Trimesh) -> Shape:
    """A triangle mesh, normalised to B, with the signed distance of ``mesh_distance``."""
    centre, factor = to_domain(np.asarray(mesh.vertices))
    mesh = mesh.copy()
    mesh.apply_translation(-centre)
    mesh.apply_scale(factor)
    mesh.merge_vertices(merge_tex=True, merge_norm=True)  # a texture seam is no hole
    watertight = bool(mesh.is_watertight)
    return Shape(name, mesh, mesh_distance(mesh), watertight, centre=centre, factor=factor)


def mesh_distance(mesh: trimesh.Trimesh) -> Field:
    """Signed distance to a mesh: (n, 3) -> (n,), positive inside.

    Inside is where the generalised winding number exceeds 1/2 in absolute value, so that a hole in the
    mesh blurs the inside near it and does not turn it over.

    Source: Jacobson et al., SIGGRAPH 2013; Barill et al., SIGGRAPH 2018 (the fast form used here).
    """
    import igl

    vertices = np.ascontiguousarray(mesh.vertices, dtype=np.float64)
    faces = np.ascontiguousarray(mesh.faces, dtype=np.int64)

    def distance(points: np.ndarray) -> np.ndarray:
        points = np.ascontiguousarray(points, dtype=np.float64)
        squared = igl.point_mesh_squared_distance(points, vertices, faces)[0]
        winding = igl.fast_winding_number(vertices, faces, points)
        return np.where(np.abs(winding) > 0.5, 1.0, -1.0) * np.sqrt(squared)

    return distance


def _from_bytes(name: str, content: bytes, kind: str) -> Shape:
    import trimesh

    try:
        loaded: Any = trimesh.load(io.BytesIO(content), file_type=kind, process=True)
    except (ValueError, IndexError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise DataCorruptError(f"mesh '{name}' must be a {kind.upper()} file; got {error}.") from error
    if isinstance(loaded, trimesh.Scene):
        loaded = loaded.to_mesh()
    if isinstance(loaded, trimesh.PointCloud) or (
        not len(getattr(loaded, "faces", ())) and len(loaded.vertices)
    ):
        return cloud_shape(name, np.asarray(loaded.vertices))
    if not len(loaded.faces) or not np.isfinite(loaded.vertices).all():
        raise DataCorruptError(
            f"mesh '{name}' must have finite vertices and faces; got {len(loaded.faces)} faces."
        )
    return mesh_shape(name, loaded)


def _modelnet10(name: str, source: Source) -> Shape:
    archive = source.path("modelnet10/ModelNet10.zip", url=MODELNET10_URL, sha256=None)
    wanted = f"ModelNet10/{name.removeprefix('modelnet10/')}.off"
    # 4,899 meshes and as many sidecar files of the packer's system.
    for _, content in members(archive, wanted.__eq__, max_bytes=1 << 28, max_members=20_000):
        return _from_bytes(Path(wanted).stem, content, "off")
    raise LookupError(f"no '{wanted}' in {archive.name}; names read modelnet10/CLASS/train/CLASS_0001.")
