"""OCSDF is a scikit-learn outlier estimator: what it accepts, what it refuses, what its attributes say."""

import io
import re
import subprocess
import sys
from contextlib import redirect_stderr

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocsdf import OCSDF, Ball, Box

TINY = {"hidden": (8,), "max_steps": 5, "batch_size": 16, "random_state": 0}
RECIPES = {
    "default": OCSDF(random_state=0),
    "novelty": OCSDF.novelty(random_state=0),
    "dense": OCSDF(**TINY),
    "paper": OCSDF.paper(**{**TINY, "epochs": 2}),
}


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(80, 3)) * [1.0, 5.0, 0.2]


@parametrize_with_checks([OCSDF(random_state=0), OCSDF(**TINY)])
def test_scikit_learns_own_checks_pass_without_exception(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", RECIPES)
class TestEveryRecipe:
    def test_decision_is_score_less_offset_and_predict_is_its_sign(self, name, X):
        model = clone(RECIPES[name]).fit(X)
        decision = model.decision_function(X)
        np.testing.assert_array_equal(decision, model.score_samples(X) - model.offset_)
        np.testing.assert_array_equal(model.predict(X), np.where(decision >= 0, 1, -1))

    def test_same_seed_same_bits_and_another_seed_other_scores(self, name, X):
        first, again = (clone(RECIPES[name]).fit(X).score_samples(X) for _ in range(2))
        other = clone(RECIPES[name]).set_params(random_state=1).fit(X).score_samples(X)
        np.testing.assert_array_equal(first, again)
        # Of 80 rows to draw 256 or 1,024 references from, all are drawn, whatever the seed.
        assert (first == other).all() == (name in ("default", "novelty"))

    def test_measured_slope_stays_under_the_proven_constant(self, name, X):
        model = clone(RECIPES[name]).fit(X)
        scaled = (X - model.center_) / model.scale_
        norms = np.linalg.norm(model.input_gradient(X) * model.scale_, axis=1)
        gaps = np.abs(np.diff(model.score_samples(X))) / np.linalg.norm(np.diff(scaled, axis=0), axis=1)
        assert max(norms.max(), gaps.max()) <= model.lipschitz_ * (1 + 1e-9)
        assert model.lipschitz_ <= 1 + 1e-6

    def test_partial_fit_keeps_scale_and_certificate(self, name, X):
        model = clone(RECIPES[name]).fit(X)
        scale = model.scale_.copy()
        model.partial_fit(X[:40] + 0.1)
        np.testing.assert_array_equal(model.scale_, scale)
        assert model.lipschitz_ <= 1 + 1e-6

    def test_it_works_in_a_pipeline_and_reports_names(self, name, X):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=["a", "b", "c"])
        scaler = StandardScaler().set_output(transform="pandas")
        model = make_pipeline(scaler, clone(RECIPES[name])).fit(frame)
        assert list(model[-1].feature_names_in_) == ["a", "b", "c"]
        assert set(model.predict(frame)) <= {-1, 1}


def test_the_distance_recipes_threshold_is_the_zero_level_and_detections_a_quantile(X):
    assert RECIPES["paper"].fit(X).offset_ == 0.0
    model = OCSDF(random_state=0).fit(X)
    assert (model.predict(X) == -1).mean() == pytest.approx(0.1)
    assert (OCSDF(contamination=0.25).fit_predict(X) == -1).mean() == pytest.approx(0.25)


def test_signed_distance_is_the_score_less_the_margin(X):
    model = clone(RECIPES["paper"]).set_params(margin=0.2).fit(X)
    np.testing.assert_array_equal(model.signed_distance(X), model.score_samples(X) - 0.2)


def test_the_input_radius_is_the_scaled_one_times_the_smallest_scale(X):
    model = OCSDF(random_state=0).fit(X)
    np.testing.assert_allclose(
        model.certified_radius(X, unit="input"), model.certified_radius(X) * model.scale_.min()
    )


def test_outside_the_domain_the_switch_scores_the_distance_to_it(X):
    model = OCSDF(outside="anomalous", domain=Box(-3.0, 3.0), random_state=0).fit(X)
    far = model.center_ + model.scale_ * [[4.0, 0.0, 0.0]]
    assert model.score_samples(far)[0] <= -1.0
    assert model.lipschitz_ <= 1 + 1e-6


def test_progress_is_one_line_on_stderr(X):
    stream = io.StringIO()
    with redirect_stderr(stream):
        OCSDF(**TINY, verbose=1).fit(X)
    assert "OCSDF" in stream.getvalue()


