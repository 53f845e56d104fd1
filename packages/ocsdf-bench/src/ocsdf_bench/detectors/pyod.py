"""Detectors of PyOD at its defaults, as ADBench runs them: one adapter and a table of names."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.detectors._gaussian import gaussian_sum


def _cblof_attempts(X: np.ndarray) -> Sequence[dict[str, Any]]:
    """PyOD's rule wants large clusters that hold 90 % of the rows and can fail where clusters are even. Of
    ten clusters the smallest holds at most 10 %, so more come first; fewer serve few distinct rows.
    """
    return ({}, *({"n_clusters": number} for number in (9, 10, 11, 7, 6, 5, 4, 3, 2)))


def _pca_attempts(X: np.ndarray) -> Sequence[dict[str, Any]]:
    """PyOD divides by each component's share of variance: one that has none makes every score infinite
    (constant or duplicated columns, fewer rows than features), so only the others are kept.
    """
    deviation = X.std(axis=0)
    variance = np.linalg.eigvalsh(
        np.atleast_2d(np.cov(X / np.where(deviation > 0, deviation, 1), rowvar=False))
    )
    rank = int((variance > 1e-10 * variance[-1]).sum())
    return ({"n_components": rank} if rank < min(X.shape) else {},)


def _decision_function(model: Any, X: np.ndarray) -> np.ndarray:
    return model.decision_function(X)


def _support_vector_score(model: Any, X: np.ndarray) -> np.ndarray:
    """The same score in blocks of BLAS: libsvm sums kernels one row at a time, minutes on 500,000 rows."""
    machine = model.detector_
    if machine.kernel != "rbf":
        return model.decision_function(X)
    support, weights = machine.support_vectors_, machine.dual_coef_[0]
    return -machine.intercept_[0] - gaussian_sum(X, support, weights, machine._gamma)


def _one_attempt(X: np.ndarray) -> Sequence[dict[str, Any]]:
    return ({},)


@dataclass(frozen=True)
class _Model:
    """A class of PyOD and what of its constructor a suite may set."""

    module: str
    source: str
    params: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False
    transductive: bool = False
    row_cap: int | None = None
    attempts: Callable[[np.ndarray], Sequence[dict[str, Any]]] = _one_attempt
    score: Callable[[Any, np.ndarray], np.ndarray] = _decision_function


_MODELS = {
    "PCA": _Model(
        "pca",
        "Shyu et al., A novel anomaly detection scheme based on principal component classifier, ICDM 2003",
        {"n_components": None, "n_selected_components": None, "weighted": True, "standardization": True},
        seeded=True,
        attempts=_pca_attempts,
    ),
    "OCSVM": _Model(
        "ocsvm",
        "Schölkopf et al., Estimating the support of a high-dimensional distribution, 2001",
        {"kernel": "rbf", "degree": 3, "gamma": "auto", "coef0": 0.0, "tol": 0.001, "nu": 0.5},
        row_cap=10_000,
        score=_support_vector_score,
    ),
    "LOF": _Model(
        "lof",
        "Breunig et al., LOF: identifying density-based local outliers, SIGMOD 2000",
        {"n_neighbors": 20, "metric": "minkowski", "p": 2},
        row_cap=50_000,
    ),
    "CBLOF": _Model(
        "cblof",
        "He et al., Discovering cluster-based local outliers, Pattern Recognition Letters 2003",
        {"n_clusters": 8, "alpha": 0.9, "beta": 5, "use_weights": False},
        seeded=True,
        attempts=_cblof_attempts,
    ),
    "HBOS": _Model(
        "hbos",
        "Goldstein and Dengel, Histogram-based outlier score (HBOS), KI 2012",
        {"n_bins": 10, "alpha": 0.1, "tol": 0.5},
    ),
    "KNN": _Model(
        "knn",
        "Ramaswamy et al., Efficient algorithms for mining outliers from large data sets, SIGMOD 2000",
        {"n_neighbors": 5, "method": "largest", "metric": "minkowski", "p": 2},
        row_cap=50_000,
    ),
    "COPOD": _Model(
        "copod", "Li et al., COPOD: copula-based outlier detection, ICDM 2020", transductive=True
    ),
    "ECOD": _Model(
        "ecod",
        "Li et al., ECOD: unsupervised outlier detection using empirical cumulative distributions, TKDE 2022",
        transductive=True,
    ),
    "LODA": _Model(
        "loda",
        "Pevný, Loda: lightweight on-line detector of anomalies, Machine Learning 2016",
        {"n_bins": 10, "n_random_cuts": 100},
        seeded=True,
    ),
    "IForest": _Model(
        "iforest",
        "Liu et al., Isolation forest, ICDM 2008",
        {"n_estimators": 100, "max_samples": "auto", "max_features": 1.0, "bootstrap": False},
        seeded=True,
    ),
}

_COMPILED = ("HBOS", "CBLOF", "COPOD", "ECOD")  # by numba, at first use


class PyODDetector:
    """Adapter of one PyOD class: fits on flattened rows and scores by ``decision_function``.

    PyOD's ``contamination`` only sets a threshold on the scores, so it stays at its default and nothing about
    the share of anomalies reaches the detector. LOF and KNN count a training row as its own neighbour when
    training rows are scored, as in every use of PyOD's ``decision_function``.

    Parameters
    ----------
    create : callable
        Keyword arguments to an unfitted PyOD detector.
    attempts : callable
        Training rows to the keyword arguments tried in turn until one fits; what is not the default is
        recorded in budget.
    score : callable
        Fitted PyOD detector and rows to anomaly scores.
    """

    def __init__(
        self,
        create: Callable[..., Any],
        attempts: Callable[[np.ndarray], Sequence[dict[str, Any]]],
        score: Callable[[Any, np.ndarray], np.ndarray],
    ) -> None:
        self._create = create
        self._attempts = attempts
        self._score = score
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        X = _flat(X)
        *attempts, last = self._attempts(X)
        for change in attempts:
            try:
                return self._fit(X, change)
            except ValueError:
                continue
        return self._fit(X, last)

    def _fit(self, X: np.ndarray, change: dict[str, Any]) -> None:
        self._model = self._create(**change).fit(X)
        self.budget = dict(change)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._score(self._model, _flat(X)), float)


def _flat(X: np.ndarray) -> np.ndarray:
    return np.asarray(X, float).reshape(len(X), -1)


def _kind(default: Any) -> Any:
    """Annotation that checks a suite's value; None and names such as "auto" stand for numbers too."""
    return Any if default is None or isinstance(default, str) else type(default)


