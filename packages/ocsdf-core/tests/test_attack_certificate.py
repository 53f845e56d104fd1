"""Attacks never beat the certificate of a proven constant, and do beat one that is merely claimed."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPRegressor

import ocsdf
from ocsdf import OCSDF, certified_auroc

RADII = (0.01, 0.1, 0.5, 2.0)
RESTARTS = 3
STEPS = 12


def l2_pgd(score, gradient, X, direction, radius, rng):
    """Worst score (n,) found within the ball, from the row itself and from random starts on the sphere.

    direction (n,): +1 raises the score, -1 lowers it. The clean row is a candidate; the projection ends a
    hair inside the ball, so that rounding cannot make the attack too large.
    """
    limit = radius * (1 - 1e-9)
    worst = score(X)
    for restart in range(RESTARTS):
        start = rng.normal(size=X.shape) if restart else np.zeros_like(X)
        moved = project(X, X + start, limit if restart else 0.0)
        for step in range(STEPS):
            slope = gradient(moved) * direction[:, None]
            norm = np.linalg.norm(slope, axis=1, keepdims=True)
            reach = 2 * limit * (1 - step / STEPS)
            moved = project(X, moved + reach * slope / np.where(norm > 0, norm, 1), limit)
            found = score(moved)
            worst = np.where(direction * found > direction * worst, found, worst)
    return worst


def project(X, moved, limit):
    offset = moved - X
    norm = np.linalg.norm(offset, axis=1, keepdims=True)
    return X + offset * np.minimum(1, limit / np.where(norm > 0, norm, 1))


class InScaledUnits:
    """A fitted detector seen from the units that its constant was proven in."""

    def __init__(self, detector):
        self.detector = detector
        self.lipschitz = detector.lipschitz_

    def rows(self, X):
        return (X - self.detector.center_) / self.detector.scale_

    def inputs(self, z):
        return z * self.detector.scale_ + self.detector.center_

    def score(self, z):
        return self.detector.score_samples(self.inputs(z))

    def gradient(self, z):
        return self.detector.input_gradient(self.inputs(z)) * self.detector.scale_


class Unconstrained:
    """A trained ReLU network, of which someone claims that it is 1-Lipschitz."""

    lipschitz = 1.0

    def __init__(self, X, rng):
        self.center, self.deviation = X.mean(axis=0), X.std(axis=0)
        noise = rng.uniform(-3, 3, size=X.shape)
        rows = np.r_[self.rows(X), noise]
        target = np.r_[np.ones(len(X)), -np.ones(len(X))]
        self.net = MLPRegressor(hidden_layer_sizes=(32, 32), max_iter=2000, random_state=0).fit(
            rows, 3 * target
        )

    def rows(self, X):
        return (X - self.center) / self.deviation

    def score(self, z):
        return self.net.predict(z)

    def gradient(self, z):
        active = []
        for kernel, bias in zip(self.net.coefs_[:-1], self.net.intercepts_[:-1], strict=True):
            z = np.maximum(z @ kernel + bias, 0)
            active.append(z > 0)
        slope = np.broadcast_to(self.net.coefs_[-1].T, (len(z), self.net.coefs_[-1].shape[0]))
        for kernel, on in zip(self.net.coefs_[-2::-1], active[::-1], strict=True):
            slope = (slope * on) @ kernel.T
        return slope


def data(name):
    X, y = {"breast cancer": load_breast_cancer, "wine": load_wine}[name](return_X_y=True)
    anomaly = y == 0
    rng = np.random.default_rng(0)
    return rng.permutation(X[~anomaly])[:100], rng.permutation(X[anomaly])[:20]


def detector_of(recipe):
    if recipe == "detection":
        return OCSDF(max_steps=120, random_state=0)
    if recipe == "novelty":
        return OCSDF.novelty(random_state=0)
    return OCSDF.paper(margin=0.2, hidden=(64, 64), epochs=10, warmup_epochs=2, random_state=0)


@pytest.fixture(
    scope="module",
    params=[("detection", "wine"), ("detection", "breast cancer"), ("novelty", "wine"), ("paper", "wine")],
)
def fitted(request):
    recipe, name = request.param
    normal, anomaly = data(name)
    detector = detector_of(recipe).fit(np.r_[normal, anomaly])
    return InScaledUnits(detector), normal, anomaly


def attack_both(model, normal, anomaly, radius):
    """Attacked scores: normals pushed down, anomalies pushed up."""
    rng = np.random.default_rng(1)
    down = l2_pgd(model.score, model.gradient, model.rows(normal), -np.ones(len(normal)), radius, rng)
    up = l2_pgd(model.score, model.gradient, model.rows(anomaly), np.ones(len(anomaly)), radius, rng)
    return down, up


def auroc(normal, anomaly):
    return roc_auc_score(np.r_[np.zeros(len(normal)), np.ones(len(anomaly))], -np.r_[normal, anomaly])


@pytest.mark.parametrize("radius", RADII)
def test_attack_never_beats_the_certificate(fitted, radius):
    model, normal, anomaly = fitted
    certified = model.detector.certify(np.r_[normal, anomaly])
    down, up = attack_both(model, normal, anomaly, radius)
    n = len(normal)
    assert np.all(certified.lower(radius)[:n] <= down)
    assert np.all(certified.upper(radius)[n:] >= up)
    decided = certified.decision(radius)
    attacked_decision = np.where(np.r_[down, up] >= model.detector.offset_, 1, -1)
    assert np.all((decided == 0) | (decided == attacked_decision) | np.r_[decided[:n] < 0, decided[n:] > 0])
    for threat, scores in {
        "normals": (down, model.detector.score_samples(anomaly)),
        "anomalies": (model.detector.score_samples(normal), up),
        "both": (down, up),
    }.items():
        bound = certified_auroc(
            model.detector.score_samples(normal),
            model.detector.score_samples(anomaly),
            radius,
            lipschitz=model.lipschitz,
            threat=threat,
        )
        clean = auroc(model.detector.score_samples(normal), model.detector.score_samples(anomaly))
        assert bound - 1e-12 <= auroc(*scores) <= clean + 1e-12


def test_the_attack_does_move_the_scores(fitted):
    """A broken attack would pass the test above; this one must use a fair part of what is allowed."""
    model, normal, anomaly = fitted
    down, up = attack_both(model, normal, anomaly, 0.1)
    moved = np.r_[model.score(model.rows(normal)) - down, up - model.score(model.rows(anomaly))]
    assert np.median(moved) >= 0.2 * 0.1 * model.lipschitz


@pytest.mark.parametrize("name", ["wine", "breast cancer"])
def test_the_same_attack_breaks_a_constant_that_is_only_claimed(name):
    normal, anomaly = data(name)
    model = Unconstrained(normal, np.random.default_rng(2))
    clean_normal, clean_anomaly = model.score(model.rows(normal)), model.score(model.rows(anomaly))
    down, up = attack_both(model, normal, anomaly, 0.5)
    beaten = np.r_[down < clean_normal - 0.5, up > clean_anomaly + 0.5]
    assert beaten.mean() > 0.5
    claimed = certified_auroc(clean_normal, clean_anomaly, 0.5, lipschitz=model.lipschitz)
    assert auroc(down, up) < claimed


def test_input_gradients_are_never_longer_than_the_proven_constant(fitted):
    model, normal, anomaly = fitted
    rng = np.random.default_rng(3)
    z = rng.normal(size=(500, normal.shape[1])) * rng.choice([0.1, 1.0, 10.0], size=(500, 1))
    for rows in (model.rows(np.r_[normal, anomaly]), z):
        assert np.linalg.norm(model.gradient(rows), axis=1).max() <= model.lipschitz * (1 + 1e-12)


def flips(detector, X, radius, to_scaled):
    """Rows whose decision an attack of ``radius`` (n,) in the attacked units changes."""
    model = InScaledUnits(detector)
    unit = detector.scale_ if not to_scaled else np.ones(X.shape[1])
    before = detector.predict(X)
    z = (X - detector.center_) / unit

    def score(w):
        return detector.score_samples(w * unit + detector.center_)

    def gradient(w):
        return detector.input_gradient(w * unit + detector.center_) * unit

    assert model.lipschitz > 0
    worst = l2_pgd(score, gradient, z, -before, radius[:, None], np.random.default_rng(4))
    return np.where(worst >= detector.offset_, 1, -1) != before


@pytest.mark.parametrize("unit", ["scaled", "input"])
def test_no_attack_under_the_certified_radius_changes_a_decision_in_either_unit(unit):
    normal, anomaly = data("wine")
    X = np.r_[normal, anomaly] * 10.0 ** np.linspace(-4, 4, normal.shape[1])
    detector = OCSDF(max_steps=120, random_state=0).fit(X)
    radius = detector.certified_radius(X, unit=unit)
    assert not flips(detector, X, radius, to_scaled=unit == "input").any()
    assert flips(detector, X, 20 * radius + 1e-12, to_scaled=unit == "input").any() or unit == "input"


CORNERS = {
    "outside is anomalous": {"outside": "anomalous"},
    "no scaling": {"scale": "none"},
    "one network": {"n_networks": 1},
    "full sort": {"activation": "fullsort", "hidden": (33, 7)},
    "newton": {"negatives": "newton", "margin": 0.05},
}


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("columns", ["plain", "constant", "duplicated", "huge", "tiny"])
def test_certificate_holds_at_the_corners(corner, columns):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 4))
    if columns == "constant":
        X[:, 1] = 7.0 if corner == "no scaling" else 1e30
    elif columns == "duplicated":
        X[:, 1] = X[:, 0]
    elif columns in ("huge", "tiny") and corner != "no scaling":
        X[:, 1] *= 1e30 if columns == "huge" else 1e-30
    detector = OCSDF(max_steps=40, hidden=(16, 16), random_state=0).set_params(**CORNERS[corner]).fit(X)
    model = InScaledUnits(detector)
    # Rows far out too, where the distance to the domain's wall takes over.
    z = np.r_[model.rows(X), 20 * rng.normal(size=(40, 4))]
    certified = detector.certify(model.inputs(z))
    for radius in (1e-3, 0.3, 5.0):
        for direction in (-1.0, 1.0):
            attacked = l2_pgd(model.score, model.gradient, z, np.full(len(z), direction), radius, rng)
            assert np.all(certified.lower(radius) <= attacked)
            assert np.all(certified.upper(radius) >= attacked)


@pytest.mark.parametrize("outside", ["score", "anomalous"])
def test_certificate_holds_where_the_radius_is_under_the_rounding_of_the_score(outside):
    """Rows at 1e8 deviations: float64 scores jump by 1e-8, ten times what a radius of 1e-9 allows."""
    rng = np.random.default_rng(6)
    normal = rng.normal(size=(100, 4))
    detector = OCSDF(max_steps=40, hidden=(16, 16), random_state=0, outside=outside, scale="none").fit(normal)
    X = 1e8 * rng.normal(size=(300, 4))
    certified = detector.certify(X)
    beaten_without = 0
    for _ in range(10):
        direction = rng.normal(size=X.shape)
        # Rounding of the sum moves the row itself by up to 1e-8: the attack is what float64 made of it.
        moved = X + 1e-9 * direction
        radius = np.linalg.norm(moved - X, axis=1).max()
        score = detector.score_samples(moved)
        assert np.all((certified.lower(radius) <= score) & (score <= certified.upper(radius)))
        change = np.abs(score - certified.distance) - detector.lipschitz_ * np.linalg.norm(moved - X, axis=1)
        beaten_without += np.sum(change > 0)
    assert beaten_without > 0


@pytest.mark.parametrize("params", [{}, {"hidden": (16, 16)}, {"hidden": (16, 16), "activation": "fullsort"}])
def test_certificates_hold_for_float32_scores(params, tmp_path):
    rng = np.random.default_rng(6)
    normal = rng.normal(size=(100, 4))
    OCSDF(max_steps=40, random_state=0, scale="none").set_params(**params).fit(normal).save(tmp_path / "a")
    detector = ocsdf.load(tmp_path / "a", dtype="float32")
    huge = detector.certify(1e20 * normal)  # whose squares are no float32
    assert np.isfinite(huge.distance).all()
    assert np.isfinite(huge.radius).all()
    X = np.r_[normal, 30 * normal]
    certified = detector.certify(X)
    beaten_without = 0
    for radius in (3e-8, 1e-6, 0.1):
        low, high = detector.score_bounds(X, radius)
        step = rng.normal(size=(20, *X.shape))
        for offset in radius * (1 - 1e-6) * step / np.linalg.norm(step, axis=-1, keepdims=True):
            score = detector.score_samples(X + offset)
            assert np.all((low <= score) & (score <= high))
            assert np.all((certified.lower(radius) <= score) & (score <= certified.upper(radius)))
            beaten_without += np.sum(np.abs(score - certified.distance) > detector.lipschitz_ * radius)
    assert beaten_without > 0


def test_a_huge_constant_column_costs_the_other_columns_nothing():
    """The mean of 1e30 is off by 1e14 in float64, which must not become the scale of the scores."""
    X = np.random.default_rng(7).normal(size=(60, 3))
    X[:, 1] = 1e30
    radius = OCSDF(max_steps=40, hidden=(16, 16), random_state=0).fit(X).certified_radius(X)
    assert np.median(radius) > 0.01


def test_certificate_of_a_row_whose_square_overflows_is_finite():
    X = np.random.default_rng(8).normal(size=(60, 3))
    detector = OCSDF(max_steps=40, hidden=(16, 16), random_state=0).fit(X)
    certified = detector.certify(1e200 * X[:3])
    assert np.isfinite(certified.distance).all()
    assert np.isfinite(certified.radius).all()


def test_a_network_of_square_layers_attains_its_constant_so_a_smaller_one_would_be_broken():
    """Orthogonal matrices and sorts keep the gradient's norm at 1: the attack must reach the bound itself."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(100, 6))
    detector = OCSDF(max_steps=60, hidden=(6, 6), n_networks=1, random_state=0).fit(X)
    model = InScaledUnits(detector)
    z, radius = model.rows(X), 0.2
    moved = model.score(z) - l2_pgd(model.score, model.gradient, z, -np.ones(len(z)), radius, rng)
    assert np.all(moved <= radius * model.lipschitz)
    assert moved.max() >= radius * model.lipschitz * (1 - 1e-6)