@pytest.mark.parametrize("verbose", [0, 1])
def test_nothing_is_written_to_stdout_and_nothing_at_all_unless_asked(verbose, X, capsys):
    OCSDF(**TINY, verbose=verbose).fit(X)
    written = capsys.readouterr()
    assert written.out == ""
    assert bool(written.err) == bool(verbose)


def test_parameters_are_stored_as_given_and_cloned_without_the_fit(X):
    hidden = [8]
    model = OCSDF(hidden=hidden, max_steps=2).fit(X)
    assert model.get_params()["hidden"] is hidden
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "net_")
    assert copy.set_params(margin=0.3) is copy
    assert copy.fit(X).margin_ == 0.3
    with pytest.raises(ValueError, match="Invalid parameter 'margins'"):
        copy.set_params(margins=1.0)


def test_overrides_of_the_distance_recipe_win_and_the_rest_is_its_own():
    model = OCSDF.paper(margin=0.2, epochs=3)
    assert (model.margin, model.epochs, model.hidden) == (0.2, 3, (512,) * 4)
    assert (model.negatives, model.trim, model.n_networks) == ("newton", 0.0, 1)


def test_history_has_one_entry_per_record_and_slope_never_falls(X):
    history = OCSDF(**TINY).fit(X).history_
    assert set(history) == {"update", "loss", "inside", "gradient_norm", "slope"}
    assert len({len(entries) for entries in history.values()}) == 1
    assert (np.diff(history["slope"]) >= 0).all()


