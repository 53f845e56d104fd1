"""Working plug-in files to fill in."""

from __future__ import annotations

import re
from pathlib import Path

DETECTOR = '''\
"""{name}: say in one sentence how it scores."""

import numpy as np

from ocsdf_bench.detector import DETECTORS, DetectorInfo


class {identifier}:
    """Distance to the mean of the training rows. A proven `lipschitz` earns it certified metrics."""

    lipschitz = 1.0

    def fit(self, X: np.ndarray) -> None:
        self.centre = X.mean(axis=0)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        """Higher = more anomalous."""
        return np.linalg.norm((X - self.centre).reshape(len(X), -1), axis=1)


def build(*, seed: int) -> {identifier}:
    """Each further keyword is a parameter a suite may set; heavy imports belong in here."""
    return {identifier}()


DETECTORS.add(DetectorInfo(name="{name}", build=build, source="your article", deterministic=True))
'''

DATASET = '''\
"""{name}: say where it comes from."""

import numpy as np

from ocsdf_bench.dataset import DATASETS, Data, Dataset, Source


def load(source: Source) -> Data:
    """`source.path("folder/file.npz", url=..., sha256=...)` gives the checked path of a raw file."""
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(90, int), np.ones(10, int)]  # 1 = anomaly
    return Data.of(rng.standard_normal((100, 3)) + 3.0 * y[:, None], y)


DATASETS.add(
    Dataset(
        name="{name}", load=load, kind="table", n_normal=90, n_anomaly=10, n_features=3,
        source="your reference", licence="its licence", needs_download=False,
    )
)
'''

ATTACK = '''\
"""{name}: say what it does."""

import numpy as np

from ocsdf_bench.attack import ATTACKS, Attack


def run(detector, X, direction, radius, domain, seed) -> np.ndarray:
    """Candidates (n_candidates, n, ...); each is projected and scored again by the caller."""
    rng = np.random.default_rng([seed, 6])
    return X + radius * rng.standard_normal((10, *X.shape))


ATTACKS.add(Attack("{name}", run, needs="", source="your article"))
'''

TEMPLATES = {"detector": DETECTOR, "dataset": DATASET, "attack": ATTACK}


def write_plugin(kind: str, name: str, directory: Path) -> Path:
    """Write the template of ``kind`` under ``name`` into ``directory``; never over a file that is there."""
    if kind not in TEMPLATES:
        raise ValueError(f"`kind` of new must be one of {', '.join(TEMPLATES)}; got {kind!r}.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise ValueError(
            f"`name` of new must be letters, digits, hyphens and underscores, a letter first; got {name!r}."
        )
    identifier = name.replace("-", "_")
    path = directory / f"{re.sub('(?<=[a-z0-9])(?=[A-Z])', '_', identifier).lower()}.py"
    if path.exists():
        raise ValueError(f"`name` of new must give a file that is not there yet; {path.name} is.")
    path.write_text(TEMPLATES[kind].format(name=name, identifier=identifier[0].upper() + identifier[1:]))
    return path
