"""The distance to affine patches as a layer: local subspaces that follow curved data, gradient norm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from ocsdf._bound import dense_norm_bound
from ocsdf._layers import Params, down
from ocsdf._stiefel import orthonormal, polar, retract, tangent

ROUNDS = 4  # of local PCA: directions of each group, then each row to its nearest patch
ITERATIONS = 10  # of k-means, which only starts these rounds
TOTAL, LEAST, VALUES = 300, 10, 80  # directions of all patches; of one, at least; values of a row for each


@dataclass(frozen=True)
class AffinePatches:
    """``b - min_k |(I - V_k V_k')(x - c_k)|`` with orthonormal V_k: how far x is from a union of subspaces.

    Each term is the norm after an orthogonal projection, so it is 1-Lipschitz, and so is the smallest of
    them. The gradient norm is 1 wherever f is differentiable: no certificate is wasted. Patches start from
    k-means and local PCA, and all of c, V and b are weights that a loss can move. Rows of any shape are read
    as vectors.

    Parameters
    ----------
    count : int or None
        Patches K; None is 300 / q, so that a row costs the same whatever its size.
    directions : int or None
        Columns q of each V_k; None is one for every 80 values of a row, but at least 10: larger images need
        larger patches. At least one direction of the space is left out.

    References
    ----------
    N. Kambhatla, T. K. Leen, "Dimension reduction by local principal component analysis", Neural Computation
    9 (1997), for the start.

    Examples
    --------
    >>> import numpy as np
    >>> from ocsdf import build
    >>> line = np.outer(np.linspace(-1, 1, 9), [3.0, 4.0])
    >>> net = build((AffinePatches(count=1, directions=1),), line, rng=np.random.default_rng(0))
    >>> np.round(net(np.array([[6.0, 8.0], [-4.0, 3.0]])), 12) + 0.0  # on the line, and 5 away from it
    array([ 0., -5.])
    """

    count: int | None = None
    directions: int | None = None
    sample_rows: ClassVar[int] = 10_000  # rows that ``init`` wants to see

    def init(self, rng: np.random.Generator, members: int, x: np.ndarray) -> Params:
        """Centres (M, K, d), bases (M, K, d, q) and a bias (M, 1, 1) that puts the mean row at 0."""
        rows = x[0].reshape(x.shape[1], -1)
        starts = [self._start(rows, rng) for _ in range(members)]
        params = {
            "centre": np.stack([centre for centre, _ in starts]),
            "kernel": np.stack([kernel for _, kernel in starts]),
            "bias": np.zeros((members, 1, 1)),
        }
        value, _ = self.forward(params, np.broadcast_to(x[0], (members, *x.shape[1:])))
        return {**params, "bias": -value.mean(axis=1, keepdims=True)}

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Values (M, n, 1); the patch of each row, its residual's unit vector and its place in the patch."""
        rows = x.reshape(*x.shape[:2], -1)
        parts = [self._nearest(c, v, r) for c, v, r in _each(params, rows)]
        away, unit, index, distance = (np.stack(part) for part in zip(*parts, strict=True))
        return params["bias"] - distance[..., None], (away, unit, index, x.shape)

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """Towards the patch."""
        _, unit, index, shape = saved
        towards = -slope * unit
        for member, kernel in enumerate(params["kernel"]):
            for k, rows in _groups(index[member]):
                towards[member, rows] -= (towards[member, rows] @ kernel[k]) @ kernel[k].T
        return towards.reshape(len(unit), *shape[1:])

    def gradient(self, params: Params, saved: Any, slope: np.ndarray) -> Params:
        """Each patch is moved and turned by the rows that it is the nearest of."""
        away, unit, index, _ = saved
        centre, kernel = np.zeros_like(params["centre"]), np.zeros_like(params["kernel"])
        for member, basis in enumerate(params["kernel"]):
            for k, rows in _groups(index[member]):
                pull, z = slope[member, rows] * unit[member, rows], away[member, rows]
                across = pull @ basis[k]
                centre[member, k] = pull.sum(axis=0) - basis[k] @ across.sum(axis=0)
                kernel[member, k] = pull.T @ (z @ basis[k]) + z.T @ across
        return {"centre": centre, "kernel": kernel, "bias": slope.sum(axis=1, keepdims=True)}

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        centre, kernel = params["centre"], params["kernel"]
        members, count, width, directions = kernel.shape
        rows = tf.reshape(x, (tf.shape(x)[0], tf.shape(x)[1], width))
        rows = tf.broadcast_to(rows, (members, tf.shape(rows)[1], width))
        flat = tf.reshape(tf.transpose(kernel, (0, 2, 1, 3)), (members, width, count * directions))
        inside = tf.reshape(tf.matmul(rows, flat), (members, -1, count, directions))
        inside -= tf.einsum("mkd,mkdq->mkq", centre, kernel)[:, None]
        square = tf.reduce_sum(centre**2, -1)[:, None] - 2 * tf.matmul(rows, centre, transpose_b=True)
        square -= tf.reduce_sum(inside**2, -1)
        # Products with every basis, masked: a copy of its basis for each row would not fit into memory.
        nearest = tf.one_hot(tf.argmin(square, axis=-1), count, dtype=rows.dtype)
        away = rows - tf.matmul(nearest, centre)
        inside = tf.reshape(tf.matmul(away, flat), (members, -1, count, directions)) * nearest[..., None]
        away -= tf.matmul(tf.reshape(inside, (members, -1, count * directions)), flat, transpose_b=True)
        square = tf.reduce_sum(away**2, -1, keepdims=True)
        safe = tf.where(square > 0, square, tf.ones_like(square))  # the root has no finite slope at 0
        return params["bias"] - tf.where(square > 0, tf.sqrt(safe), tf.zeros_like(square))

    def along(self, params: Params, gradient: Params) -> Params:
        """Tangent to the manifold of orthonormal bases."""
        return {**gradient, "kernel": tangent(params["kernel"], gradient["kernel"])}

    def move(self, params: Params, steps: Params, exact: bool) -> Params:
        """Straight down, and the bases back to orthonormal."""
        moved = down(params, steps)
        return {**moved, "kernel": retract(moved["kernel"])}

    def finish(self, params: Params) -> Params:
        """The polar factor, float64."""
        exact = {name: array.astype(np.float64) for name, array in params.items()}
        return {**exact, "kernel": polar(exact["kernel"])}

    def lipschitz(self, params: Params, input_shape: tuple[int, ...]) -> np.ndarray:
        """1 where ``|V_k| <= sqrt(2)``, since the eigenvalues of I - V V' are 1 and 1 - s²."""
        largest = dense_norm_bound(params["kernel"]).max(axis=-1)
        return np.maximum(1.0, np.nextafter(np.nextafter(largest * largest, np.inf) - 1.0, np.inf))

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """Slope and offset of the rounding error of a value, per unit of the row's norm and alone.

        The patch is chosen among squared distances that are each off by at most e = 16 (d + q + 4) eps
        (|x| + |c|)², and a root moves by at most sqrt(2 e) when its argument does by 2 e. The distance
        itself, two products and a norm, adds a relative 4 (d + q + 4) eps.
        """
        eps = np.finfo(dtype).eps
        width = sum(params["kernel"].shape[-2:]) + 4
        slope = float(np.sqrt(32 * width * eps) + 4 * width * eps) * (1 + 1e-12)
        reach = float(np.sqrt((params["centre"] ** 2).sum(axis=-1)).max())
        return slope, slope * (reach + float(np.abs(params["bias"]).max())) * (1 + 1e-12)

    def _start(self, rows: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        from sklearn.cluster import KMeans

        wanted = self.directions or max(LEAST, round(rows.shape[1] / VALUES))
        directions = min(wanted, max(rows.shape[1] - 1, 1))
        count = min(self.count or max(1, round(TOTAL / wanted)), len(np.unique(rows, axis=0)))
        seed = int(rng.integers(2**31))
        group = KMeans(count, n_init=1, max_iter=ITERATIONS, random_state=seed).fit_predict(rows)
        for _ in range(ROUNDS):
            groups = [rows[group == k] for k in range(count)]
            patches = [_local_pca(part, directions, rng) for part in groups if len(part)]
            count = len(patches)
            centre, kernel = (np.stack(part) for part in zip(*patches, strict=True))
            group = _squares(centre, kernel, rows).argmin(axis=1)
        return centre, kernel

    def _nearest(
        self, centre: np.ndarray, kernel: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        index = _squares(centre, kernel, rows).argmin(axis=1)
        # The products above only choose the patch; its distance is computed without cancellation.
        away = rows - centre[index]
        unit = away.copy()
        for k, members in _groups(index):
            unit[members] -= (unit[members] @ kernel[k]) @ kernel[k].T
        distance = np.sqrt((unit**2).sum(axis=1))
        unit /= np.maximum(distance, np.finfo(unit.dtype).tiny)[:, None]
        return away, unit, index, distance


def _each(params: Params, rows: np.ndarray) -> Any:
    members = len(params["centre"])
    return zip(
        params["centre"], params["kernel"], np.broadcast_to(rows, (members, *rows.shape[1:])), strict=True
    )


def _groups(index: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Rows of each patch that has any."""
    order = np.argsort(index, kind="stable")
    found, start = np.unique(index[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, start[1:]), strict=True))


def _squares(centre: np.ndarray, kernel: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Squared distances (n, K) to the patches, less the square of the row: the same order."""
    count, width, directions = kernel.shape
    flat = kernel.transpose(1, 0, 2).reshape(width, count * directions)
    inside = (rows @ flat).reshape(len(rows), count, directions)
    inside -= np.einsum("kd,kdq->kq", centre, kernel)
    return (centre**2).sum(axis=1) - 2 * (rows @ centre.T) - np.einsum("nkq,nkq->nk", inside, inside)


def _local_pca(rows: np.ndarray, directions: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and leading directions (d, q); a group of too few rows is filled up with random ones."""
    centre = rows.mean(axis=0)
    _, _, right = np.linalg.svd(rows - centre, full_matrices=False)
    known = right[: min(directions, len(rows) - 1)].T
    fresh = orthonormal(rng, (len(centre), directions - known.shape[1]))
    kernel, _ = np.linalg.qr(np.concatenate([known, fresh], axis=1))
    return centre, kernel
