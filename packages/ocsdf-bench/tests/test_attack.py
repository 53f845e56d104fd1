from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocsdf_bench import execution
from ocsdf_bench.attack import ATTACKS, Attack, attack_scores, project
from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.measure import attacked_name
from ocsdf_bench.suite import AttackPlan

NUMPY_ATTACKS = [card for card in ATTACKS if card.needs != "tensorflow_score"]
by_name = pytest.mark.parametrize("card", list(ATTACKS), ids=lambda card: card.name)


class Bowl:
    """Distance to a point, with its gradient: slope exactly 1, so that the worst score is known."""

    def __init__(self, centre):
        self.centre = centre

    def anomaly_score(self, X):
        return np.linalg.norm((X - self.centre).reshape(len(X), -1), axis=1)

    def gradient(self, X):
        step = X - self.centre
        norm = np.linalg.norm(step.reshape(len(X), -1), axis=1)
        return step / norm.reshape((-1,) + (1,) * (X.ndim - 1))

    def tensorflow_score(self, x):
        import tensorflow as tf

        return tf.norm(tf.reshape(x - self.centre.astype("float32"), (len(x), -1)), axis=1)


def _rows(n=12, shape=(3,), seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, *shape)), np.where(rng.random(n) < 0.5, 1, -1)


@by_name
@pytest.mark.parametrize("shape", [(3,), (4, 4, 1)])
@pytest.mark.parametrize("domain", [None, (0.0, 1.0)])
def test_no_attack_beats_the_slope_or_helps_the_detector(card, shape, domain):
    X, direction = _rows(shape=shape)
    detector = Bowl(np.full(shape, 0.4))
    clean = detector.anomaly_score(X)
    for radius in (0.1,) if card.name == "l2-pgd" else (0.01, 0.1, 1.0):  # TensorFlow's steps cost
        gain = direction * (attack_scores(card, detector, X, direction, radius, domain=domain) - clean)
        assert (gain >= 0).all()
        assert (gain <= radius + 1e-12).all()


@by_name
def test_at_radius_0_the_clean_scores_come_back(card):
    X, direction = _rows()
    detector = Bowl(np.zeros(3))
    np.testing.assert_array_equal(attack_scores(card, detector, X, direction, 0.0), detector.anomaly_score(X))


@by_name
def test_the_same_seed_gives_the_same_attack_and_another_seed_another(card):
    X, direction = _rows()
    first, same, other = (card.run(Bowl(np.zeros(3)), X, direction, 0.1, None, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any() or card.name == "newton"  # which draws nothing


def test_foolbox_and_the_reference_agree_on_a_score_whose_gradient_turns():
    """Two implementations of the same 50 steps: from the row itself they take the same path."""
    X, direction = _rows(20, (6,))
    detector = Bowl(np.full(6, 0.4))
    first, second = (
        ATTACKS[name].run(detector, X, direction, 0.3, (0.0, 1.0), 0)[0]
        for name in ("l2-pgd", "l2-pgd-reference")
    )
    # float32 against float64, and a row that reaches the bowl's tip jumps from side to side of it.
    far = np.linalg.norm(X - 0.4, axis=1) > 0.35
    assert far.sum() > 5
    np.testing.assert_allclose(first[far], second[far], atol=1e-4)


def test_the_papers_step_is_foolboxs_default():
    import inspect

    from foolbox.attacks import L2ProjectedGradientDescentAttack

    settings = inspect.signature(L2ProjectedGradientDescentAttack).parameters
    assert (settings["steps"].default, settings["rel_stepsize"].default) == (50, 0.025)


def test_an_attack_that_sees_scores_only_finds_most_of_what_the_gradient_finds():
    X, direction = _rows(30, (6, 6, 1))
    detector = Bowl(np.full((6, 6, 1), -5.0))
    clean = detector.anomaly_score(X)
    gain = direction * (attack_scores(ATTACKS["random-search"], detector, X, direction, 0.5) - clean)
    noise = direction * (attack_scores(ATTACKS["noise"], detector, X, direction, 0.5) - clean)
    assert gain.mean() > 0.8 * 0.5 > noise.mean()


def test_a_transfer_attack_looks_at_the_surrogate_and_is_scored_by_the_detector():
    X, direction = _rows(20, (5,))
    near, far = Bowl(np.full(5, -5.0)), Bowl(np.full(5, 6.0))  # downhill of one is uphill of the other
    own = attack_scores(ATTACKS["transfer"], near, X, direction, 0.3, surrogate=near)
    wrong = attack_scores(ATTACKS["transfer"], near, X, direction, 0.3, surrogate=far)
    clean = near.anomaly_score(X)
    assert (direction * (own - clean)).mean() > 0.28
    np.testing.assert_array_equal(wrong, clean)  # the clean row is among the candidates


def test_step_halving_beats_fixed_steps_where_the_score_is_a_narrow_valley():
    class Valley:
        weight = np.array([1.0, 60.0])

        def anomaly_score(self, X):
            return np.sqrt(((X * self.weight) ** 2).sum(axis=1))

        def gradient(self, X):
            return X * self.weight**2 / np.maximum(self.anomaly_score(X), 1e-12)[:, None]

    X = np.random.default_rng(0).uniform(0.5, 1, (40, 2))
    lowest = {
        name: attack_scores(ATTACKS[name], Valley(), X, np.full(40, -1), 0.6)
        for name in ("apgd", "l2-pgd-reference")
    }
    assert lowest["apgd"].mean() < lowest["l2-pgd-reference"].mean()


def test_the_reference_attack_comes_near_the_known_worst_score_and_noise_does_not():
    X, direction = _rows(50, (20,))
    detector = Bowl(np.full(20, -5.0))
    gain = {
        card.name: (
            direction * (attack_scores(card, detector, X, direction, 0.5) - detector.anomaly_score(X))
        )
        for card in NUMPY_ATTACKS
    }
    # 50 steps of 0.025 radius walk 1.25 radii: from a random start they close most of the angle.
    assert gain["l2-pgd-reference"].mean() > 0.95 * 0.5
    assert min(gain[name].min() for name in ("apgd", "newton")) > 0.99 * 0.5
    assert gain["noise"].mean() < 0.7 * 0.5


def test_a_candidate_that_overstates_itself_is_projected_and_scored_again():
    far = Attack("far", lambda detector, X, direction, *_: X[None] + 1e6, "", "a test")
    X = np.zeros((2, 4))
    scores = attack_scores(far, Bowl(np.zeros(4)), X, np.array([1, 1]), 0.5)
    np.testing.assert_allclose(scores, 0.5, rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_candidates_that_are_not_finite_count_as_the_clean_row(bad):
    broken = Attack("broken", lambda detector, X, direction, *_: np.full((2, *X.shape), bad), "", "a test")
    X, direction = _rows()
    detector = Bowl(np.zeros(3))
    np.testing.assert_array_equal(
        attack_scores(broken, detector, X, direction, 0.5), detector.anomaly_score(X)
    )


def test_candidates_of_another_shape_are_refused():
    wrong = Attack("wrong", lambda detector, X, direction, *_: X, "", "a test")  # no axis of candidates
    X, direction = _rows()
    with pytest.raises(ValueError, match="candidates of shape"):
        attack_scores(wrong, Bowl(np.zeros(3)), X, direction, 0.5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"radius": -0.1}, "`radius` .* must be >= 0 .*; got -0.1"),
        ({"radius": np.nan}, "`radius`"),
        ({"direction": np.zeros(12)}, "`direction` .* must be"),
        ({"domain": (0.5, 1.0)}, "must be inside the domain"),
    ],
)
def test_arguments_are_checked(changes, words):
    X, direction = _rows()
    arguments = {"direction": direction, "radius": 0.1, "domain": None, **changes}
    with pytest.raises(ValueError, match=words):
        attack_scores(ATTACKS["noise"], Bowl(np.zeros(3)), X, **arguments)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-6, 10), st.floats(1e-3, 1e3))
