"""What OCSDF is set against in the plane: a conventional network with cross-entropy on the same negatives."""

from __future__ import annotations

import numpy as np
from sklearn.neural_network import MLPClassifier


class ConventionalNetwork:
    """ReLU network with binary cross-entropy and Adam; ``score`` is the logit, positive = normal.

    Parameters
    ----------
    hidden : tuple of int
    steps : int
        Adam steps, each on one batch of normals and one of negatives.
    batch_size : int
        Rows of each of the two batches.
    seed : int
    """

    def __init__(self, hidden: tuple[int, ...], steps: int, batch_size: int, seed: int) -> None:
        self.steps, self.batch_size, self.seed = steps, batch_size, seed
        self._network = MLPClassifier(hidden, alpha=0.0, batch_size=2 * batch_size, random_state=seed)

    def fit(self, normals: np.ndarray, negatives: np.ndarray) -> ConventionalNetwork:
        """Learn to tell rows (n, d) of ``normals`` from rows of ``negatives``."""
        rng = np.random.default_rng(self.seed)
        labels = np.repeat([1, 0], self.batch_size)
        for _ in range(self.steps):
            rows = [part[rng.integers(len(part), size=self.batch_size)] for part in (normals, negatives)]
            self._network.partial_fit(np.concatenate(rows), labels, classes=[0, 1])
        return self

    def score(self, x: np.ndarray) -> np.ndarray:
        """Logit (n,) of being normal."""
        return self._forward(x)[-1][:, 0]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Gradient (n, d) of ``score``."""
        layers = self._forward(x)
        slope = np.ones_like(layers[-1])
        for weights, hidden in zip(self._network.coefs_[:0:-1], layers[-2::-1], strict=True):
            slope = (slope @ weights.T) * (hidden > 0)
        return slope @ self._network.coefs_[0].T

    def _forward(self, x: np.ndarray) -> list[np.ndarray]:
        """Values of the hidden layers after the ReLU, then the logit."""
        values = []
        for i, (weights, bias) in enumerate(
            zip(self._network.coefs_, self._network.intercepts_, strict=True), start=1
        ):
            x = x @ weights + bias
            if i < len(self._network.coefs_):
                x = np.maximum(x, 0)
            values.append(x)
        return values
