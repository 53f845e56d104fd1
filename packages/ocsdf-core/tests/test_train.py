"""The loop does what the article's algorithms say, and never leaves the constraint."""

import numpy as np
import pytest

from ocsdf import OCSDF, Box, build, dense, hkr_loss, newton_raphson
from ocsdf._loss import hkr_slopes
from ocsdf._numpy_engine import NumpyEngine
from ocsdf._stiefel import orthonormal, polar
from ocsdf._train import Recipe, _batches, train

SETTINGS = {"margin": 0.5, "weight": 10.0, "domain": Box(-5.0, 5.0), "batch_size": 16}


class CountingEngine(NumpyEngine):
    """Counts losses and records how far the kernels are from orthonormal."""

    def __init__(self, net):
        super().__init__(net)
        self.negatives, self.drift = [], 0.0

    def loss_and_gradient(self, normal, negative, margin, weight, n_trimmed):
        self.negatives.append(negative)
        for params in self.net.params:
            if "kernel" in params:
                small = min(params["kernel"].shape[-2:])
                values = np.linalg.svd(params["kernel"].astype(float), compute_uv=False)[..., :small]
                self.drift = max(self.drift, float(np.abs(values**2 - 1).max()))
        return super().loss_and_gradient(normal, negative, margin, weight, n_trimmed)


def run(**settings):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3)).astype(np.float32)
    engine = CountingEngine(build(dense((16, 16)), rows, members=2, rng=rng).astype("float32"))
    history = train(engine, rows, Recipe(**{**SETTINGS, **settings}), rng)
    return engine, history


@pytest.mark.parametrize("k", [1, 3])
def test_algorithm_3_makes_k_updates_on_each_batch_of_negatives(k):
    engine, history = run(negatives="newton", updates=6, updates_per_batch=k)
    assert len(engine.negatives) == history.update[-1] == 6
    assert len({negatives.tobytes() for negatives in engine.negatives}) == 6 // k


def test_algorithm_2_trains_on_a_pool_until_the_loss_settles():
    engine, history = run(negatives="jitter", updates=40, updates_per_batch="converge")
    assert history.update[-1] == 40
    assert len({negatives.tobytes() for negatives in engine.negatives}) < 40


def test_warm_start_leaves_the_negatives_uniform_on_the_domain():
    engine, _ = run(negatives="newton", updates=4, warmup=4)
    first = np.concatenate(engine.negatives).reshape(-1, 3)
    assert np.abs(first).max() <= 5.0
    assert np.abs(first.mean()) < 1.0
    moved, _ = run(negatives="newton", updates=4, warmup=0)
    assert not np.array_equal(np.concatenate(moved.negatives).reshape(-1, 3), first)


@pytest.mark.parametrize("learning_rate", [5e-4, 3e-3, 1e-1])
def test_kernels_stay_orthonormal_and_end_on_the_manifold(learning_rate):
    engine, _ = run(negatives="newton", updates=60, learning_rate=learning_rate)
    # The cap of 0.03 leaves W' W at most 0.06 off, of whose cube the retraction leaves 5/8, and a quarter of
    # its fourth power in each of 16 rotations.
    assert engine.drift <= 1e-4
    for params in engine.net.finished().params:
        if "kernel" in params:
            assert np.linalg.svd(params["kernel"], compute_uv=False).max() <= 1 + 1e-12


@pytest.mark.parametrize("sort", [2, None])
def test_the_thin_product_of_a_square_kernel_is_the_part_of_its_gradient_along_the_manifold(sort):
    rng = np.random.default_rng(4)
    net = build(dense((7, 7, 7), sort=sort), rng.normal(size=(20, 7)), members=2, rng=rng)
    value, saved = net.forward(rng.normal(size=(2, 5, 7)))
    slope = rng.normal(size=value.shape)
    thin = net.gradient_along(saved, slope)
    slope = slope[..., None]
    for i in range(len(net.layers) - 1, -1, -1):
        layer, params = net.layers[i], net.params[i]
        expected = layer.along(params, layer.gradient(params, saved[i], slope))
        assert set(thin[i]) == set(expected)
        for name in expected:
            np.testing.assert_allclose(thin[i][name], expected[name], atol=1e-12)
        slope = layer.backward(params, saved[i], slope)


