"""One-class classification by signed distance functions, with a certificate against l2 attacks.

Names are imported when first used: ``from ocsdf import certified_auroc`` costs NumPy only.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocsdf._bound import operator_norm_bound
    from ocsdf._certificate import Certificate
    from ocsdf._certified import (
        certified_accuracy,
        certified_auroc,
        certified_average_precision,
        certified_f1,
        certified_fpr_at_tpr,
    )
    from ocsdf._conformal import CertifiedConformal
    from ocsdf._conv import Conv2D
    from ocsdf._domain import Ball, Box
    from ocsdf._estimator import OCSDF
    from ocsdf._layers import Dense, GroupSort
    from ocsdf._loss import hkr_loss
    from ocsdf._negatives import affine_warp, newton_raphson, sample_boundary
    from ocsdf._network import LipschitzNet, build, dense, patches, references, vgg
    from ocsdf._patches import AffinePatches
    from ocsdf._persist import load
    from ocsdf._pool import AveragePool, L2NormPool
    from ocsdf._references import References
    from ocsdf._residual import Residual
    from ocsdf._shape import Channels, DownSample, Flatten
    from ocsdf._squash import Squash

_HOME = {
    "AffinePatches": "_patches",
    "AveragePool": "_pool",
    "Ball": "_domain",
    "Box": "_domain",
    "Certificate": "_certificate",
    "CertifiedConformal": "_conformal",
    "Channels": "_shape",
    "Conv2D": "_conv",
    "Dense": "_layers",
    "DownSample": "_shape",
    "Flatten": "_shape",
    "GroupSort": "_layers",
    "L2NormPool": "_pool",
    "LipschitzNet": "_network",
    "OCSDF": "_estimator",
    "References": "_references",
    "Residual": "_residual",
    "Squash": "_squash",
    "affine_warp": "_negatives",
    "build": "_network",
    "certified_accuracy": "_certified",
    "certified_auroc": "_certified",
    "certified_average_precision": "_certified",
    "certified_f1": "_certified",
    "certified_fpr_at_tpr": "_certified",
    "dense": "_network",
    "hkr_loss": "_loss",
    "load": "_persist",
    "newton_raphson": "_negatives",
    "operator_norm_bound": "_bound",
    "patches": "_network",
    "references": "_network",
    "sample_boundary": "_negatives",
    "vgg": "_network",
}
__version__ = "0.1.0"
__all__ = [
    "AffinePatches",
    "AveragePool",
    "Ball",
    "Box",
    "Certificate",
    "CertifiedConformal",
    "Channels",
    "Conv2D",
    "Dense",
    "DownSample",
    "Flatten",
    "GroupSort",
    "L2NormPool",
    "LipschitzNet",
    "OCSDF",
    "References",
    "Residual",
    "Squash",
    "affine_warp",
    "build",
    "certified_accuracy",
    "certified_auroc",
    "certified_average_precision",
    "certified_f1",
    "certified_fpr_at_tpr",
    "dense",
    "hkr_loss",
    "load",
    "newton_raphson",
    "operator_norm_bound",
    "patches",
    "references",
    "sample_boundary",
    "vgg",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ocsdf' has no attribute {name!r}")
    value = getattr(import_module(f"ocsdf.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