def _build(name: str) -> Callable[..., Detector]:
    """Build function of one detector; its signature states PyOD's parameters and defaults."""
    model = _MODELS[name]
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature(
        [inspect.Parameter("seed", keyword)]
        + [
            inspect.Parameter(key, keyword, default=value, annotation=_kind(value))
            for key, value in model.params.items()
        ]
    )

    def build(**given: Any) -> Detector:
        params = signature.bind(**given).arguments
        seed = params.pop("seed")
        if model.seeded:
            params["random_state"] = seed
        pyod_class = getattr(importlib.import_module(f"pyod.models.{model.module}"), name)

        def create(**change: Any) -> Any:
            return pyod_class(**params, **change)

        def attempts(X: np.ndarray) -> list[dict[str, Any]]:  # what the suite wrote is never changed
            return [{k: v for k, v in change.items() if k not in params} for change in model.attempts(X)]

        return PyODDetector(create, attempts, model.score)

    build.__signature__ = signature  # type: ignore[attr-defined]
    return build


for _name, _model in _MODELS.items():
    DETECTORS.add(
        DetectorInfo(
            name=_name,
            build=_build(_name),
            source=_model.source,
            deterministic=not _model.seeded or _name == "PCA",
            transductive=_model.transductive,
            row_cap=_model.row_cap,
            preload=(
                f"pyod.models.{_model.module}",
                *(["ocsdf_bench.compiled"] if _name in _COMPILED else []),
            ),
            defaults=dict(_model.params),
        )
    )
