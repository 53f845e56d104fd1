"""Importing this compiles PyOD's numba kernels (HBOS, CBLOF, COPOD, ECOD): about five seconds each.

The fork server imports it once, so that no run pays for it. The kernels are called on their own: fitting a
whole CBLOF would start threads of OpenMP, which do not survive a fork.
"""

from __future__ import annotations

import numpy as np
from pyod.models.hbos import HBOS
from pyod.utils.stat_models import column_ecdf, pairwise_distances_no_broadcast

_ROWS = np.random.default_rng(0).normal(size=(32, 2))

HBOS().fit(_ROWS)
column_ecdf(_ROWS)
pairwise_distances_no_broadcast(_ROWS, _ROWS)
