"""From points to surfaces: methods on the sphere, rays through a trained network, a study and its page."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

trimesh = pytest.importorskip("trimesh", reason="needs the extra 'shapes'")
pytest.importorskip("skimage", reason="needs the extra 'shapes'")
pytest.importorskip("igl", reason="needs the extra 'shapes'")
pytest.importorskip("embreex", reason="needs the extra 'shapes'")

from ocsdf_bench.cli import app  # noqa: E402
from ocsdf_bench.shapes import metrics  # noqa: E402
from ocsdf_bench.shapes.analytic import ANALYTIC  # noqa: E402
from ocsdf_bench.shapes.loader import load_shape  # noqa: E402
from ocsdf_bench.shapes.measure import FLOOR, measure  # noqa: E402
from ocsdf_bench.shapes.methods import METHODS, Reconstruction  # noqa: E402
from ocsdf_bench.shapes.reconstruct import extract_surface  # noqa: E402
from ocsdf_bench.shapes.render import Camera, render_field, render_mesh  # noqa: E402
from ocsdf_bench.shapes.results import best_comparator, read_results  # noqa: E402
from ocsdf_bench.shapes.shape import Sample, Shape, ball_points, sample_surface  # noqa: E402
from ocsdf_bench.shapes.sphere_tracing import sphere_trace  # noqa: E402
from ocsdf_bench.shapes.suite import read_suite  # noqa: E402
from ocsdf_bench.source import MirrorOrDownload  # noqa: E402
from ocsdf_bench.study import Measurement, StudyLog  # noqa: E402

ROOT = Path(__file__).parents[3]
SUITE = ROOT / "benchmarks" / "shapes.toml"
GUIDE = ROOT / "docs" / "shapes.md"
QUICK = {
    "margin": 0.02,
    "weight": 10.0,
    "hidden": (64, 64, 64),
    "activation": "groupsort2",
    "batch_size": 256,
    "newton_steps": 4,
    "learning_rate": 5e-3,
    "learning_rate_end": 0.0,
    "quantile": 0.1,
}


@pytest.fixture(scope="module")
def points() -> Sample:
    return sample_surface(ANALYTIC["sphere"](), 1000, 0)


@pytest.fixture(scope="module")
def trained(points: Sample) -> Reconstruction:
    return METHODS["OCSDF"](points, 0, **QUICK, max_steps=300)


def chamfer_to_sphere(made: Reconstruction) -> float:
    mesh = made.mesh or extract_surface(made.field, 64, lipschitz=made.lipschitz)
    surface = sample_surface(Shape("made", mesh, None, False), 5000, 1)
    return metrics.chamfer(surface.points, sample_surface(ANALYTIC["sphere"](), 5000, 2).points)


def test_ocsdf_finds_the_sphere_within_a_bound(trained: Reconstruction) -> None:
    # Two samples of the sphere itself are 0.02 apart; the level set is a shell about as wide as the margin.
    assert chamfer_to_sphere(trained) < 0.045


@pytest.mark.parametrize(
    ("method", "params", "bound"),
    [
        ("kNN field", {}, 0.11),  # a union of balls as wide as the largest gap between points
        ("alpha shape", {}, 0.03),
        ("Poisson", {"depth": 6}, 0.03),
        ("DeepSDF-style", {"hidden": (32, 32), "n_targets": 8000}, 0.04),
    ],
)
def test_comparators_find_the_sphere_within_a_bound(
    method: str, params: dict, bound: float, points: Sample
) -> None:
    if method == "Poisson":
        pytest.importorskip("pymeshlab", reason="needs the extra 'poisson'")
    assert chamfer_to_sphere(METHODS[method](points, 0, **params)) < bound


def test_knn_field_is_the_distance_to_the_points_but_for_its_level(points: Sample) -> None:
    made = METHODS["kNN field"](points, 0)
    x = ball_points(50, 3)
    nearest = np.linalg.norm(x[:, None] - points.points, axis=2).min(1)
    np.testing.assert_allclose(made.field(x), made.field(points.points[:1]) - nearest, atol=1e-12)


def test_alpha_shape_joins_no_points_that_are_farther_apart_than_its_radius_allows() -> None:
    # A plate of 0.1 spacing, twice: nothing may bridge the gap of 2 between them.
    ticks = 0.1 * np.arange(12)
    plate = np.stack(np.meshgrid(ticks, ticks, [0.0]), -1).reshape(-1, 3)
    cloud = np.concatenate([plate, plate + [0.0, 0.0, 2.0]])
    cloud += 1e-4 * np.random.default_rng(0).standard_normal(cloud.shape)
    made = METHODS["alpha shape"](Sample(cloud, None), 0)
    assert made.mesh is not None
    radius = made.budget["radius"]
    assert made.mesh.edges_unique_length.max() <= 2 * radius + 1e-9
    assert radius < 0.5
    assert made.mesh.area == pytest.approx(2 * 2 * 1.1**2, rel=0.1) or made.mesh.area >= 2 * 1.1**2


def test_no_ray_crosses_the_zero_level_of_a_trained_network(trained: Reconstruction) -> None:
    assert trained.lipschitz is not None
    rng = np.random.default_rng(4)
    origins = 2.0 * ball_points(400, 4)
    origins = origins[trained.field(origins) < 0]
    directions = -origins + 0.5 * rng.standard_normal(origins.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    trace = sphere_trace(trained.field, origins, directions, lipschitz=trained.lipschitz)
    assert trace.hit.mean() > 0.5
    for share in np.linspace(0, 1, 40):
        on_the_way = origins + share * trace.distance[:, None] * directions
        assert trained.field(on_the_way).max() <= 1e-9
    ends = origins + trace.distance[:, None] * directions
    assert np.abs(trained.field(ends[trace.hit])).max() <= 1e-3 * trained.lipschitz + 1e-9


def test_rays_and_marching_cubes_see_the_same_sphere() -> None:
    sphere = ANALYTIC["sphere"]()
    camera = Camera()
    traced, evaluations = render_field(sphere.signed_distance, camera, 1.0, pixels=64)
    meshed = render_mesh(sphere.mesh, camera, pixels=64, supersample=1)
    assert evaluations.min() >= 1
    both = (traced[..., 3] > 0) & (meshed[..., 3] > 0)
    assert np.mean(traced[..., 3] == meshed[..., 3]) > 0.98  # all but the silhouette
    assert np.abs(traced[both] - meshed[both]).mean() < 0.01


def test_pictures_show_the_front_and_the_right_way_up() -> None:
    camera = Camera(azimuth=0.0, elevation=0.0)
    np.testing.assert_allclose(camera.project(np.eye(3)), [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(Camera(up=1).project(np.array([[0.0, 1, 0]]))[0, 0], 0, atol=1e-12)
    bump = trimesh.creation.box(bounds=[[-0.1, -0.1, 0.2], [0.1, 0.1, 0.4]])
    rows = np.nonzero(render_mesh(bump, camera, pixels=32, supersample=1)[..., 3])[0]
    assert rows.max() < 16  # up is the upper half of the picture


MINI = """
name = "mini"
shapes = ["torus", "scan.xyz", "absent.off"]
n_points = 300
sweep_shapes = ["torus"]
sweep_n_points = [200]
traced_shape = "torus"
seed = 0
resolution = 24
n_compared = 1500
query_dimensions = [3]
query_n_points = [64, 128]
query_networks = [[8, 8]]

