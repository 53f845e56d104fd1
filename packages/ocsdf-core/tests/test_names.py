"""The flat public namespace, and what importing it costs."""

import subprocess
import sys

import pytest

import ocsdf

PUBLIC = [
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


def test_exactly_these_names_are_exported():
    assert sorted(ocsdf.__all__) == PUBLIC
    assert sorted(ocsdf._HOME) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_each_name_is_importable_and_documented(name):
    assert getattr(ocsdf, name).__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'ocsfd'"):
        ocsdf.ocsfd  # noqa: B018


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(*[m for m in ('tensorflow', 'sklearn') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_certified_metrics_cost_numpy_only():
    assert modules_after("from ocsdf import certified_auroc") == set()


def test_fitting_a_table_imports_no_tensorflow():
    code = "import numpy as np; from ocsdf import OCSDF; OCSDF(max_steps=2).fit(np.eye(4)).certify(np.eye(4))"
    assert "tensorflow" not in modules_after(code)