def test_fitting_a_table_imports_no_tensorflow():
    code = (
        "import sys, numpy as np; from ocsdf import OCSDF;"
        "X = np.random.default_rng(0).normal(size=(20, 2));"
        "OCSDF(hidden=(4,), max_steps=2).fit(X); print('tensorflow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


BAD_PARAMETERS = [
    ("margin", 0.0), ("margin", -1.0), ("margin", "big"), ("margin", float("nan")), ("weight", -1.0),
    ("hidden", ()), ("hidden", (0,)), ("hidden", (8, 2.5)), ("hidden", "64"), ("activation", "relu"),
    ("activation", "groupsort1"), ("negatives", "uniform"), ("trim", 0.6), ("n_networks", 0), ("steps", -1),
    ("epochs", 0), ("warmup_epochs", -1), ("max_steps", -1), ("batch_size", 0), ("learning_rate", 0.0),
    ("level", "low"), ("pull", "outward"), ("updates_per_batch", 0), ("domain", "cube"), ("scale", "robust"),
    ("outside", "clip"), ("contamination", 0.0), ("contamination", 0.6), ("network", "resnet"),
    ("network", 3), ("network", ()), ("network", (3,)), ("engine", "torch"), ("random_state", "seed"),
    ("random_state", -1), ("margin", float("inf")), ("margin", True), ("weight", float("inf")),
    ("trim", -0.1), ("hidden", 64), ("hidden", (8, 0)), ("activation", None), ("epochs", 1.5),
    ("max_steps", 2.0), ("batch_size", 1.5), ("n_networks", True), ("learning_rate_end", -1.0),
    ("level", float("nan")), ("updates_per_batch", "settle"), ("contamination", -0.1),
    ("contamination", "high"), ("contamination", float("nan")), ("verbose", -1), ("verbose", "loud"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS)
def test_a_bad_parameter_is_named_in_one_sentence(name, value, X):
    widths = name == "hidden" and isinstance(value, tuple) and value
    got = re.escape(repr(value[-1] if widths else value))  # of widths, the wrong one is shown
    with pytest.raises((ValueError, TypeError), match=rf"`{name}` of OCSDF must be .*; got {got}") as caught:
        OCSDF(**{name: value}).fit(X)
    assert str(caught.value).count("\n") == 0


BAD_ROWS = {
    "a NaN": (np.array([[0.0, 1.0], [np.nan, 2.0]]), "got 'a NaN at index|got a NaN at index"),
    "an inf": (np.array([[0.0, 1.0], [np.inf, 2.0]]), "an inf at index"),
    "strings": (np.array([["a", "b"], ["c", "d"]]), "real numbers"),
    "one dimension": (np.arange(4.0), "2-dimensional"),
    "three dimensions": (np.zeros((4, 2, 2)), "2-dimensional"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows_are_refused_with_a_sentence(name):
    rows, message = BAD_ROWS[name]
    with pytest.raises((ValueError, TypeError), match=message):
        OCSDF().fit(rows)


def test_a_sparse_matrix_is_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"must be dense; got .*toarray"):
        OCSDF().fit(sparse.eye(4, format="csr"))


@pytest.mark.parametrize(
    ("shape", "message"), [((0, 2), "0 sample"), ((1, 2), "1 sample"), ((4, 0), "0 feature")]
)
def test_too_few_rows_or_features_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        OCSDF().fit(np.zeros(shape))


def test_another_number_of_features_and_an_unfitted_model_are_refused(X):
    with pytest.raises(ValueError, match=r"X has 2 features, but OCSDF is expecting 3"):
        OCSDF().fit(X).predict(X[:, :2])
    with pytest.raises(ValueError, match="not fitted"):
        OCSDF().predict(X)


def test_other_feature_names_and_another_order_are_refused(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = OCSDF(random_state=0).fit(frame)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- z"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(frame[["b", "a", "c"]])


def test_an_unknown_unit_of_the_radius_is_refused(X):
    with pytest.raises(ValueError, match=r"`unit` of OCSDF.certified_radius must be .*; got 'pixel'"):
        OCSDF().fit(X).certified_radius(X, unit="pixel")


@pytest.mark.parametrize("method", ["score_samples", "certify", "input_gradient", "save", "to_tensorflow"])
def test_every_method_asks_for_a_fit_first(method, X):
    given = () if method == "to_tensorflow" else (X,)
    with pytest.raises(ValueError, match="not fitted"):
        getattr(OCSDF(), method)(*given)


ODD_ROWS = {
    "two rows": np.array([[0.0, 1.0], [1.0, 3.0]]),
    "fewer rows than a batch": np.random.default_rng(2).normal(size=(7, 3)),
    "one column": np.random.default_rng(3).normal(size=(20, 1)),
    "lists": [[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]],
    "constant columns": np.c_[np.ones(30), np.arange(30.0), np.full(30, 1e9)],
    "all rows equal": np.ones((20, 3)),
    "duplicated rows": np.repeat(np.arange(10.0)[:, None], 4, axis=0),
    "duplicated columns": np.repeat(np.arange(30.0)[:, None], 3, axis=1),
    "integers": np.arange(60).reshape(20, 3),
    "unsigned bytes": np.arange(60, dtype=np.uint8).reshape(20, 3),
    "booleans": np.eye(12, dtype=bool),
    "float16": np.arange(60, dtype=np.float16).reshape(20, 3),
    "values of 1e30": np.random.default_rng(1).normal(size=(20, 2)) * 1e30,
}


@pytest.mark.parametrize("rows", ODD_ROWS.values(), ids=list(ODD_ROWS))
@pytest.mark.parametrize("name", RECIPES)
def test_odd_rows_are_accepted_with_finite_scores(name, rows):
    model = clone(RECIPES[name]).fit(rows)
    far = np.asarray(rows, float) + 100 * (1 + np.abs(np.asarray(rows, float)))  # outside the domain
    assert np.isfinite(model.score_samples(rows)).all()
    assert np.isfinite(model.score_samples(far)).all()
    assert np.isfinite(model.certified_radius(rows)).all()


def test_frames_of_pandas_and_polars_score_as_arrays(X):
    scores = OCSDF(random_state=0).fit(X).score_samples(X)
    for library in ("pandas", "polars"):
        module = pytest.importorskip(library)
        frame = module.DataFrame({name: X[:, j] for j, name in enumerate("abc")})
        # A frame's columns lie in another order in memory, and sums in another order round otherwise.
        model = OCSDF(random_state=0).fit(frame)
        np.testing.assert_allclose(model.score_samples(frame), scores, rtol=1e-12)
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        assert model.n_features_in_ == 3


def test_a_gaussian_start_is_half_as_wide_as_the_rows_and_is_clipped_to_the_box_by_a_step(X):
    model = OCSDF.paper(**{**TINY, "domain": "gaussian", "epochs": 2}).fit(X)
    scaled = (X - model.center_) / model.scale_
    np.testing.assert_allclose(model.domain_.deviation, np.abs(scaled).max(axis=0) / 2)
    np.testing.assert_allclose(model.domain_.high, np.full(X.shape[1], 5.0))
    start = model.domain_.sample(50_000, X.shape[1], np.random.default_rng(0))
    np.testing.assert_allclose(start.std(axis=0), model.domain_.deviation, rtol=0.02)
    assert np.abs(model.domain_.project(10 * start)).max() <= 5.0 + 1e-12
    with pytest.raises(ValueError, match="`domain` of OCSDF.fit on images must be"):
        OCSDF.images(domain="gaussian").fit(np.zeros((20, 4, 4)))


def test_a_ball_is_a_domain_too(X):
    model = OCSDF.paper(**{**TINY, "domain": Ball(5.0), "epochs": 2}).fit(X)
    assert model.domain_ == Ball(5.0)
