"""Shapes without a network: distances, samples, grids, rays and figures of merit against closed forms."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

trimesh = pytest.importorskip("trimesh", reason="needs the extra 'shapes'")
pytest.importorskip("skimage", reason="needs the extra 'shapes'")
pytest.importorskip("igl", reason="needs the extra 'shapes'")

from ocsdf_bench.dataset import DataCorruptError, DataUnavailableError  # noqa: E402
from ocsdf_bench.shapes import loader, metrics  # noqa: E402
from ocsdf_bench.shapes.analytic import ANALYTIC  # noqa: E402
from ocsdf_bench.shapes.reconstruct import extract_surface  # noqa: E402
from ocsdf_bench.shapes.shape import (  # noqa: E402
    EXTENT,
    Shape,
    ball_points,
    sample_surface,
    sample_volume,
    to_domain,
)
from ocsdf_bench.shapes.sphere_tracing import sphere_trace  # noqa: E402
from ocsdf_bench.source import MirrorOrDownload  # noqa: E402

OFFLINE = MirrorOrDownload(offline=True, cache=Path("no-such-folder"))
NAMES = sorted(ANALYTIC)


@pytest.mark.parametrize("name", NAMES)
def test_closed_form_agrees_with_the_distance_to_the_mesh(name: str) -> None:
    shape = ANALYTIC[name]()
    points = ball_points(2_000, 0)
    assert shape.signed_distance is not None
    # The chord error of the finest tessellation: 0.8 (1 - cos(pi/192)) is under 3e-4.
    np.testing.assert_allclose(
        loader.mesh_distance(shape.mesh)(points), shape.signed_distance(points), atol=3e-4
    )


@pytest.mark.parametrize("name", NAMES)
def test_signed_distance_has_slope_one(name: str) -> None:
    # Finite differences lose it only within a step of the medial axis, where few of the points lie.
    assert metrics.eikonal_residual(ANALYTIC[name]().signed_distance, ball_points(2_000, 1)) < 5e-3


@pytest.mark.parametrize("name", NAMES)
def test_surface_samples_lie_on_the_surface_with_outward_normals(name: str) -> None:
    shape = ANALYTIC[name]()
    sample = sample_surface(shape, 500, 0)
    np.testing.assert_allclose(shape.signed_distance(sample.points), 0, atol=3e-4)
    outside = shape.signed_distance(sample.points + 0.01 * sample.normals)
    np.testing.assert_allclose(outside, -0.01, atol=1e-3)


def test_volume_samples_are_uniform_inside() -> None:
    radius = np.linalg.norm(sample_volume(ANALYTIC["sphere"](), 4_000, 0).points, axis=1)
    assert radius.max() < EXTENT
    # Half of a ball's volume lies within r/2^(1/3); three standard deviations of a share of 4,000.
    assert abs(np.mean(radius < EXTENT * 0.5 ** (1 / 3)) - 0.5) < 0.024


def test_same_seed_gives_the_same_points() -> None:
    torus = ANALYTIC["torus"]()
    np.testing.assert_array_equal(sample_surface(torus, 64, 3).points, sample_surface(torus, 64, 3).points)


@pytest.mark.parametrize("suffix", ["off", "obj", "ply", "stl"])
def test_every_mesh_format_gives_the_normalised_box(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"crate.{suffix}"
    trimesh.creation.box(extents=(3.0, 2.0, 1.5)).apply_translation((5.0, 6.0, 7.0)).export(path)
    shape = loader.get_shape(str(path), OFFLINE)
    assert (shape.name, shape.watertight) == ("crate", True)
    points = ball_points(500, 2)
    # STL stores single precision.
    np.testing.assert_allclose(
        shape.signed_distance(points), ANALYTIC["box"]().signed_distance(points), atol=1e-6
    )


def test_a_surface_goes_back_to_the_units_of_its_file(tmp_path: Path) -> None:
    crate = trimesh.creation.box(bounds=[[1.0, 2.0, 3.0], [4.0, 4.0, 4.5]])
    crate.export(tmp_path / "crate.ply")
    shape = loader.load_shape(tmp_path / "crate.ply")
    np.testing.assert_allclose(
        shape.to_file_units(shape.mesh).bounds, crate.bounds, atol=1e-6
    )  # single precision
    np.save(tmp_path / "corners.npy", crate.vertices)
    cloud = loader.load_shape(tmp_path / "corners.npy")
    normalised = trimesh.Trimesh(cloud.cloud, crate.faces, process=False)
    np.testing.assert_allclose(cloud.to_file_units(normalised).vertices, crate.vertices, atol=1e-12)


@pytest.mark.parametrize("suffix", ["npy", "xyz", "ply"])
def test_point_clouds_have_points_and_no_inside(suffix: str, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    path = tmp_path / f"scan.{suffix}"
    if suffix == "npy":
        np.save(path, points)
    elif suffix == "xyz":
        np.savetxt(path, np.column_stack([points, points]))  # a scanner's file: colours or normals follow
    else:
        trimesh.PointCloud(points).export(path)
    shape = loader.load_shape(path)
    assert shape.mesh is None
    assert shape.signed_distance is None
    assert np.linalg.norm(shape.cloud, axis=1).max() == pytest.approx(EXTENT)
    assert len(sample_surface(shape, 10, 0).points) == 10
    with pytest.raises(ValueError, match="must have a signed distance; got the cloud 'scan'"):
        sample_volume(shape, 5, 0)


def test_modelnet10_is_read_from_its_archive_without_unpacking(tmp_path: Path) -> None:
    (tmp_path / "modelnet10").mkdir()
    off = trimesh.exchange.off.export_off(trimesh.creation.box())
    with zipfile.ZipFile(tmp_path / "modelnet10" / "ModelNet10.zip", "w") as archive:
        archive.writestr("ModelNet10/chair/train/chair_0001.off", off.replace("OFF\n", "OFF", 1))
    source = MirrorOrDownload(data_dir=tmp_path, offline=True)
    shape = loader.get_shape("modelnet10/chair/train/chair_0001", source)
    assert (shape.name, len(shape.mesh.faces)) == ("chair_0001", 12)
    with pytest.raises(LookupError, match="names read modelnet10/CLASS"):
        loader.get_shape("modelnet10/chair/train/chair_9999", source)


def test_unusable_files_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailableError, match=r"meshes/absent\.off"):
        loader.get_shape("meshes/absent.off", OFFLINE)
    (tmp_path / "shape.step").write_text("")
    with pytest.raises(ValueError, match=r"must end in one of \.off.*got 'shape\.step'"):
        loader.load_shape(tmp_path / "shape.step")
    (tmp_path / "broken.off").write_text("OFF\n3 1 0\n0 0 0\n")
    with pytest.raises(DataCorruptError, match="'broken'"):
        loader.load_shape(tmp_path / "broken.off")
    np.save(tmp_path / "flat.npy", np.zeros((5, 2)))
    with pytest.raises(DataCorruptError, match=r"got shape \(5, 2\)"):
        loader.load_shape(tmp_path / "flat.npy")
    with pytest.raises(ValueError, match="two different points"):
        to_domain(np.ones((4, 3)))


def test_a_hole_does_not_turn_the_inside_over() -> None:
    mesh = ANALYTIC["sphere"]().mesh
    leaky = trimesh.Trimesh(mesh.vertices, mesh.faces[mesh.triangles_center[:, 2] < 0.75])
    assert not leaky.is_watertight
    points = ball_points(2_000, 3)
    points = points[np.abs(points[:, 2]) < 0.6]
    inside = loader.mesh_distance(leaky)(points) > 0
    # Away from the hole only the curvature between two triangles can turn a sign.
    assert np.mean(inside == (np.linalg.norm(points, axis=1) < EXTENT)) > 0.995


@pytest.mark.parametrize("name", NAMES)
def test_marching_cubes_is_watertight_oriented_and_within_a_cell(name: str) -> None:
    shape = ANALYTIC[name]()
    mesh = extract_surface(shape.signed_distance, 65)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(shape.mesh.volume, rel=0.02)
    assert np.abs(shape.signed_distance(mesh.vertices)).max() < 2 / 64


def test_skipping_proven_empty_blocks_changes_no_vertex_and_saves_most_rows() -> None:
    torus = ANALYTIC["torus"]()
    rows = {"all": 0, "proven": 0, "largest": 0}

    def counted(kind: str):  # noqa: ANN202
        def field(points: np.ndarray) -> np.ndarray:
            rows[kind] += len(points)
            rows["largest"] = max(rows["largest"], len(points))
            return torus.signed_distance(points)

        return field

    done: list[tuple[int, int]] = []
    full = extract_surface(counted("all"), 70, rows=4096)
    fast = extract_surface(
        counted("proven"), 70, rows=4096, lipschitz=1.0, progress=lambda *at: done.append(at)
    )
    np.testing.assert_array_equal(full.vertices, fast.vertices)
    np.testing.assert_array_equal(full.faces, fast.faces)
    assert rows["all"] == 70**3
    assert rows["proven"] < 0.5 * rows["all"]
    assert rows["largest"] <= 4096
    assert done[-1][0] == done[-1][1]


def test_a_field_without_zero_gives_an_empty_mesh() -> None:
    assert not len(extract_surface(lambda x: np.ones(len(x)), 16).faces)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(NAMES), st.floats(1.0, 3.0), st.integers(0, 2**31))
def test_sphere_tracing_never_crosses_the_surface(name: str, lipschitz: float, seed: int) -> None:
    shape = ANALYTIC[name]()
    rng = np.random.default_rng(seed)
    origins = 2 * ball_points(200, seed)
    origins = origins[shape.signed_distance(origins) < 0]
    directions = rng.normal(size=origins.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    trace = sphere_trace(shape.signed_distance, origins, directions, lipschitz=lipschitz)
    # Every place on the way is outside: looked at 50 of them, rounding aside.
    for share in np.linspace(0, 1, 50):
        on_the_way = origins + share * trace.distance[:, None] * directions
        assert shape.signed_distance(on_the_way).max() <= 1e-12
    end = origins + trace.distance[:, None] * directions
    assert np.all(np.abs(shape.signed_distance(end[trace.hit])) <= 1e-3 * lipschitz + 1e-12)


def test_sphere_tracing_meets_the_sphere_where_geometry_says() -> None:
    heights = np.linspace(0, 0.79, 20)
    origins = np.column_stack([np.full(20, -2.0), heights, np.zeros(20)])
    trace = sphere_trace(
        ANALYTIC["sphere"]().signed_distance,
        origins,
        np.tile([1.0, 0, 0], (20, 1)),
        lipschitz=1.0,
        tolerance=1e-6,
    )
    assert trace.hit.all()
    np.testing.assert_allclose(trace.distance, 2 - np.sqrt(EXTENT**2 - heights**2), atol=1e-5)


def test_sphere_tracing_refuses_a_constant_that_is_none() -> None:
    ray = np.ones((1, 3))
    with pytest.raises(ValueError, match="must be a proven constant > 0; got nan"):
        sphere_trace(lambda x: x[:, 0], ray, ray, lipschitz=float("nan"))


def test_chamfer_and_hausdorff_of_two_spheres_are_their_gap() -> None:
    points = sample_surface(ANALYTIC["sphere"](), 20_000, 0).points
    for gap in (0.1, 0.2):
        outer = points * (1 + gap / EXTENT)
        # The same directions, so the nearest point of the other sphere is the radial one.
        assert metrics.chamfer(points, outer) == pytest.approx(gap, rel=0.01)
        assert metrics.hausdorff95(points, outer) == pytest.approx(gap, rel=0.01)
        normals = points / EXTENT
        assert metrics.normal_consistency(points, normals, outer, -normals) > 0.999


def test_hausdorff_counts_a_missing_half_that_a_one_sided_distance_would_not() -> None:
    points = sample_surface(ANALYTIC["sphere"](), 5_000, 0).points
    half = points[points[:, 0] > 0]
    assert metrics.hausdorff95(half, points) == metrics.hausdorff95(points, half) > 0.5


def test_volume_iou_of_two_boxes_is_the_share_of_their_volumes() -> None:
    points = np.random.default_rng(0).uniform(size=(50_000, 3))
    assert metrics.volume_iou(points[:, 0] < 0.6, points[:, 0] < 0.3) == pytest.approx(0.5, abs=0.01)
    assert metrics.volume_iou(points[:, 0] > 2, points[:, 0] > 2) == 0.0


def test_a_sample_of_a_shape_without_a_mesh_keeps_its_rows() -> None:
    cloud = np.random.default_rng(0).normal(size=(20, 3))
    shape = Shape("cloud", None, None, False, cloud)
    rows = {tuple(row) for row in sample_surface(shape, 8, 0).points}
    assert len(rows) == 8
    assert rows <= {tuple(row) for row in cloud}
