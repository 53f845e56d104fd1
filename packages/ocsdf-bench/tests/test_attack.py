import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocsdf_bench.attack import ATTACKS, Attack, attack_scores, project

NUMPY_ATTACKS = [card for card in ATTACKS if card.needs != "tensorflow_score"]


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


def _rows(n=12, shape=(3,), seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, *shape)), np.where(rng.random(n) < 0.5, 1, -1)


@pytest.mark.parametrize("card", NUMPY_ATTACKS, ids=lambda card: card.name)
@pytest.mark.parametrize("shape", [(3,), (4, 4, 1)])
@pytest.mark.parametrize("domain", [None, (0.0, 1.0)])
def test_no_attack_beats_the_slope_or_helps_the_detector(card, shape, domain):
    X, direction = _rows(shape=shape)
    detector = Bowl(np.full(shape, 0.4))
    clean = detector.anomaly_score(X)
    for radius in (0.01, 0.1, 1.0):
        gain = direction * (attack_scores(card, detector, X, direction, radius, domain=domain) - clean)
        assert (gain >= 0).all()
        assert (gain <= radius + 1e-12).all()


@pytest.mark.parametrize("card", NUMPY_ATTACKS, ids=lambda card: card.name)
def test_at_radius_0_the_clean_scores_come_back(card):
    X, direction = _rows()
    detector = Bowl(np.zeros(3))
    np.testing.assert_array_equal(attack_scores(card, detector, X, direction, 0.0), detector.anomaly_score(X))


@pytest.mark.parametrize("card", NUMPY_ATTACKS, ids=lambda card: card.name)
def test_the_same_seed_gives_the_same_attack_and_another_seed_another(card):
    X, direction = _rows()
    first, same, other = (card.run(Bowl(np.zeros(3)), X, direction, 0.1, None, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


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
