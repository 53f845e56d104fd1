import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocsdf_bench.dataset import Data
from ocsdf_bench.protocol import PROTOCOLS, UndefinedError, make_split

BINARY = [name for name, card in PROTOCOLS.items() if not card.by_class]


def _data(n_normal=60, n_anomaly=12, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = (100 * rng.random((n_normal + n_anomaly, 3))).astype(dtype)
    return Data.of(X, np.r_[np.zeros(n_normal, int), np.ones(n_anomaly, int)])


@pytest.mark.parametrize("protocol", BINARY)
def test_the_same_seed_gives_the_same_rows(protocol):
    first, second = (make_split(_data(), protocol, seed=3) for _ in range(2))
    assert first.checksum == second.checksum
    np.testing.assert_array_equal(first.X_test, second.X_test)


@pytest.mark.parametrize("protocol", BINARY)
def test_the_seed_changes_the_rows_exactly_where_the_card_says_so(protocol):
    differ = make_split(_data(), protocol, 0).checksum != make_split(_data(), protocol, 1).checksum
    assert differ == PROTOCOLS[protocol].seeded


def test_unsupervised_fits_and_scores_all_rows():
    split = make_split(_data(), "unsupervised", 0)
    np.testing.assert_array_equal(split.X_train, split.X_test)
    assert split.y_test.sum() == 12


def test_one_class_trains_on_half_of_the_normals_and_tests_on_everything_else():
    split = make_split(_data(), "one-class", 0)
    assert len(split.X_train) == 30
    assert len(split.X_test) == 42
    assert split.y_test.sum() == 12


def test_one_class_never_trains_on_an_anomaly():
    data = _data()
    data.X[data.y == 1] += 1e6
    assert make_split(data, "one-class", 0).X_train.max() < 10  # standardised: 1e6 would stand out


def test_one_versus_rest_uses_the_official_test_part():
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 0, 0, 1, 1, 2])
    data = Data.of(X, y, X[3:] + 0.5, np.array([0, 1, 2]))
    split = make_split(data, "one-versus-rest", 0, normal_class=0)
    assert len(split.X_train) == 3
    assert split.y_test.tolist() == [0, 1, 1]


def test_one_versus_rest_without_a_test_part_holds_out_half_of_each_class():
    data = Data.of(np.arange(40.0)[:, None], np.repeat([0, 1], 20))
    split = make_split(data, "one-versus-rest", 0, normal_class=1)
    assert len(split.X_train) == 10
    assert split.y_test.tolist().count(0) == 10


def test_adbench_copies_small_sets_before_it_splits_and_adbench_clean_does_not():
    rows = {name: make_split(_data(200, 40), name, 0) for name in ("adbench", "adbench-clean")}
    assert len(rows["adbench"].X_train) == 700
    assert len(rows["adbench"].X_test) == 300

    def copied(split):
        known = {row.tobytes() for row in split.X_train}
        return np.mean([row.tobytes() in known for row in split.X_test])

    assert copied(rows["adbench"]) > 0.8
    assert copied(rows["adbench-clean"]) == 0
    assert len(rows["adbench-clean"].X_test) == 72


def test_adbench_takes_10000_rows_of_a_large_set():
    split = make_split(_data(11_000, 500), "adbench", 0)
    assert len(split.X_train) + len(split.X_test) == 10_000


@pytest.mark.parametrize("protocol", BINARY)
def test_features_are_scaled_on_the_training_rows(protocol):
    split = make_split(_data(), protocol, 0)
    if split.scaling == "standard":
        np.testing.assert_allclose(split.X_train.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(split.X_train.std(axis=0), 1, atol=1e-12)
    else:
        np.testing.assert_allclose(
            [split.X_train.min(0), split.X_train.max(0)], [[0] * 3, [1] * 3], atol=1e-12
        )


@pytest.mark.parametrize("protocol", BINARY)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e30])
def test_a_constant_column_becomes_zeros_and_never_nan(protocol, value):
    data = _data()
    data.X[:, 1] = value
    split = make_split(data, protocol, 0)
    assert np.isfinite(split.X_test).all()
    np.testing.assert_array_equal(split.X_train[:, 1], 0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, bool])
def test_every_dtype_becomes_float64_before_it_is_scaled(dtype):
    split = make_split(_data(dtype=dtype), "unsupervised", 0)
    assert split.X_train.dtype == np.float64
    assert np.isfinite(split.X_train).all()


def test_images_stay_as_their_data_set_prepared_them():
    X = np.random.default_rng(0).random((20, 4, 4, 1))
    split = make_split(Data.of(X, np.repeat([0, 1], 10), domain=(0.0, 1.0)), "unsupervised", 0)
    np.testing.assert_array_equal(split.X_train, X)
    assert split.scaling == "none"
    assert split.domain == (0.0, 1.0)


@pytest.mark.parametrize("label", [0, 1])
def test_an_absent_class_is_undefined_with_the_reason(label):
    data = Data.of(np.arange(20.0).reshape(10, 2), np.full(10, label))
    with pytest.raises(UndefinedError, match="has no|rows"):
        make_split(data, "unsupervised", 0)


def test_a_single_anomaly_can_not_be_stratified():
    with pytest.raises(UndefinedError, match="single row"):
        make_split(_data(50, 1), "adbench-clean", 0)


def test_class_labels_are_refused_by_a_binary_protocol():
    data = Data.of(np.arange(6.0)[:, None], np.array([0, 1, 2, 0, 1, 2]))
    with pytest.raises(UndefinedError, match="labels 0 and 1"):
        make_split(data, "unsupervised", 0)


def test_nan_in_the_data_is_refused():
    data = _data()
    data.X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite"):
        make_split(data, "unsupervised", 0)


@given(st.integers(4, 40), st.integers(2, 20), st.integers(0, 2**32 - 1), st.sampled_from(BINARY))
def test_no_test_row_is_lost_or_invented(n_normal, n_anomaly, seed, protocol):
    try:
        split = make_split(_data(n_normal, n_anomaly), protocol, seed)
    except UndefinedError:
        return
    if protocol in ("one-class", "adbench-clean"):
        assert len(split.X_train) + len(split.X_test) == n_normal + n_anomaly
    assert len(split.y_test) == len(split.X_test)
    assert set(split.y_test.tolist()) == {0, 1}
