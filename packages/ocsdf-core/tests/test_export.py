"""An exported graph gives the scores of the detector, read by nothing but its own runtime."""

import json
import sys

import numpy as np
import pytest

from ocsdf import (
    OCSDF,
    AveragePool,
    Ball,
    Conv2D,
    Dense,
    DownSample,
    Flatten,
    GroupSort,
    L2NormPool,
    Residual,
    dense,
    patches,
    references,
)

X = np.random.default_rng(0).normal(size=(60, 4)) * [1.0, 5e3, 0.1, 1.0] + [0.0, 1e5, 0.0, 0.0]
IMAGES = np.random.default_rng(1).integers(0, 256, (30, 8, 8, 3)).astype(np.uint8)
QUICK = {"max_steps": 2, "random_state": 0}
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
    "groupsort2": OCSDF(hidden=(9, 8), outside="anomalous", **QUICK),
    "uneven groups": OCSDF(network=dense((10,), sort=4), domain=Ball(2.0), outside="anomalous", **QUICK),
    "layers of images": OCSDF(network=IMAGE_LAYERS, n_networks=2, **QUICK),
    "patches of images": OCSDF(network=patches(8, 2), **QUICK),
    "references of images": OCSDF(network=references(count=20), random_state=0),
}


def rows_of(name):
    return IMAGES if name.endswith("images") else X


@pytest.mark.parametrize("name", DETECTORS)
def test_a_saved_model_scores_like_the_detector(name, tmp_path):
    import tensorflow as tf

    rows = rows_of(name)
    model = DETECTORS[name].fit(rows)
    model.export(tmp_path / "graph")
    again = tf.saved_model.load(str(tmp_path / "graph"))
    served = again.signatures["serving_default"](x=tf.constant(rows, tf.float64))["score"]
    # The graph chooses a reference by the same products in another order: no difference beyond rounding.
    np.testing.assert_allclose(served, model.score_samples(rows), atol=1e-9)
    assert again.lipschitz.numpy() == pytest.approx(model.lipschitz_, abs=0)
    assert again.offset.numpy() == pytest.approx(model.offset_, abs=0)
    single = again.score(tf.constant(rows[:1], tf.float32))
    assert single.dtype == tf.float32
    np.testing.assert_allclose(single, model.score_samples(rows[:1].astype(np.float32)), rtol=1e-6)


@pytest.mark.parametrize("name", DETECTORS)
def test_onnxruntime_scores_like_the_detector(name, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    pytest.importorskip("tf2onnx", reason="needs the extra onnx")
    rows = rows_of(name)
    model = DETECTORS[name].fit(rows)
    model.export(tmp_path / "detector.onnx", format="onnx")
    session = onnxruntime.InferenceSession(tmp_path / "detector.onnx", providers=["CPUExecutionProvider"])
    dtype = np.float32 if name.endswith("images") else np.float64
    for n in (1, len(rows)):
        (score,) = session.run(["score"], {"x": rows[:n].astype(dtype)})
        assert score.shape == (n,)
        # The sort of ONNX is in float32, and images are.
        np.testing.assert_allclose(score, model.score_samples(rows[:n]), atol=1e-5)
    facts = {
        k: json.loads(v) for k, v in session.get_modelmeta().custom_metadata_map.items() if k != "ocsdf_core"
    }
    assert facts == {"lipschitz": model.lipschitz_, "offset": model.offset_}


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"`format` of OCSDF.export must be one of 'saved_model', 'onnx'; got 'onx'"
    ):
        DETECTORS["references"].fit(X).export(tmp_path / "graph", format="onx")


@pytest.mark.parametrize(("format", "got"), [("saved_model", "a file"), ("onnx", "a folder")])
def test_a_path_that_is_taken_by_the_other_kind_is_refused(format, got, tmp_path):
    path = tmp_path / "taken"
    path.touch() if got == "a file" else path.mkdir()
    with pytest.raises(ValueError, match=f"`path` of OCSDF.export must be .* or free; got {got}"):
        DETECTORS["references"].fit(X).export(path, format=format)


def test_without_the_extra_onnx_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(ImportError, match=r"needs tf2onnx: pip install 'ocsdf-core\[onnx\]'"):
        DETECTORS["references"].fit(X).export(tmp_path / "detector.onnx", format="onnx")


def test_before_the_fit_there_is_nothing_to_export(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        OCSDF().export(tmp_path / "graph")
