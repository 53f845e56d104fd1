"""The distance to references, each the mean of a few neighbouring rows: how far x is from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ocsdf._layers import Fixed, Params

CROWD = (
    8  # the trim looks at the |R|/8-th neighbour: far enough to see a small cluster of anomalies as far away
)
NEAREST = 3  # neighbours that a row is averaged with, or looked past, at least: it may be its own reference


@dataclass(frozen=True)
class References(Fixed):
    """``b - d(x)``, with d the (k + 1)-th smallest of ``sqrt(|x - c_j|² + h_j²)`` over the references j.

    c_j is the mean of a row and its nearest neighbours, h_j² their mean squared distance from it: the root
    mean square of the distances from x to these rows. The smallest is the *witnessed k-distance*, which
    approximates the distance to a measure. Each root is the distance of (x, 0) and (c_j, h_j) in one more
    dimension, hence 1-Lipschitz, and so is a k-th smallest of them. Where x is much nearer to c_j than h_j,
    d hardly moves; :meth:`bounds` proves how little.

    Each network draws its own rows from the sample, then drops the share ``trim`` that lies farthest from its
    ``count / 8``-th neighbour: the large neighbourhood of the trim sees a small cluster of anomalies as far
    away, the small ones of the score keep the local structure that the cluster would spoil. References are
    weights: a loss can move them.

    Parameters
    ----------
    count : int
        Rows that each network draws (all, where the sample has fewer).
    rank : float
        k as a share of the references; 0 is the nearest.
    trim : float in [0, 1), or a tuple of them
        Share of the drawn rows that is dropped; of a tuple, each network takes the next.
    neighbours : float
        Neighbours that a row is averaged with, as a share of the rows that are kept; at least 3. At 0 the
        rows are the references themselves, and k is at least 3.

    References
    ----------
    F. Chazal, D. Cohen-Steiner, Q. Mérigot, "Geometric inference for probability measures", Foundations of
    Computational Mathematics 11 (2011); L. Guibas, D. Morozov, Q. Mérigot, "Witnessed k-distance", Discrete &
    Computational Geometry 49 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> from ocsdf import build
    >>> line = np.arange(8.0)[:, None]
    >>> rng = np.random.default_rng(0)
    >>> net = build((References(trim=0.0, neighbours=0.0),), line, rng=rng)
    >>> net(np.array([[0.0], [10.0]]))  # the fourth nearest of 0 … 7
    array([-3., -6.])
    >>> net = build((References(trim=0.0),), line, rng=rng)
    >>> net(np.array([[1.5], [1.5 - 3.0]])).round(3)  # 0 … 3 have the mean 1.5 and the height 1.118
    array([-1.118, -3.202])
    """

    count: int = 256
    rank: float = 0.04
    trim: float | tuple[float, ...] = 0.15
    neighbours: float = 0.08

    @property
    def sample_rows(self) -> int:
        """Rows that the networks draw theirs from: enough for four draws that differ."""
        return 4 * self.count

    def init(self, rng: np.random.Generator, members: int, x: np.ndarray) -> Params:
        """Centres (M, kept, d), heights (M, kept) and a bias (M, 1, 1)."""
        rows = x[0].reshape(x.shape[1], -1)
        count = min(self.count, len(rows))
        trims = self.trim if isinstance(self.trim, tuple) else (self.trim,)
        kept = [
            _trimmed(rows[rng.permutation(len(rows))[:count]], trims[i % len(trims)]) for i in range(members)
        ]
        found = [self._averaged(points) for points in kept]
        most = max(len(points) for points in kept)
        # A network with fewer references repeats them: the k-th smallest keeps its share.
        index = [np.arange(most) % len(points) for points in kept]
        return {
            "points": np.stack([centre[i] for (centre, _), i in zip(found, index, strict=True)]),
            "height": np.stack([height[i] for (_, height), i in zip(found, index, strict=True)]),
            "bias": np.zeros((members, 1, 1)),
        }

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Values (M, n, 1); steps (M, n, d + 1) from references to rows, the height last, at length 1."""
        points, height = params["points"], params["height"]
        rows = x.reshape(*x.shape[:2], -1)
        k = self.rank_among(points.shape[1])
        squares = _distances(rows, points)
        squares += (height**2)[:, None]
        index = np.argpartition(squares, k, axis=-1)[..., k]
        # The products above only choose the reference; its distance is computed without cancellation.
        away = rows - np.take_along_axis(points, index[..., None], axis=1)
        away = np.concatenate([away, -np.take_along_axis(height, index, axis=1)[..., None]], axis=-1)
        distance = np.sqrt((away**2).sum(axis=-1, keepdims=True))
        away /= np.maximum(distance, np.finfo(away.dtype).tiny)
        return params["bias"] - distance, (away, index, x.shape)

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """Towards the reference."""
        away, _, shape = saved
        return (-slope * away[..., :-1]).reshape(len(away), *shape[1:])

    def gradient(self, params: Params, saved: Any, slope: np.ndarray) -> Params:
        """Each reference is moved by the rows it is the distance of."""
        away, index, _ = saved
        moved = np.zeros((*params["height"].shape, away.shape[-1]), away.dtype)
        np.add.at(moved, (np.arange(len(moved))[:, None], index), slope * away)
        return {
            "points": moved[..., :-1],
            "height": moved[..., -1],
            "bias": slope.sum(axis=1, keepdims=True),
        }

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        points, height = params["points"], params["height"]
        members, n_points, width = points.shape
        rows = tf.reshape(x, (tf.shape(x)[0], tf.shape(x)[1], width))
        rows = tf.broadcast_to(rows, (members, tf.shape(rows)[1], width))
        square = (tf.reduce_sum(points**2, -1) + height**2)[:, None]
        square -= 2 * tf.matmul(rows, points, transpose_b=True)
        index = tf.math.top_k(-square, self.rank_among(n_points) + 1).indices[..., -1]
        away = rows - tf.gather(points, index, batch_dims=1)
        square = tf.reduce_sum(away**2, -1, keepdims=True)
        square += (tf.gather(height, index, batch_dims=1) ** 2)[..., None]
        safe = tf.where(square > 0, square, tf.ones_like(square))  # the root has no finite slope at 0
        return params["bias"] - tf.where(square > 0, tf.sqrt(safe), tf.zeros_like(square))

    def finish(self, params: Params) -> Params:
        """Float64."""
        return {name: array.astype(np.float64) for name, array in params.items()}

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """Slope and offset of the rounding error of a value, per unit of the row's norm and alone.

        With |r|² = |c|² + h², the k-th smallest is chosen among squared distances that are each off by at
        most e = 4 (d + 5) eps (|x| + |r|)², and a root moves by at most sqrt(2 e) when its argument does by
        2 e. The distance itself and the bias add a relative (d + 5) eps.
        """
        points, eps = params["points"], np.finfo(dtype).eps
        width = points.shape[-1] + 5
        slope = float(np.sqrt(8 * width * eps) + width * eps) * (1 + 1e-12)
        farthest = np.sqrt((points**2).sum(axis=-1) + params["height"] ** 2).max()
        reach = float(farthest) + float(np.abs(params["bias"]).max())
        return slope, slope * reach * (1 + 1e-12)

    def bounds(self, params: Params, x: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest value (n_radii, M, n) on the balls around each row of x (M, n, ...).

        ``|x - c_j|`` changes by at most the radius, each root grows with it, and the k-th smallest grows with
        each root. The lowest distance is reached; the highest one of each reference alone is. They are as
        exact as ``rounding`` says.
        """
        points, square = params["points"], (params["height"] ** 2)[:, None]
        rows = x.reshape(*x.shape[:2], -1)
        flat = np.sqrt(np.maximum(_distances(rows, points) + (rows**2).sum(axis=-1)[..., None], 0.0))
        k, slack = self.rank_among(points.shape[1]), 4 * np.finfo(float).eps
        far, near = np.empty((2, len(radii), *flat.shape[:2]))
        for i, radius in enumerate(radii):
            far[i] = np.partition((flat + radius) ** 2 + square, k, axis=-1)[..., k]
            near[i] = np.partition(np.maximum(flat - radius, 0.0) ** 2 + square, k, axis=-1)[..., k]
        bias = params["bias"][..., 0]
        return bias - np.sqrt(far) * (1 + slack), bias - np.sqrt(near) * (1 - slack)

    def rank_among(self, n_points: int) -> int:
        """k, the references that a score looks past, among ``n_points``."""
        least = 0 if self.neighbours else NEAREST
        return min(max(least, int(self.rank * n_points)), n_points - 1)

    def _averaged(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centres (n, d) and heights (n,) of the neighbourhoods of n rows."""
        if not self.neighbours:
            return rows, np.zeros(len(rows))
        k = min(max(NEAREST, int(self.neighbours * len(rows))), len(rows) - 1)
        nearest = np.argpartition(_distances(rows[None], rows[None])[0], k, axis=-1)[:, : k + 1]
        centre = np.stack([rows[index].mean(axis=0) for index in nearest])
        square = [
            ((rows[index] - c) ** 2).sum(axis=1).mean() for index, c in zip(nearest, centre, strict=True)
        ]
        return centre, np.sqrt(square)


def _trimmed(rows: np.ndarray, trim: float) -> np.ndarray:
    """``rows`` without the share ``trim`` that lies farthest from its ``n / 8``-th neighbour."""
    crowd = min(max(1, len(rows) // CROWD), len(rows) - 1)
    squares = _distances(rows[None], rows[None])[0] + (rows**2).sum(axis=-1)[:, None]
    far = np.partition(squares, crowd, axis=-1)[:, crowd]
    return rows[np.argsort(far, kind="stable")[: max(1, len(rows) - int(trim * len(rows)))]]


def _distances(x: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Squared distances (M, n, n_points) less the square of x, which does not change their order."""
    distances = x @ points.swapaxes(-1, -2)
    distances *= -2
    distances += (points**2).sum(axis=-1)[:, None, :]
    return distances
