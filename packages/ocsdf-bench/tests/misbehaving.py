"""Plug-in of the harness tests: a tiny data set, trivial detectors, and one detector for each way to fail."""

import multiprocessing
import os
import signal
import sys
import time

import numpy as np

from ocsdf_bench.dataset import DATASETS, Data, DataCorruptError, Dataset, DataUnavailableError
from ocsdf_bench.detector import DETECTORS, DetectorInfo


class Centre:
    """Distance to the mean: 1-Lipschitz. Slow on demand, jittered by its seed on demand."""

    lipschitz = 1.0

    def __init__(self, seed, shift=0.0, sleep=0.0, noise=0.0):
        self.centre, self.rng, self.sleep, self.shift = None, np.random.default_rng(seed), sleep, shift
        self.noise = noise

    def fit(self, X):
        time.sleep(self.sleep)
        self.centre = X.mean(axis=0) + self.shift + self.noise * self.rng.standard_normal(X.shape[1])

    def anomaly_score(self, X):
        return np.linalg.norm(X - self.centre, axis=1)

    def gradient(self, X):
        step = X - self.centre
        return step / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300)


class Misbehaving(Centre):
    def __init__(self, how):
        super().__init__(0)
        self.how = how

    def fit(self, X):
        super().fit(X)
        getattr(self, "_" + self.how, lambda: None)()

    def anomaly_score(self, X):
        score = super().anomaly_score(X)
        return {"nan": score * np.nan, "shape": score[:, None], "constant": score * 0}.get(self.how, score)

    def _exception(self):
        raise ValueError("the detector did not like\nthe data in /home/somebody/secret/file.csv")

    def _segfault(self):
        os.kill(os.getpid(), signal.SIGSEGV)

    def _abort(self):
        os.abort()

    def _exit(self):
        sys.exit(3)

    def _hang(self):
        time.sleep(600)

    def _stubborn(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)

    def _memory(self):
        self.block = [np.ones(2**20) for _ in range(400)]
        time.sleep(600)

    def _memory_error(self):
        raise MemoryError("no room for 1 TB")

    def _disk(self):
        with open("/dev/full", "w") as file:
            file.write("x")

    def _noisy(self):
        print("x" * 1_000_000)

    def _grandchild(self):
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)


class False_(Centre):
    """States a constant that is half the true one, or bounds that are a share of the true ones."""

    lipschitz = 0.5

    def bounded(self, share):
        self.lipschitz = 1.0
        self.score_bounds = lambda X, radii: tuple(
            self.anomaly_score(X) + side * share * radii[:, None] for side in (-1, 1)
        )
        return self


def _centre(*, seed, shift: float = 0.0, sleep: float = 0.0, noise: float = 0.0):
    return Centre(seed, shift, sleep, noise)


def _misbehaving(*, seed, how: str):
    return Misbehaving(how)


def _fresh(*, seed):
    if os.getppid() != multiprocessing.parent_process().pid:
        raise RuntimeError("this process is a fork of the server")
    return Centre(seed)


def _false(*, seed, bounds: float = 0.0):
    return False_(seed).bounded(bounds) if bounds else False_(seed)


for name, build, deterministic in (
    ("Centre", _centre, False),
    ("Misbehaving", _misbehaving, True),
    ("FalseCertificate", _false, True),
):
    DETECTORS.add(DetectorInfo(name=name, build=build, source="a test", deterministic=deterministic))
DETECTORS.add(DetectorInfo(name="Fresh", build=_fresh, source="a test", deterministic=True, fresh=True))
DETECTORS.add(
    DetectorInfo(name="Capped", build=_centre, source="a test", row_cap=20, score_block=30, transductive=True)
)
DETECTORS.add(
    DetectorInfo(name="Rich", build=_centre, source="a test", extra="torch", needs=("no_such_module",))
)


def _binary(source):
    y = np.r_[np.zeros(50, int), np.ones(8, int)]
    return Data.of(np.random.default_rng(7).standard_normal((58, 4)) + 1.5 * y[:, None], y)


def _classes(source):
    y = np.repeat([0, 1, 2], 50)
    return Data.of(np.random.default_rng(7).standard_normal((150, 4)) + y[:, None], y)


def _absent(source):
    raise DataUnavailableError("data file 'absent.npz' is not on this machine.")


def _corrupt(source):
    raise DataCorruptError("data file 'corrupt.npz' has another sha256.")


def _one_class_only(source):
    X = np.arange(20.0).reshape(10, 2)
    return Data(X=X, y=np.zeros(10, dtype=int), checksum="0")


for name, load, classes in (
    ("tiny", _binary, ()),
    ("tiny-classes", _classes, ("setosa", "versicolor", "virginica")),
    ("absent", _absent, ()),
    ("corrupt", _corrupt, ()),
    ("no-anomaly", _one_class_only, ()),
):
    DATASETS.add(
        Dataset(
            name=name, load=load, kind="table", n_normal=50, n_anomaly=8, n_features=4, source="a test",
            licence="none", needs_download=False, classes=classes,
        )
    )  # fmt: skip
