"""The hinge Kantorovich-Rubinstein loss on two batches, one of normals and one of negatives."""

from __future__ import annotations

import numpy as np

from ocsdf import _check


def hkr_loss(normal: np.ndarray, negative: np.ndarray, *, margin: float, weight: float) -> float:
    """Mean over normals of ``weight max(0, margin - f) - f``, plus the mean over negatives of the mirror
    image.

    Two batches, so no label convention can be reversed.

    Parameters
    ----------
    normal, negative : array (n_normal,), (n_negative,)
        Values of f, unit of the scaled features.
    margin : float
        Positive; f is asked to be above it on normals and below its opposite on negatives.
    weight : float
        Weight of the hinge, >= 0; 0 leaves the Kantorovich-Rubinstein (Wasserstein-1) term alone.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a batch is empty or holds NaN, or if a parameter is out of its range.

    References
    ----------
    Serrurier et al., "Achieving robustness in classification using optimal transport with hinge
    regularization", CVPR 2021; Béthune, Novello et al., ICML 2023, arXiv:2303.01978.

    Examples
    --------
    >>> hkr_loss([2.0, 0.5], [-3.0], margin=1.0, weight=10.0)
    -1.75
    """
    f_normal = _check.array(normal, "normal", "hkr_loss", ndim=1)
    f_negative = _check.array(negative, "negative", "hkr_loss", ndim=1)
    margin = _check.number(margin, "margin", "hkr_loss", low=0.0, open_low=True)
    weight = _check.number(weight, "weight", "hkr_loss", low=0.0)
    hinge_normal = weight * np.maximum(0.0, margin - f_normal) - f_normal
    hinge_negative = weight * np.maximum(0.0, margin + f_negative) + f_negative
    return float(hinge_normal.mean() + hinge_negative.mean())


def hkr_slopes(
    normal: np.ndarray, negative: np.ndarray, margin: float, weight: float, n_trimmed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loss (M,) and its derivatives with respect to both batches, (M, n_normal) and (M, n_negative).

    The ``n_trimmed`` lowest normals of each batch are left out of the mean: where the training rows hold
    anomalies, these are the likeliest ones.
    """
    kept = kept_normals(normal, n_trimmed)
    n_kept = normal.shape[-1] - n_trimmed
    low, high = margin - normal, margin + negative
    per_normal = (weight * np.maximum(low, 0) - normal) * kept
    per_negative = weight * np.maximum(high, 0) + negative
    loss = per_normal.sum(axis=-1) / n_kept + per_negative.mean(axis=-1)
    slope_normal = (-1.0 - weight * (low > 0)) * kept / n_kept
    slope_negative = (1.0 + weight * (high > 0)) / negative.shape[-1]
    return loss, slope_normal.astype(normal.dtype), slope_negative.astype(negative.dtype)


def kept_normals(normal: np.ndarray, n_trimmed: int) -> np.ndarray:
    """True (M, n) but for the ``n_trimmed`` lowest of each row."""
    kept = np.ones(normal.shape, bool)
    if n_trimmed:
        lowest = np.argpartition(normal, n_trimmed - 1, axis=-1)[..., :n_trimmed]
        np.put_along_axis(kept, lowest, False, axis=-1)
    return kept