[[methods]]
method = "OCSDF"
params = {margin = 0.02, weight = 10.0, hidden = [16, 16], activation = "groupsort2", batch_size = 64, newton_steps = 2, max_steps = 40, learning_rate = 1e-2}

[[methods]]
label = "OCSDF, volume"
method = "OCSDF"
sample = "volume"
params = {margin = 0.02, weight = 10.0, hidden = [16, 16], activation = "groupsort2", batch_size = 64, newton_steps = 2, max_steps = 40, learning_rate = 1e-2}

[[methods]]
method = "kNN field"

[[methods]]
method = "alpha shape"
shapes = ["torus"]
"""  # noqa: E501


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "data").mkdir()
    np.savetxt(folder / "data" / "scan.xyz", sample_surface(ANALYTIC["sphere"](), 400, 5).points)
    (folder / "mini.toml").write_text(MINI)
    done = CliRunner().invoke(
        app,
        ["shapes", str(folder / "mini.toml"), "--out", str(folder / "out"), "--data", str(folder / "data"),
         "--offline"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return folder


def test_a_study_has_every_figure_of_merit_once(study: Path) -> None:
    with (study / "out" / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    keys = [(r["dataset"], r["detector"], r["n_train"], r["metric"]) for r in rows]
    assert len(keys) == len(set(keys))
    merits = {r["metric"] for r in rows if (r["dataset"], r["detector"]) == ("torus", "OCSDF")}
    assert merits == {
        "chamfer", "hausdorff95", "normal_consistency", "volume_iou", "eikonal_residual", "fit_seconds",
        "query_seconds",
    }  # fmt: skip
    assert {r["n_train"] for r in rows if (r["dataset"], r["detector"]) == ("torus", "kNN field")} == {
        "300", "200",
    }  # fmt: skip
    assert {(r["dataset"], r["n_train"]) for r in rows if r["detector"] == "alpha shape"} == {
        ("torus", "300")
    }


def test_what_was_measured_is_not_measured_again(study: Path) -> None:
    before = (study / "out" / "runs.csv").read_bytes()
    source, said = MirrorOrDownload(data_dir=study / "data", offline=True), []
    measure(read_suite(study / "mini.toml"), study / "out", source, said.append)
    assert said == []
    assert (study / "out" / "runs.csv").read_bytes() == before


def test_surfaces_that_are_gone_are_made_again_and_their_rows_stay(study: Path) -> None:
    out, source, said = study / "out", MirrorOrDownload(data_dir=study / "data", offline=True), []
    rows, lost = (out / "runs.csv").read_bytes(), out / "meshes" / "torus-OCSDF-300.ply"
    surface = lost.read_bytes()
    lost.unlink()
    measure(read_suite(study / "mini.toml"), out, source, said.append)
    assert said == ["torus, n=300: OCSDF"]
    assert (out / "runs.csv").read_bytes() == rows
    assert lost.read_bytes() == surface  # same seed, same surface


def test_a_failed_case_that_was_measured_again_counts_as_measured(tmp_path: Path) -> None:
    log = StudyLog(tmp_path / "runs.csv", "mini", "reconstruction")
    log.add(Measurement("torus", "OCSDF", 0, 10, status="failed", reason="the field has no zero level in B"))
    assert read_results(log.path).reason("torus", "OCSDF", 10) == "the field has no zero level in B"
    log.add(Measurement("torus", "OCSDF", 0, 10, metrics={"chamfer": 0.5}))
    results = read_results(log.path)
    assert (results.value("torus", "OCSDF", 10, "chamfer"), results.reason("torus", "OCSDF", 10)) == (0.5, "")


def test_a_table_begun_with_other_columns_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("suite,dataset,detector,params,seed,n_train,metric,value,status,retired\n")
    log = StudyLog(path, "mini", "reconstruction")
    log.add(Measurement("torus", "OCSDF", 0, 10, metrics={"chamfer": 0.5}))
    assert path.read_text().splitlines()[1] == "mini,torus,OCSDF,{},0,10,chamfer,0.5,ok,"
    assert log.has(Measurement("torus", "OCSDF", 0, 10))


def test_what_is_missing_is_a_row_with_its_reason(study: Path) -> None:
    results = read_results(study / "out" / "runs.csv")
    assert "absent.off" in results.reason("absent.off", "OCSDF", 300)
    assert "no volume" in results.reason("scan.xyz", "OCSDF, volume", 300)
    reasons = results.reasons[("scan", "OCSDF", 300)]
    assert reasons["normal_consistency"] == "the reference is a point cloud without normals"
    assert reasons["volume_iou"] == "the reference is not watertight"
    assert results.value("torus", "alpha shape", 300, "volume_iou") is None


def test_the_query_table_has_each_dimension_size_and_method(study: Path) -> None:
    results = read_results(study / "out" / "runs.csv")
    for label in ("k-d tree", "network 8-8"):
        assert all(results.value("gaussian-3d", label, n, "query_seconds") > 0 for n in (64, 128))
    page = (study / "out" / "README.md").read_text()
    assert "| dimensions | method | n = 64 | n = 128 |" in page
    assert "| 3 | network 8-8 |" in page


def test_the_page_shows_measured_numbers_and_its_figures(study: Path) -> None:
    suite, results = read_suite(study / "mini.toml"), read_results(study / "out" / "runs.csv")
    page = (study / "out" / "README.md").read_text()
    best = best_comparator(suite, results, "torus")
    assert best in ("kNN field", "alpha shape")
    for label in ("OCSDF", best):
        assert f"| {label} | {results.value('torus', label, 300, 'chamfer'):.4f} |" in page
    assert results.value("torus", FLOOR, 1500, "chamfer") < results.value("torus", best, 300, "chamfer")
    assert "reduced" in page
    for name in ("shapes-1", "example", "traced", "error", "query_time"):
        assert (study / "out" / "figures" / f"{name}.png").stat().st_size > 10_000
    assert f"*{results.reason('absent.off', 'OCSDF', 300)}*" in page


def test_surfaces_are_written_as_files_that_load(study: Path) -> None:
    shape = load_shape(study / "out" / "meshes" / "torus-kNN_field-300.ply")
    assert shape.watertight


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 0", "sed = 0", r"may have any key of.* seed,.*unknown \['sed'\], missing \[\]"),
        ('shapes = ["torus", "scan.xyz", "absent.off"]\n', "", r"missing \['shapes'\]"),
        ('method = "kNN field"', 'method = "kNN"', "must be one of OCSDF, kNN field"),
        ('method = "kNN field"', 'method = "kNN field"\nparams.level = 1', "takes label.*got params.level"),
        ('sample = "volume"', 'sample = "inside"', "must be 'surface' or 'volume'; got 'inside'"),
        ('traced_shape = "torus"', 'traced_shape = "box"', r"must be among its `shapes`; got \['box'\]"),
        ('"alpha shape"\nshapes = ["torus"]', '"alpha shape"\nshapes = ["box"]', r"suite's; got \['box'\]"),
    ],
)
def test_a_mistake_in_a_study_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in MINI
    (tmp_path / "wrong.toml").write_text(MINI.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_suite(tmp_path / "wrong.toml")
    refused = CliRunner().invoke(
        app, ["shapes", str(tmp_path / "wrong.toml"), "--out", str(tmp_path / "out")]
    )
    assert refused.exit_code == 2
    assert not (tmp_path / "out").exists()


def _guide(kind: str) -> list[str]:
    if not GUIDE.exists():
        pytest.skip("the documentation is not part of the installed package")
    blocks = re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    # The guide's budget makes a good surface; that each line runs shows in less.
    return [re.sub(r"(max_steps ?= ?)\d+", r"\g<1>160", block).replace("200", "40") for block in blocks]


def test_the_guide_makes_a_mesh_of_a_scan_in_the_units_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = 50 * sample_surface(ANALYTIC["torus"](), 1500, 0).points + [100.0, 0, 0]
    np.savetxt(tmp_path / "scan.xyz", scan)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in _guide("python"):
        exec(block, names)  # noqa: S102
    made = trimesh.load_mesh(tmp_path / "scan.obj")
    np.testing.assert_allclose(made.bounds, [scan.min(0), scan.max(0)], atol=5.0)  # a cell is 3.2 wide
    assert names["trace"].hit.any()


def test_the_guide_s_study_of_one_shape_has_a_page_and_a_picture(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "scan.xyz", sample_surface(ANALYTIC["torus"](), 1500, 0).points)
    (tmp_path / "mine.toml").write_text(_guide("toml")[0])
    done = CliRunner().invoke(
        app, ["shapes", str(tmp_path / "mine.toml"), "--data", str(tmp_path), "--out", str(tmp_path / "mine")]
    )
    assert done.exit_code == 0, done.output
    page = (tmp_path / "mine" / "README.md").read_text()
    assert "| **scan** |" in page
    assert "batch 1,024, T = 8" in page  # what the file leaves out is stated all the same
    assert [path.name for path in (tmp_path / "mine" / "figures").iterdir()] == ["shapes-1.png"]


def test_the_committed_study_has_the_papers_batch_and_newton_steps() -> None:
    suite = read_suite(SUITE)
    assert {n for s, n in suite.cases() if s == "sphere"} == {512, 2048, 8192}
    assert suite.resolution == 200
    for method in suite.methods:
        if method.method == "OCSDF":
            assert (method.resolved["batch_size"], method.resolved["newton_steps"]) == (1024, 8)
    (paper,) = (m for m in suite.methods if m.label == "OCSDF, tabular net")
    assert (paper.resolved["hidden"], paper.resolved["activation"], paper.resolved["weight"]) == (
        (512, 512, 512, 512), "fullsort", 100.0,
    )  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["bed_0001.off", "chair_0001.off", "toilet_0001.off", "spot.obj", "fandisk.obj"]
)
def test_real_meshes_load_normalised_with_points_on_their_zero_level(name: str) -> None:
    if not os.environ.get("OCSDF_DATA"):
        pytest.skip("needs the folder of real data in OCSDF_DATA")
    shape = load_shape(Path(os.environ["OCSDF_DATA"]) / "meshes" / name)
    assert shape.watertight == name.endswith(".obj")  # meshes of ModelNet10 leak
    assert np.linalg.norm(shape.mesh.vertices, axis=1).max() == pytest.approx(0.8)
    assert np.abs(shape.signed_distance(sample_surface(shape, 500, 0).points)).max() < 1e-9
