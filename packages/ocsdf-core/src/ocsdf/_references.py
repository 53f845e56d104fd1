"""The distance to reference rows as a layer: 1-Lipschitz by the triangle inequality, gradient norm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ocsdf._layers import Fixed, Params

CROWD = (
    8  # the trim looks at the |R|/8-th neighbour: far enough to see a small cluster of anomalies as far away
)
NEAREST = 3  # neighbours that a score looks past at least: a row may be its own reference


@dataclass(frozen=True)
class References(Fixed):
    """``b - d(x)``, with d the distance to the (k + 1)-th nearest of the reference rows.

    A k-th smallest of 1-Lipschitz functions is 1-Lipschitz. Each network draws its own reference rows from
    the sample, then drops the share ``trim`` that lies farthest from its ``count / 8``-th neighbour: the
    large neighbourhood of the trim sees a small cluster of anomalies as far away, the small one of the score
    keeps the local structure that the cluster would spoil. References are weights: a loss can move them.

    Parameters
    ----------
    count : int
        Rows that each network draws (all, where the sample has fewer).
    rank : float
        k as a share of the references that are kept; at least 3 rows.
    trim : float in [0, 0.5]
        Share of the drawn rows that is dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from ocsdf import build
    >>> line = np.arange(8.0)[:, None]
    >>> net = build((References(trim=0.0),), line, rng=np.random.default_rng(0))
    >>> net(np.array([[0.0], [10.0]]))  # the fourth nearest of 0 … 7
    array([-3., -6.])
    """

    count: int = 256
    rank: float = 0.04
    trim: float = 0.15

    @property
    def sample_rows(self) -> int:
        """Rows that the networks draw theirs from: enough for four draws that differ."""
        return 4 * self.count

    def init(self, rng: np.random.Generator, members: int, x: np.ndarray) -> Params:
        """References (M, kept, d) and a bias (M, 1, 1)."""
        rows = x[0].reshape(x.shape[1], -1)
        count = min(self.count, len(rows))
        drawn = np.stack([rows[rng.permutation(len(rows))[:count]] for _ in range(members)])
        crowd = max(1, count // CROWD)
        crowd = min(crowd, count - 1)
        far = np.partition(_distances(drawn, drawn), crowd, axis=-1)[..., crowd] + (drawn**2).sum(axis=-1)
        kept = max(1, count - int(self.trim * count))
        order = np.argsort(far, axis=-1, kind="stable")[:, :kept]
        points = np.take_along_axis(drawn, order[..., None], axis=1)
        return {"points": points, "bias": np.zeros((members, 1, 1))}

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Values (M, n, 1), and the unit vectors (M, n, d) from the references they belong to."""
        points = params["points"]
        rows = x.reshape(*x.shape[:2], -1)
        k = self.rank_among(points.shape[1])
        index = np.argpartition(_distances(rows, points), k, axis=-1)[..., k]
        # The products above only choose the reference; its distance is computed without cancellation.
        away = rows - np.take_along_axis(points, index[..., None], axis=1)
        distance = np.sqrt((away**2).sum(axis=-1, keepdims=True))
        away /= np.maximum(distance, np.finfo(away.dtype).tiny)
        return params["bias"] - distance, (away, index, x.shape)

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """Towards the reference."""
        away, _, shape = saved
        return (-slope * away).reshape(len(away), *shape[1:])

    def gradient(self, params: Params, saved: Any, slope: np.ndarray) -> Params:
        """Each reference is moved by the rows it is the distance of."""
        away, index, _ = saved
        points = np.zeros_like(params["points"])
        np.add.at(points, (np.arange(len(points))[:, None], index), slope * away)
        return {"points": points, "bias": slope.sum(axis=1, keepdims=True)}

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        points = params["points"]
        members, n_points, width = points.shape
        rows = tf.reshape(x, (tf.shape(x)[0], tf.shape(x)[1], width))
        rows = tf.broadcast_to(rows, (members, tf.shape(rows)[1], width))
        square = tf.reduce_sum(points**2, -1)[:, None] - 2 * tf.matmul(rows, points, transpose_b=True)
        index = tf.math.top_k(-square, self.rank_among(n_points) + 1).indices[..., -1]
        away = rows - tf.gather(points, index, batch_dims=1)
        square = tf.reduce_sum(away**2, -1, keepdims=True)
        safe = tf.where(square > 0, square, tf.ones_like(square))  # the root has no finite slope at 0
        return params["bias"] - tf.where(square > 0, tf.sqrt(safe), tf.zeros_like(square))

    def finish(self, params: Params) -> Params:
        """Float64."""
        return {name: array.astype(np.float64) for name, array in params.items()}

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """Slope and offset of the rounding error of a value, per unit of the row's norm and alone.

        The k-th smallest is chosen among squared distances that are each off by at most
        e = 4 (d + 4) eps (|x| + |r|)², and a root moves by at most sqrt(2 e) when its argument does by 2 e.
        The distance itself and the bias add a relative (d + 4) eps.
        """
        points, eps = params["points"], np.finfo(dtype).eps
        width = points.shape[-1] + 4
        slope = float(np.sqrt(8 * width * eps) + width * eps) * (1 + 1e-12)
        reach = float(np.sqrt((points**2).sum(axis=-1)).max()) + float(np.abs(params["bias"]).max())
        return slope, slope * reach * (1 + 1e-12)

    def rank_among(self, n_points: int) -> int:
        """k, the neighbours that a score looks past, among ``n_points`` references."""
        return min(max(NEAREST, int(self.rank * n_points)), n_points - 1)


def _distances(x: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Squared distances (M, n, n_points) less the square of x, which does not change their order."""
    distances = x @ points.swapaxes(-1, -2)
    distances *= -2
    distances += (points**2).sum(axis=-1)[:, None, :]
    return distances
