"""A saved detector is the same detector, and a file that is not one is refused with a sentence."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

import ocsdf
from ocsdf import (
    OCSDF,
    AveragePool,
    Ball,
    Box,
    Conv2D,
    Dense,
    DownSample,
    Flatten,
    GroupSort,
    L2NormPool,
    LipschitzNet,
    Residual,
    build,
    dense,
    patches,
    references,
)
from ocsdf._persist import _checksum


def drawn_by_a_function(x, members, rng):
    return build(dense((6,), sort=None), x, members=members, rng=rng)


X = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 5.0, 0.1]
IMAGES = np.random.default_rng(1).integers(0, 256, (30, 8, 8, 3)).astype(np.uint8)
IMAGE_LAYERS = (
    Conv2D(6),
    GroupSort(2),
    Residual((Conv2D(6, padding="circular"), GroupSort(2))),
    DownSample(2),
    L2NormPool(2),
    AveragePool(2),
    Flatten(),
    Dense(1),
)
DETECTORS = {
    "references": OCSDF(random_state=0),
    "dense": OCSDF(hidden=(8, 8), max_steps=5, random_state=0, outside="anomalous"),
    "paper": OCSDF.paper(hidden=(8,), max_steps=5, random_state=0, domain=Ball(5.0)),
    "gaussian start": OCSDF.paper(hidden=(8,), max_steps=5, random_state=0, domain="gaussian"),
    "layers": OCSDF(
        network=dense((8,), sort=3), max_steps=5, random_state=0, domain=Box(-5.0, [5.0, 6.0, 7.0])
    ),
    "function": OCSDF(network=drawn_by_a_function, max_steps=5, random_state=0),
    "unscaled": OCSDF(network=references(count=20), scale="none", n_networks=np.int64(2), random_state=0),
    "patches": OCSDF(network=patches(8, 2), max_steps=0, random_state=0),
    # Convolutions are trained in TensorFlow, and random weights are enough to store.
    "images": OCSDF(network=IMAGE_LAYERS, max_steps=0, n_networks=2, random_state=0),
}


def rows_of(name):
    return IMAGES if name == "images" else X


def rewritten(path, change, seal=True):
    """The file with its content changed by ``change``, its checksum right again unless not to be sealed."""
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    header = json.loads(bytes(arrays["header"]))
    del arrays["header"]
    old = header.pop("checksum")
    change(header, arrays)
    header["checksum"] = _checksum(header, arrays) if seal else old
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **arrays)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "detector.ocsdf"
    OCSDF(random_state=0).fit(X).save(path)
    return path


@pytest.mark.parametrize("name", DETECTORS)
def test_scores_and_certificates_survive_bit_for_bit(name, tmp_path):
    rows = rows_of(name)
    model = DETECTORS[name].fit(rows)
    model.save(tmp_path / "model")
    again = ocsdf.load(tmp_path / "model")
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
    np.testing.assert_array_equal(again.certified_radius(rows), model.certified_radius(rows))
    assert again.history_ == model.history_
    assert again.domain_ == model.domain_
    stored = {k: v for k, v in model.get_params().items() if k != "network" or not callable(v)}
    assert {k: again.get_params()[k] for k in stored} == stored


def test_a_network_from_a_function_is_stored_as_what_was_fitted(tmp_path):
    DETECTORS["function"].fit(X).save(tmp_path / "model")
    again = ocsdf.load(tmp_path / "model")
    assert isinstance(again.network, LipschitzNet)
    assert again.network is again.net_


def test_feature_names_survive(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    OCSDF(random_state=0).fit(frame).save(tmp_path / "model")
    assert list(ocsdf.load(tmp_path / "model").feature_names_in_) == ["a", "b", "c"]


def test_every_kind_of_network_scores_and_certifies_without_tensorflow(tmp_path):
    for name, model in DETECTORS.items():
        model.fit(rows_of(name)).save(tmp_path / name)
        np.save(tmp_path / f"{name}.npy", rows_of(name))
    code = (
        "import sys, pathlib, numpy as np, ocsdf\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        f"for name in {list(DETECTORS)}:\n"
        "    model = ocsdf.load(folder / name, backend='numpy')\n"
        "    X = np.load(folder / (name + '.npy'))\n"
        "    model.certify(X), model.predict(X), model.input_gradient(X)\n"
        "    np.save(folder / (name + '-scores.npy'), model.score_samples(X))\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    for name, model in DETECTORS.items():
        # Another process may share its rows among another number of threads.
        scores = model.score_samples(rows_of(name))
        np.testing.assert_allclose(np.load(tmp_path / f"{name}-scores.npy"), scores, atol=1e-12)


@pytest.mark.parametrize("name", ["references", "dense", "images"])
def test_tensorflow_scores_what_numpy_scores(name, tmp_path):
    X = rows_of(name)
    DETECTORS[name].fit(X).save(tmp_path / "model")
    numpy, tensorflow = (ocsdf.load(tmp_path / "model", backend=b) for b in ("numpy", "tensorflow"))
    np.testing.assert_allclose(tensorflow.score_samples(X), numpy.score_samples(X), atol=1e-9)
    np.testing.assert_allclose(tensorflow.input_gradient(X), numpy.input_gradient(X), atol=1e-8)
    assert tensorflow.certify(X).lipschitz == numpy.certify(X).lipschitz
    np.testing.assert_array_equal(copy.deepcopy(tensorflow).score_samples(X), tensorflow.score_samples(X))


def test_float32_scores_are_those_of_float64_up_to_the_certified_rounding(tmp_path):
    X = np.random.default_rng(2).normal(size=(60, 5))
    OCSDF(hidden=(32, 32), max_steps=20, random_state=0).fit(X).save(tmp_path / "a")
    exact, single = ocsdf.load(tmp_path / "a"), ocsdf.load(tmp_path / "a", dtype="float32")
    assert single.score_samples(X).dtype == np.float64
    assert single.net_.dtype == np.float32
    np.testing.assert_allclose(single.score_samples(X), exact.score_samples(X), atol=1e-5)
    single.save(tmp_path / "b")
    widened = ocsdf.load(tmp_path / "b")  # the same weights, in float64
    rounding = single.certify(X).rounding
    assert (rounding > 1e6 * widened.certify(X).rounding).all()
    assert (rounding < 1e-2).all()
    difference = np.abs(single.score_samples(X) - widened.score_samples(X))
    assert difference.max() > 0
    assert (difference < rounding).all()


def test_float32_is_numpy_s_alone(saved):
    with pytest.raises(ValueError, match="`dtype` of ocsdf.load"):
        ocsdf.load(saved, backend="tensorflow", dtype="float32")
    with pytest.raises(ValueError, match="`dtype` of ocsdf.load"):
        ocsdf.load(saved, dtype="float16")


def test_an_unknown_backend_is_refused(saved):
    with pytest.raises(
        ValueError, match=r"`backend` of ocsdf.load must be one of 'numpy', 'tensorflow'; got"
    ):
        ocsdf.load(saved, backend="torch")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 torn", np.lib.format.magic(1, 0) + b"x"])
def test_a_foreign_file_is_refused(content, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"`path` of ocsdf.load must be a file that OCSDF.save wrote; got"):
        ocsdf.load(path)


def test_another_npz_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(ValueError, match="must be a file that OCSDF.save wrote"):
        ocsdf.load(tmp_path / "other.npz")


def test_a_truncated_file_is_refused(saved):
    saved.write_bytes(saved.read_bytes()[:-200])
    with pytest.raises(ValueError, match="must be a file that OCSDF.save wrote"):
        ocsdf.load(saved)


def test_an_object_array_is_not_unpickled(saved):
    with np.load(saved) as content:
        arrays = dict(content)
    with open(saved, "wb") as file:
        np.savez(file, **arrays, more=np.array([print], object))
    with pytest.raises(ValueError, match="must be a file that OCSDF.save wrote"):
        ocsdf.load(saved)


def changed_weights(header, arrays):
    arrays["0.points"] = arrays["0.points"] + 1


def changed_threshold(header, arrays):
    header["fitted"]["offset_"] += 0.1


@pytest.mark.parametrize("change", [changed_weights, changed_threshold])
def test_damage_anywhere_is_found(change, saved):
    rewritten(saved, change, seal=False)
    with pytest.raises(ValueError, match=r"undamaged \(its checksum does not match\)"):
        ocsdf.load(saved)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda h, a: h["fitted"].update(lipschitz_=0.5), r"lipschitz is 0\.5, the weights prove 1\.0"),
        (
            lambda h, a: h["fitted"].update(offset_=float("nan")),
            "`offset_` of ocsdf.load must be a finite number",
        ),
        (
            lambda h, a: h["parameters"].update(trim=0.9),
            "`trim` of OCSDF must be a finite number >= 0 and <= 0.5",
        ),
        (lambda h, a: h["parameters"].update(new=1), "new is a parameter of ocsdf-core"),
        (lambda h, a: h["domain"].update(low=[1.0, 2.0]), "high"),
        (lambda h, a: h.pop("versions"), "versions"),
        (lambda h, a: h["layers"][0].update(kind="Unknown"), "Unknown"),
        (lambda h, a: a.update(scale_=a["scale_"] * [1, 0, 1]), "the scale is not one positive number"),
        (lambda h, a: a.update(center_=a["center_"][:2]), "shape"),
        (lambda h, a: a.pop("0.points"), "points"),
    ],
)
def test_content_that_makes_no_detector_is_refused_with_the_reason(change, reason, saved):
    rewritten(saved, change)
    with pytest.raises(ValueError, match=rf"`path` of ocsdf.load must be whole, .*{reason}"):
        ocsdf.load(saved)


def test_a_newer_format_is_refused(saved):
    rewritten(saved, lambda header, arrays: header.update(format=99))
    with pytest.raises(ValueError, match=r"of format version <= 1; got 'version 99'; update ocsdf-core"):
        ocsdf.load(saved)
