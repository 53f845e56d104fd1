import numpy as np
import pytest

from ocsdf_bench.dataset import Data
from ocsdf_bench.detector import DetectorInfo
from ocsdf_bench.probe import probe
from ocsdf_bench.protocol import make_split

SPLIT = make_split(
    Data.of(np.random.default_rng(0).standard_normal((60, 3)), np.repeat([0, 1], 30)), "unsupervised", 0
)


class Honest:
    def anomaly_score(self, X):
        return np.linalg.norm(X, axis=1)

    def gradient(self, X):
        return X / np.linalg.norm(X, axis=1, keepdims=True)


class Ranks(Honest):
    def anomaly_score(self, X):
        return np.argsort(np.argsort(super().anomaly_score(X))) / len(X)


class Saturated(Honest):
    def anomaly_score(self, X):
        return np.minimum(super().anomaly_score(X), 100.0)


class Overflowing(Honest):
    def anomaly_score(self, X):
        return np.where(np.abs(X).max(axis=1) > 1e5, np.nan, super().anomaly_score(X))


class Flat(Honest):
    def gradient(self, X):
        return np.zeros_like(X)


class Broken(Honest):
    def gradient(self, X):
        raise RuntimeError("no gradient today")


@pytest.mark.parametrize(
    ("detector", "words"),
    [
        (Honest(), None),
        (Ranks(), "depends on the rows it is scored with"),
        (Saturated(), "every row has the same score"),
        (Overflowing(), "not finite far from the data"),
        (Flat(), "gradient is zero on 100 % of the rows"),
        (Broken(), "gradient probe: RuntimeError"),
    ],
)
def test_each_sign_is_seen_and_an_honest_detector_shows_none(detector, words):
    info = DetectorInfo(name="x", build=lambda *, seed: detector, source="a test")
    signs = probe(detector, info, SPLIT, detector.anomaly_score(SPLIT.X_test), 0)
    assert any(words in sign for sign in signs) if words else signs == ()


def test_a_transductive_detector_is_not_blamed_for_what_it_declares():
    info = DetectorInfo(name="x", build=lambda *, seed: Ranks(), source="a test", transductive=True)
    assert not any("scored with" in sign for sign in probe(Ranks(), info, SPLIT, np.arange(60.0), 0))
