"""Transfer: adversarial rows of OCSDF, given to a detector that no gradient is known of."""

from __future__ import annotations

from ocsdf_bench.attack import ATTACKS, Attack
from ocsdf_bench.attacks.l2_pgd_reference import l2_pgd

ATTACKS.add(
    Attack(
        "transfer",
        l2_pgd,
        needs="gradient",
        source="Papernot et al., 2016: l2-pgd-reference on an OCSDF fitted on the same rows",
        preload=("ocsdf._estimator",),
        surrogate="OCSDF",
    )
)