def test_training_separates_a_cluster_from_its_surroundings():
    X = 0.1 * np.random.default_rng(1).normal(size=(200, 2))
    model = OCSDF.paper(
        margin=0.1, hidden=(32, 32), epochs=None, max_steps=300, learning_rate=5e-3, scale="none",
        domain=Box(-3.0, 3.0), random_state=0,
    ).fit(X)  # fmt: skip
    corners = np.array([[2.5, 2.5], [-2.5, 2.5], [2.5, -2.5], [-2.5, -2.5]])
    assert model.score_samples(X).min() > model.score_samples(corners).max() + 1.0


def test_the_loss_at_hand_worked_points():
    # Normals 2 and 0.5 at margin 1: hinges 0 and 0.5, so (-2 + 10 * 0.5 - 0.5) / 2; the negative adds -3.
    assert hkr_loss([2.0, 0.5], [-3.0], margin=1.0, weight=10.0) == -1.75
    loss, normal, negative = hkr_slopes(np.array([[2.0, 0.5]]), np.array([[-3.0, 0.0]]), 1.0, 10.0)
    np.testing.assert_allclose(loss, [(-2.0 + 5.0 - 0.5) / 2 + (-3.0 + 10.0) / 2])
    np.testing.assert_allclose(normal, [[-0.5, -5.5]])
    np.testing.assert_allclose(negative, [[0.5, 5.5]])


def test_trimmed_normals_have_no_slope():
    _, slope, _ = hkr_slopes(np.array([[0.3, -5.0, 0.2]]), np.zeros((1, 2)), 1.0, 10.0, n_trimmed=1)
    assert slope[0, 1] == 0.0
    assert (slope[0, [0, 2]] == -5.5).all()


def test_newton_raphson_closes_most_of_the_gap_of_an_affine_function_and_stays_inside():
    rng = np.random.default_rng(2)

    def affine(z):
        return z @ np.array([0.6, 0.8]) - 1.0, np.broadcast_to([0.6, 0.8], z.shape)

    domain = Box(-5.0, 5.0)
    start = domain.sample(500, 2, rng)
    points = newton_raphson(affine, start, steps=8, domain=domain, random_state=rng)
    assert domain.contains(points).all()
    # Each point closes 1 - (1 - eta / 8)^8 of its gap, eta uniform on [0, 1]: 36 % on average.
    assert np.abs(affine(points)[0]).mean() < 0.75 * np.abs(affine(start)[0]).mean()


@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 3, 5), (4, 4, 4)])
def test_orthonormal_and_polar_kernels_have_singular_values_one(shape):
    rng = np.random.default_rng(3)
    for kernel in (orthonormal(rng, shape), polar(rng.normal(size=shape))):
        np.testing.assert_allclose(np.linalg.svd(kernel, compute_uv=False), 1.0, atol=1e-12)


def test_a_pool_of_algorithm_2_is_used_again_and_then_replaced():
    # At rate 0 the loss moves with the normals drawn only: some pools last two passes, none lasts for ever.
    engine, _ = run(negatives="jitter", updates=200, updates_per_batch="converge", learning_rate=0.0)
    sent = [negatives.tobytes() for negatives in engine.negatives]
    pools = [sent[i : i + 8] for i in range(0, 200, 8)]
    assert all(len(set(pool)) == 8 for pool in pools)
    again = [first == second for first, second in zip(pools, pools[1:], strict=False)]
    assert any(again)
    assert not all(again)


@pytest.mark.parametrize(("trim", "dropped"), [(0.0, 0), (0.25, 4)])
def test_trimming_starts_after_thirty_percent_of_the_updates(trim, dropped):
    recipe = Recipe(negatives="jitter", updates=10, trim=trim, **SETTINGS)
    assert [recipe.n_trimmed(update) for update in range(10)] == [0] * 3 + [dropped] * 7


def test_the_rate_falls_linearly_to_its_end():
    recipe = Recipe(negatives="jitter", updates=4, learning_rate=1.0, learning_rate_end=0.2, **SETTINGS)
    np.testing.assert_allclose([recipe.rate(update) for update in range(4)], [1.0, 0.8, 0.6, 0.4])


def test_warm_up_ends_when_it_says_so():
    half, _ = run(negatives="newton", updates=4, warmup=2)
    whole, _ = run(negatives="newton", updates=4, warmup=4)
    same = [np.array_equal(a, b) for a, b in zip(half.negatives, whole.negatives, strict=True)]
    assert same == [True, True, False, False]


