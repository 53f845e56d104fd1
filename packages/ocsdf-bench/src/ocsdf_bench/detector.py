"""What a detector is to the benchmark. Scores here are anomaly scores: higher = more anomalous."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ocsdf_bench.registry import Registry


@runtime_checkable
class Detector(Protocol):
    """A built detector. Optional attributes the runner looks for:

    lipschitz : float, a *proven* l2 Lipschitz constant of ``anomaly_score`` in the units of the X it was
        given, known after fit; certified metrics are computed for any detector that has one.
    score_bounds(X, radii) -> (low, high), arrays (n_radii, n) : what is proven of each row's anomaly score
        under an l2 attack of each radius, where that is more than the constant proves; None where it is not.
    gradient(X) -> array like X : gradient of ``anomaly_score``, for NumPy attacks.
    tensorflow_score(x: tf.Tensor) -> tf.Tensor (n,) : differentiable ``anomaly_score``, of
        TensorFlow's operations alone: Foolbox's attack compiles it.
    xla : bool, True where XLA is the faster compiler of ``tensorflow_score``, known after fit.
    budget : dict[str, Any], what was reduced or resolved ("steps": 1000), known after fit.
    """

    def fit(self, X: np.ndarray) -> None:
        """Learn from unlabelled rows X (n, ...), float64."""
        ...

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        """Anomaly score (n,), finite, of each row."""
        ...


@dataclass(frozen=True)
class DetectorInfo:
    """Card of a detector. ``build(seed=..., **params)`` is keyword-only and holds the heavy imports;
    its signature (names and defaults) is what `check` validates a suite's params against.
    """

    name: str
    build: Callable[..., Detector]
    source: str  # article, one line
    deterministic: bool = False  # True: one seed is enough
    transductive: bool = False  # True: anomaly_score(X) depends on the other rows of X
    row_cap: int | None = None  # fit on at most this many rows (seeded subsample)
    score_block: int | None = None  # score in blocks of this many rows (quadratic, transductive ones)
    preload: tuple[str, ...] = ()  # modules the fork server imports once for all runs
    fresh: bool = False  # True: its runs inherit no module that others preload
    extra: str = ""  # pip extra that brings what it needs: "torch"
    needs: tuple[str, ...] = ()  # modules beyond the package's own dependencies; `check` looks for them
    kinds: tuple[str, ...] = ("table", "toy", "image")
    defaults: dict[str, Any] = field(default_factory=dict)


DETECTORS: Registry[DetectorInfo] = Registry("detector", "ocsdf_bench.detectors")
