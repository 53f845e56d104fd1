"""OCSDF as a PyOD detector: higher = more anomalous, 1 = anomaly. Needs the extra ``ocsdf-core[pyod]``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ocsdf import _estimator
from ocsdf._certificate import Certificate

try:
    from pyod.models.base import BaseDetector
except ImportError as error:
    raise ImportError("ocsdf.pyod needs PyOD: pip install 'ocsdf-core[pyod]'.") from error


class OCSDF(BaseDetector):
    """PyOD's conventions around an :class:`ocsdf.OCSDF`.

    ``predict_proba``, ``predict(return_confidence=True)`` and the rest come from PyOD's base class.

    Parameters
    ----------
    contamination : float in (0, 0.5], default 0.1
        Share of the training rows above ``threshold_``.
    estimator : ocsdf.OCSDF, optional
        Settings of the network; it is cloned, its own ``contamination`` has no effect here. The default is
        ``ocsdf.OCSDF()``.

    Attributes
    ----------
    decision_scores_ : array (n,)
        Anomaly scores of the training rows, minus f.
    threshold_ : float
    labels_ : array (n,)
        1 where a training row is above the threshold.
    estimator_ : ocsdf.OCSDF
        The fitted estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from ocsdf import OCSDF as Estimator
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> detector = OCSDF(estimator=Estimator(random_state=0)).fit(X)
    >>> detector.predict(np.array([[0.0, 0.0], [8.0, 8.0]]))
    array([0, 1])
    >>> int(detector.labels_.sum())
    20
    """

    def __init__(self, contamination: float = 0.1, estimator: _estimator.OCSDF | None = None) -> None:
        super().__init__(contamination=contamination)
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows (n, n_features); ``y`` is ignored."""
        self._set_n_classes(y)
        template = _estimator.OCSDF() if self.estimator is None else self.estimator
        self.estimator_ = clone(template).fit(X)
        self.decision_scores_ = self.decision_function(X)
        self._process_decision_scores()
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Anomaly scores (n,): minus f."""
        check_is_fitted(self, "estimator_")
        return -self.estimator_.score_samples(X)

    def certify(self, X: Any) -> Certificate:
        """Certificate of the rows at PyOD's ``threshold_``; its scores are f, higher = more normal."""
        check_is_fitted(self, "threshold_")
        return replace(self.estimator_.certify(X), threshold=-float(self.threshold_))