def test_each_network_walks_through_all_rows_before_it_repeats_one():
    batches = _batches(10, 3, 4, np.random.default_rng(0))
    walk = np.concatenate([next(batches) for _ in range(5)], axis=1)
    for epoch in (walk[:, :10], walk[:, 10:]):
        np.testing.assert_array_equal(np.sort(epoch, axis=1), np.tile(np.arange(10), (3, 1)))
    assert not np.array_equal(walk[0], walk[1])


def test_a_function_draws_the_negatives_and_the_report_counts_every_update():
    seen = []
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    rng = np.random.default_rng(1)
    engine = CountingEngine(build(dense((8,)), rows, members=1, rng=rng).astype("float32"))
    recipe = Recipe(negatives=lambda drawn, rng: drawn + 7.0, updates=3, **SETTINGS)
    history = train(engine, rows, recipe, rng, lambda update, history: seen.append(update))
    assert seen == history.update == [1, 2, 3]
    allowed = {row.tobytes() for row in rows + np.float32(7.0)}
    assert {row.tobytes() for batch in engine.negatives for row in batch[0]} <= allowed


def test_history_measures_what_it_says_and_no_slope_above_the_constant():
    engine, history = run(negatives="newton", updates=90)
    assert history.update == list(range(2, 91, 2))
    assert all(0.0 <= share <= 1.0 for share in history.inside)
    assert max(history.slope) <= (1 + 1e-4) ** 3  # three kernels, each within the drift bound
    assert (np.array(history.gradient_norm) <= np.array(history.slope)).all()
    assert engine.net.finished().lipschitz() <= 1 + 1e-6


QUICK = {"hidden": (16, 16), "n_networks": 2, "random_state": 0, "max_steps": 40}


def test_partial_fit_goes_on_from_the_weights_in_the_units_of_the_first_fit():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(100, 3)), rng.normal(size=(80, 3)) + 1.0
    model = OCSDF(**QUICK).fit(first)
    kept = model.center_, model.scale_, model.margin_, model.domain_
    before = model.net_
    model.partial_fit(second)
    assert all(
        a is b for a, b in zip((model.center_, model.scale_, model.margin_, model.domain_), kept, strict=True)
    )
    moved = max(
        np.abs(a["kernel"] - b["kernel"]).max()
        for a, b in zip(before.params, model.net_.params, strict=True)
        if a
    )
    fresh = OCSDF(**QUICK).fit(second).net_
    started_over = max(
        np.abs(a["kernel"] - b["kernel"]).max()
        for a, b in zip(fresh.params, model.net_.params, strict=True)
        if a
    )
    assert 0 < moved < started_over


def test_rows_of_partial_fit_are_learned():
    rng = np.random.default_rng(1)
    first, second = 0.3 * rng.normal(size=(100, 2)), 0.3 * rng.normal(size=(100, 2)) + 2.0
    model = OCSDF(**{**QUICK, "max_steps": 150}, scale="none").fit(first)
    before = model.score_samples(second).mean() - model.score_samples(first).mean()
    model.partial_fit(np.concatenate([first, second]))
    after = model.score_samples(second).mean() - model.score_samples(first).mean()
    assert after > before + 0.5


def test_the_certificate_holds_after_training_on():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 3))
    model = OCSDF(**QUICK).fit(X).partial_fit(X + 0.5)
    assert model.lipschitz_ >= model.net_.lipschitz()
    certificate = model.certify(X)
    for radius in (1e-3, 0.1, 1.0):
        # The worst of both directions of the gradient, and of a random one.
        step = rng.normal(size=(2, *X.shape))
        step[0] = model.input_gradient(X)
        for direction in (*step, *-step):
            length = np.linalg.norm(direction / model.scale_, axis=1, keepdims=True)
            attacked = model.score_samples(X + radius * direction / length)
            assert (attacked >= certificate.lower(radius)).all()
            assert (attacked <= certificate.upper(radius)).all()


def test_a_fitted_network_is_a_warm_start():
    X = np.random.default_rng(3).normal(size=(100, 3))
    cold = OCSDF(**QUICK).fit(X)
    same = OCSDF(network=cold.net_, max_steps=0, random_state=1).fit(X)
    # Through the float32 of training: 1e-7 of values near 1, over four layers.
    np.testing.assert_allclose(same.score_samples(X), cold.score_samples(X), atol=1e-5)
    warm = OCSDF(network=cold.net_, max_steps=40, random_state=1).fit(X)
    assert warm.history_["loss"][0] < cold.history_["loss"][0]