def test_a_projected_row_is_in_the_ball_and_in_the_domain(seed, radius, size):
    rng = np.random.default_rng(seed)
    X = rng.random((5, 4))
    rows = project(X + size * rng.standard_normal(X.shape), X, radius, (0.0, 1.0))
    assert (np.linalg.norm(rows - X, axis=1) <= radius * (1 + 1e-9)).all()
    assert rows.min() >= 0
    assert rows.max() <= 1


def test_an_unconstrained_network_falls_so_that_an_attack_that_does_nothing_is_caught():
    from sklearn.datasets import load_digits

    from ocsdf_bench.detector import DETECTORS
    from ocsdf_bench.metric import auroc

    digits = load_digits()
    X, y = digits.data / 16, (digits.target != 8).astype(int)
    detector = DETECTORS["ReLU-BCE"].build(seed=0)
    detector.fit(X[:1000][y[:1000] == 0])
    rows = np.concatenate([np.flatnonzero(y[1000:] == label)[:70] + 1000 for label in (0, 1)])
    clean, direction = auroc(y[rows], detector.anomaly_score(X[rows])), np.where(y[rows] == 1, -1, 1)
    for name in ("l2-pgd", "l2-pgd-reference", "apgd", "newton", "random-search"):
        worst = attack_scores(ATTACKS[name], detector, X[rows], direction, 72 / 255, domain=(0.0, 1.0))
        assert auroc(y[rows], worst) < clean - 0.05, name


@pytest.mark.parametrize(("attacked", "words"), [(0.6, "is no bound"), (0.95, "must lie between"), (0.8, "")])
def test_an_attacked_value_outside_its_bounds_fails_the_run(attacked, words):
    from ocsdf_bench.execution import CertificateError, _require_order
    from ocsdf_bench.metric import Measurement

    values = {"auroc": 0.9, "certified_auroc": 0.7, "attacked_auroc:apgd": attacked}
    metrics = tuple(Measurement(name, value, 0.1, "both", 100) for name, value in values.items())
    if not words:
        _require_order(metrics)
        return
    with pytest.raises(CertificateError, match=words):
        _require_order(metrics)


def test_a_larger_ball_allows_what_a_smaller_one_did(monkeypatch):
    """Steps that are too long for it find less there; the stored scores keep what was found before."""
    gain = {0.1: 1.0, 0.3: 0.5, 0.2: 2.0}
    monkeypatch.setattr(
        execution,
        "attack_scores",
        lambda card, d, X, direction, radius, **_: X[:, 0] + direction * gain[radius],
    )
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    plan = AttackPlan("noise", radii=(0.3, 0.1, 0.2), threats=("both",), n_rows=8, required=False)
    split = SimpleNamespace(X_test=X, y_test=y, domain=None)
    arrays = execution._attacked(
        plan, DETECTORS["IForest"], Bowl(np.zeros(1)), None, split, {"score": X[:, 0]}, None, 0, {}
    )
    rows = arrays["rows:noise"]
    moved = {r: np.abs(arrays[attacked_name("noise", r)] - X[rows, 0]) for r in gain}
    np.testing.assert_array_equal(moved[0.1], 1)
    np.testing.assert_array_equal(moved[0.2], 2)
    np.testing.assert_array_equal(moved[0.3], 2)
