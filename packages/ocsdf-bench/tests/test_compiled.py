"""What the fork server compiles for all runs."""

from __future__ import annotations


def test_importing_it_leaves_the_kernels_compiled() -> None:
    import pyod.models.hbos as hbos
    import pyod.utils.stat_models as stat_models

    import ocsdf_bench.compiled  # noqa: F401

    assert hbos._calculate_outlier_scores.signatures
    assert stat_models.ecdf_terminate_equals_inplace.signatures
    assert stat_models._pairwise_distances_no_broadcast_helper.signatures
