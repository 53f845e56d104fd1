"""A saved detector is the same detector, and a file that is not one is refused with a sentence."""

import json
import subprocess
import sys

import numpy as np
import pytest

import ocsdf
from ocsdf import OCSDF, Ball

X = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 5.0, 0.1]
DETECTORS = {
    "references": OCSDF(random_state=0),
    "dense": OCSDF(hidden=(8, 8), max_steps=5, random_state=0, outside="anomalous"),
    "paper": OCSDF.paper(hidden=(8,), max_steps=5, random_state=0, domain=Ball(5.0)),
}


def rewritten(path, change):
    """The file with its header changed by ``change``."""
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    header = json.loads(bytes(arrays["header"]))
    change(header, arrays)
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
    model = DETECTORS[name].fit(X)
    model.save(tmp_path / "model")
    again = ocsdf.load(tmp_path / "model")
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.certified_radius(X), model.certified_radius(X))
    assert again.history_ == model.history_
    assert again.domain_ == model.domain_
    assert {k: v for k, v in again.get_params().items() if k != "domain"} == {
        k: v for k, v in model.get_params().items() if k != "domain"
    }


def test_feature_names_survive(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    OCSDF(random_state=0).fit(frame).save(tmp_path / "model")
    assert list(ocsdf.load(tmp_path / "model").feature_names_in_) == ["a", "b", "c"]


def test_loading_and_certifying_imports_no_tensorflow(saved):
    code = (
        f"import sys, numpy, ocsdf; ocsdf.load({str(saved)!r}).certify(numpy.ones((1, 3)));"
        "print('tensorflow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


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


def test_changed_weights_are_found(saved):
    def change(header, arrays):
        arrays["0.points"] = arrays["0.points"] + 1

    rewritten(saved, change)
    with pytest.raises(ValueError, match="checksum"):
        ocsdf.load(saved)


def test_a_bound_below_what_the_weights_prove_is_refused(saved):
    def change(header, arrays):
        header["fitted"]["lipschitz_"] = 0.5

    rewritten(saved, change)
    with pytest.raises(ValueError, match=r"lipschitz is 0\.5, the weights prove 1\.0"):
        ocsdf.load(saved)


def test_a_newer_format_is_refused(saved):
    rewritten(saved, lambda header, arrays: header.update(format=99))
    with pytest.raises(ValueError, match=r"of format version <= 1; got 'version 99'; update ocsdf-core"):
        ocsdf.load(saved)
