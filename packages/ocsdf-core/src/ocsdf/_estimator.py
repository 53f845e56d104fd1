"""OCSDF: a scikit-learn outlier estimator whose every score comes with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ocsdf import _check
from ocsdf._certificate import Certificate
from ocsdf._domain import Box, Domain
from ocsdf._layers import Layer
from ocsdf._local import local_lipschitz, score_bounds
from ocsdf._negatives import sample_boundary
from ocsdf._network import BUILDERS, LipschitzNet, build, dense, references, trains_in_numpy
from ocsdf._numpy_engine import NumpyEngine
from ocsdf._parameters import check_parameters
from ocsdf._progress import Progress
from ocsdf._rounding import add_up, subtract_down
from ocsdf._train import Engine, Recipe, train

DENSE_STEPS = 300  # updates where neither epochs nor max_steps is given; references are final as drawn
SAMPLE = 1024  # rows that a new network sees, where none of its layers asks for more
DETECTION_SHARE = 0.1  # contamination="auto" where f = 0 means nothing
# Numbers that one layer may hold while scoring, so that they stay in a cache (docs/performance.md).
CHUNK = {"float64": 1 << 17, "float32": 1 << 16}
LARGEST = 1e15  # its square is still a float32


class OCSDF(OutlierMixin, BaseEstimator):
    """One-class classification by a 1-Lipschitz network: f is high on the data, low elsewhere, and cannot
    change faster than the constant ``lipschitz_`` that is proven for it.

    The defaults are the *detection recipe*: f is minus the distance to trimmed references, each the mean of
    neighbouring rows, averaged over four draws of them, and the threshold is a quantile. With ``hidden`` a
    dense network is trained instead, by a margin beyond the data's diameter, jittered rows as negatives and
    trimmed normals. f ranks rows well; its zero level means nothing. ``OCSDF.paper()`` is the *distance
    recipe*: a small margin and Newton-Raphson negatives, so that f - m estimates the signed distance to the
    boundary of the support, and the threshold is the level zero. ``OCSDF.novelty()`` is the detection recipe
    for training rows that are known to be normal. ``OCSDF.images()`` is the *image recipe*: the distance to
    affine patches, trained against strongly warped images.

    Parameters
    ----------
    margin : "auto" or float > 0
        m of the hinge, unit of the scaled features; "auto" is ``2 sqrt(d)`` standard deviations.
    weight : float >= 0
        Weight of the hinge (lambda).
    hidden : sequence of int or None
        Widths of the hidden layers of a dense network; None leaves the choice to ``network``.
    activation : str
        "fullsort", or "groupsort" with a group size ("groupsort2").
    negatives : {"jitter", "newton", "warp"} or callable
        "newton": uniform on the domain, moved towards the level. "warp": images read at distorted places, see
        :func:`affine_warp`. A callable gets scaled rows (n, ...) and a Generator and returns as many rows.
    trim : float in [0, 0.5]
        Share of the rows taken for contaminated: references that are dropped, and in training the lowest of
        each batch of normals, which the loss leaves out after 30 % of the updates.
    n_networks : int
        Networks that are trained side by side and averaged.
    steps : int
        T, the Newton-Raphson steps.
    epochs : int or None
        Passes over the rows; None trains for ``max_steps``.
    warmup_epochs : int
        First epochs with negatives that do not move.
    max_steps : int or None
        Weight updates at most; a shortened training keeps its share of warm-up. None without ``epochs`` is
        300, but 0 for references: moving them by the loss gains nothing.
    batch_size : int
        Normals, and negatives, in a batch.
    learning_rate, learning_rate_end : float, float or None
        RMSprop's rate, linear from the first to the second; None keeps it constant.
    level : float or None
        Where the Newton steps aim; None is minus the margin.
    pull : {"both", "inward"}
        "inward": negatives above the level stay.
    updates_per_batch : int or "converge"
        K, the updates on each batch of negatives (Algorithm 3), or training until the loss settles
        (Algorithm 2).
    domain : {"auto", "gaussian"}, Box or Ball
        Set of the negatives, unit of the scaled features; "auto" is the box of 5 standard deviations around
        the mean, for images the pixel cube. "gaussian" is the same box with negatives that start from a
        Gaussian, whose deviation in each feature is half the largest of the rows.
    scale : {"standard", "none"}
        Standardise the features, or take them as they are. Images of uint8 are divided by 255 in any case.
    outside : {"score", "anomalous"}
        "anomalous" scores min(f, signed distance to the domain's boundary), so that all points outside are
        anomalies; the constant stays.
    contamination : "auto" or float in (0, 0.5]
        Share of the training rows to flag; "auto" is the zero level with Newton-Raphson negatives, else 10 %.
    network : None, str, tuple of layers, callable or LipschitzNet
        None is the dense network of ``hidden`` where that is given, else "references"; a name of a builder;
        layers; a function ``(x, members, rng) -> LipschitzNet``; or a network to go on from.
    engine : {"auto", "numpy", "tensorflow", "mixed"}
        What trains. "auto" is NumPy for dense networks, which imports no TensorFlow. "mixed" multiplies their
        square kernels in bfloat16, a fifth faster where the processor has such instructions; for sorts of
        pairs alone. The certificate is of the final float64 weights whatever trained them.
    random_state : int, Generator, RandomState or None
        Same number, same bits, on one machine and thread setting.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    lipschitz_ : float
        Proven upper bound of the l2 constant of the score, in scaled units: float64, rounded up.
    offset_ : float
        Threshold: rows with a score below it are anomalies.
    margin_ : float
        The margin that was used.
    center_, scale_ : array
        Scaled features are ``(X - center_) / scale_``.
    domain_ : Box or Ball
    net_ : LipschitzNet
        float64, on its constraint.
    history_ : dict of lists
        update, loss, inside (share of normals with f > 0), gradient_norm, slope (largest measured).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Scores, gradients and certificates are computed in float64 from the weights as they are stored; training
    is float32.

    References
    ----------
    Béthune, Novello et al., "Robust one-class classification with signed distance function using 1-Lipschitz
    neural networks", ICML 2023, arXiv:2303.01978.

    Examples
    --------
    >>> import numpy as np
    >>> from ocsdf import OCSDF
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> detector = OCSDF(random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [8.0, 8.0]])
    array([ 1, -1])
    >>> bool(detector.certified_radius([[8.0, 8.0]])[0] > 1.0)
    True
    """

    def __init__(
        self,
        margin: str | float = "auto",
        weight: float = 100.0,
        hidden: Sequence[int] | None = None,
        activation: str = "groupsort2",
        negatives: str | Callable[[np.ndarray, np.random.Generator], np.ndarray] = "jitter",
        trim: float = 0.15,
        n_networks: int = 4,
        steps: int = 4,
        epochs: int | None = None,
        warmup_epochs: int = 5,
        max_steps: int | None = None,
        batch_size: int = 128,
        learning_rate: float = 3e-3,
        learning_rate_end: float | None = 0.0,
        level: float | None = None,
        pull: str = "both",
        updates_per_batch: int | str = 1,
        domain: str | Domain = "auto",
        scale: str = "standard",
        outside: str = "score",
        contamination: str | float = "auto",
        network: Any = None,
        engine: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.margin = margin
        self.weight = weight
        self.hidden = hidden
        self.activation = activation
        self.negatives = negatives
        self.trim = trim
        self.n_networks = n_networks
        self.steps = steps
        self.epochs = epochs
        self.warmup_epochs = warmup_epochs
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_end = learning_rate_end
        self.level = level
        self.pull = pull
        self.updates_per_batch = updates_per_batch
        self.domain = domain
        self.scale = scale
        self.outside = outside
        self.contamination = contamination
        self.network = network
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, margin: float = 0.05, **overrides: Any) -> Self:
        """The distance recipe: the paper's tabular setting, whose f - m estimates the signed distance.

        Examples
        --------
        >>> OCSDF.paper(margin=0.2).get_params()["activation"]
        'fullsort'
        """
        recipe: dict[str, Any] = {
            "hidden": (512, 512, 512, 512),
            "activation": "fullsort",
            "negatives": "newton",
            "trim": 0.0,
            "n_networks": 1,
            "epochs": 40,
            "max_steps": None,
            "learning_rate": 5e-4,
            "learning_rate_end": None,
        }
        return cls(margin=margin, **{**recipe, **overrides})

    @classmethod
    def novelty(cls, **overrides: Any) -> Self:
        """The detection recipe where the training rows are known to be normal.

        Three of the four networks keep all their rows: without a cluster of anomalies to look past, the
        nearest six of 1,024 rows say more than larger neighbourhoods. The fourth keeps the densest 40 %,
        since training rows at the rim hide anomalies beside them.

        Examples
        --------
        >>> OCSDF.novelty().get_params()["network"]
        (References(count=1024, rank=0.0, trim=(0.0, 0.0, 0.0, 0.6), neighbours=0.005),)
        """
        neighbours = references(count=1024, rank=0.0, trim=(0.0, 0.0, 0.0, 0.6), neighbours=0.005)
        return cls(**{"network": neighbours, "trim": 0.0, "max_steps": 0, **overrides})

    @classmethod
    def images(cls, margin: float = 5.0, **overrides: Any) -> Self:
        """The image recipe: affine patches, moved by the HKR loss against warped images.

        Its margin is an l2 distance of images in [0, 1].

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> digits = load_digits()
        >>> zeros = digits.images[digits.target == 0] / 16
        >>> detector = OCSDF.images(random_state=0).fit(zeros)
        >>> bool(detector.score_samples(digits.images[digits.target == 7] / 16).max() < detector.offset_)
        True
        """
        recipe: dict[str, Any] = {
            "network": "patches",
            "negatives": "warp",
            "weight": 10.0,
            "trim": 0.0,
            "n_networks": 1,
            "max_steps": 300,
        }
        return cls(margin=margin, **{**recipe, **overrides})

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn f from rows (n, n_features), or images (n, h, w) or (n, h, w, c). ``y`` is ignored.

        Raises
        ------
        ValueError, TypeError
            On an invalid parameter, or rows that are not finite real numbers; one sentence each.
        """
        check_parameters(self)
        rows = self._rows(X, "fit", reset=True)
        self._set_scale(np.asarray(X).dtype, rows)
        if isinstance(self.negatives, str) and self.negatives == "warp" and rows.ndim < 3:
            got = f"rows of shape {rows.shape[1:]}"
            raise ValueError(_check.sentence("negatives", "OCSDF.fit", '"warp" for images only', got))
        scaled = self._scaled(rows)
        rng = _check.generator(self.random_state, "random_state", "OCSDF")
        deviation = scaled.std(axis=0)
        self._set_units(scaled, deviation)
        return self._train(self._new_net(scaled, rng), scaled, rng)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Train on, on new rows, with the scale, margin and domain of the first call; renew the bound.

        The default, a distance to references that no loss moves, keeps its references: its threshold alone
        follows the new rows. ``max_steps`` or ``hidden`` make a network that learns from them.
        """
        if not hasattr(self, "net_"):
            return self.fit(X)
        check_parameters(self)
        rng = _check.generator(self.random_state, "random_state", "OCSDF")
        return self._train(self.net_, self._scaled(self._rows(X, "partial_fit")), rng)

    def score_samples(self, X: Any) -> np.ndarray:
        """Scores f (n,), higher = more normal; float64."""
        return self._score(self._scaled(self._rows(X, "score_samples")))

    def decision_function(self, X: Any) -> np.ndarray:
        """``score_samples(X) - offset_``: negative for anomalies."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for normal rows, -1 for anomalies."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def signed_distance(self, X: Any) -> np.ndarray:
        """``f - margin_`` (n,): estimate of the signed distance, positive inside; distance recipe only."""
        return self.score_samples(X) - self.margin_

    def certify(self, X: Any) -> Certificate:
        """Scores, proven constant, threshold and the rounding of the scores; radii in scaled units."""
        scaled = self._scaled(self._rows(X, "certify"))
        slope, offset = self.net_.rounding
        if self.outside == "anomalous":
            wall_slope, wall_offset = self.domain_.rounding(scaled[0].size)
            slope, offset = max(slope, wall_slope), max(offset, wall_offset)
        flat = np.abs(scaled).reshape(len(scaled), -1)
        size = flat.max(axis=1) * np.sqrt(flat.shape[1])  # at least the l2 norm, and no square overflows
        rounding = 2 * (slope * size + offset)
        return Certificate(self._score(scaled), self.lipschitz_ + slope, self.offset_, rounding)

    def certified_radius(self, X: Any, unit: str = "scaled") -> np.ndarray:
        """l2 radius (n,) under which no attack changes the decision.

        Parameters
        ----------
        X : array (n, n_features)
        unit : {"scaled", "input"}
            Of the radius; "input" multiplies by the smallest scale, which is conservative.
        """
        _check.choice(unit, "unit", "OCSDF.certified_radius", ("scaled", "input"))
        radius = self.certify(X).radius
        return radius if unit == "scaled" else np.nextafter(radius * self.scale_.min(), 0.0)

    def local_lipschitz(self, X: Any, radius: float) -> np.ndarray:
        """Upper bound (n,) of the score's constant on the l2 ball of ``radius`` around each row.

        Scaled units. Never above ``lipschitz_``: what it saves, the score can not move by inside the ball.

        Parameters
        ----------
        X : array (n, n_features)
        radius : float >= 0
            l2, unit of the scaled features.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 5))
        >>> detector = OCSDF(random_state=0).fit(X)
        >>> bool((detector.local_lipschitz(X, radius=0.1) <= detector.lipschitz_).all())
        True
        """
        radius = _check.number(radius, "radius", "OCSDF.local_lipschitz", low=0.0)
        scaled = self._scaled(self._rows(X, "local_lipschitz"))
        net = self._exact
        bound = np.concatenate([local_lipschitz(net, part, radius) for part in self._chunks(scaled)])
        wall = 1.0 if self.outside == "anomalous" else 0.0
        return np.minimum(np.maximum(bound, wall), self.lipschitz_)

    def score_bounds(self, X: Any, radius: Any) -> tuple[np.ndarray, np.ndarray]:
        """Scores that no l2 attack of ``radius`` gets a row under, and over: the tightest that are proven.

        Never wider than ``certify(X).lower(radius)`` and ``upper(radius)``, which use the constant alone, and
        rounded to the safe side. What they leave of the AUROC is ``certified_auroc(lower of the normals,
        upper of the anomalies, 0.0, lipschitz=1.0)``.

        Parameters
        ----------
        X : array (n, n_features)
        radius : float or array (n_radii,), >= 0
            l2, unit of the scaled features.

        Returns
        -------
        low, high : arrays (n,), or (n_radii, n)

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> detector = OCSDF(random_state=0).fit(X)
        >>> low, high = detector.score_bounds(X, radius=0.25)
        >>> bool((high - low).mean() < 0.9 * 2 * 0.25)
        True
        """
        radii = _check.radii(radius, "OCSDF.score_bounds")
        flat = np.atleast_1d(radii)
        certificate = self.certify(X)
        scaled = self._scaled(self._rows(X, "score_bounds"))
        net = self._exact
        parts = [score_bounds(net, part, flat) for part in self._chunks(scaled)]
        low, high = (np.concatenate(side, axis=1) for side in zip(*parts, strict=True))
        if self.outside == "anomalous":
            wall = self.domain_.signed_distance(scaled)
            low = np.minimum(low, subtract_down(wall, flat[:, None]))
            high = np.minimum(high, add_up(wall, flat[:, None]))
        low = np.maximum(subtract_down(low, certificate.rounding), certificate.lower(flat))
        high = np.minimum(add_up(high, certificate.rounding), certificate.upper(flat))
        return (low, high) if radii.ndim else (low[0], high[0])

    def input_gradient(self, X: Any) -> np.ndarray:
        """Gradient of ``score_samples`` with respect to X, in the units and the shape of X."""
        rows = self._rows(X, "input_gradient")
        scaled = self._scaled(rows)
        parts = [self._score_gradient(part) for part in self._chunks(scaled)]
        return (np.concatenate(parts) / self.scale_).reshape(rows.shape)

    def sample_boundary(
        self, n: int, level: float | None = None, steps: int = 64, random_state: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, ...) where the network's f is ``level``, in input units, and ``|f - level|`` (n,).

        Parameters
        ----------
        n : int
            Points; each starts at a uniform point of the domain.
        level : float or None
            Value of f; None is the threshold. The mean score gives typical rows.
        steps : int
            Newton steps.
        random_state : int, Generator, RandomState or None
        """
        check_is_fitted(self)
        n = _check.integer(n, "n", "OCSDF.sample_boundary", low=1)
        rng = _check.generator(random_state, "random_state", "OCSDF.sample_boundary")
        start = self.domain_.sample(n, self.net_.input_shape, rng)
        goal = self.offset_ if level is None else level
        points, residuals = sample_boundary(
            self._exact.value_and_gradient, start, level=goal, steps=steps, domain=self.domain_
        )
        return points * self.scale_ + self.center_, residuals

    def to_tensorflow(self, dtype: str = "float64") -> Callable[[Any], Any]:
        """The score as a differentiable function of tensors: (n, n_features) to (n,), the scaler inside.

        The scaler computes in float64 and the network in ``dtype``; the answer has the dtype of the input.
        """
        check_is_fitted(self)
        import tensorflow as tf

        net = self.net_.astype(dtype)

        def score(x: Any) -> Any:
            scaled = (tf.cast(x, tf.float64) - self.center_) / self.scale_
            value = tf.cast(net.tensor(tf.cast(scaled, net.dtype)), tf.float64)
            if self.outside == "anomalous":
                value = tf.minimum(value, self.domain_.signed_distance(scaled))
            return tf.cast(value, x.dtype)

        return score

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one npz file with a JSON header; ``ocsdf.load`` reads it.

        A function, a network or a Generator among the parameters is not stored; the fitted network is.
        """
        check_is_fitted(self)
        from ocsdf._persist import save

        save(self, path)

    def export(self, path: str | Path, format: str = "saved_model") -> None:
        """Write the score as a graph that other runtimes read, the scaler inside.

        Rows "x" of input units to "score" (n,), in float64; in ONNX images are float32, for which alone
        its runtimes have convolutions. ``lipschitz`` and ``offset`` go with the graph. Certify with
        ``ocsdf.load``: no certificate covers what another runtime's rounding adds.

        Parameters
        ----------
        path : str or Path
            A folder for a SavedModel, whose ``score`` also takes float32 tensors; a file for ONNX.
        format : {"saved_model", "onnx"}
            "onnx" needs the extra ``ocsdf-core[onnx]``.
        """
        check_is_fitted(self)
        from ocsdf._export import export

        export(self, path, format)

    def _set_scale(self, dtype: np.dtype, rows: np.ndarray) -> None:
        if rows.ndim > 2:
            self.center_, self.scale_ = np.zeros(1), np.full(1, 255.0 if dtype == np.uint8 else 1.0)
            return
        center, scale = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        if self.scale == "standard":
            with np.errstate(over="ignore", invalid="ignore"):
                center, scale = rows.mean(axis=0), rows.std(axis=0)
            # A column that varies by its rounding only is constant; the mean of 1e30 is itself off by 1e14.
            constant = scale <= 16 * np.finfo(float).eps * np.abs(center)
            center, scale = np.where(constant, rows[0], center), np.where(constant, 1.0, scale)
        largest = np.abs(rows).max() if self.scale == "none" else 0.0
        if not (np.isfinite(center).all() and np.isfinite(scale).all() and largest <= LARGEST):
            limit = (
                "at most 1e15 in size where scale='none'" if self.scale == "none" else "below 1e150 in size"
            )
            raise ValueError(_check.sentence("X", "OCSDF.fit", limit, f"a value of {np.abs(rows).max():g}"))
        self.center_, self.scale_ = center, scale

    def _set_units(self, scaled: np.ndarray, deviation: np.ndarray) -> None:
        moving = deviation[deviation > 0]
        typical = float(np.sqrt((moving**2).mean())) if moving.size else 1.0
        self._spread = 3.0 * typical
        auto = 2.0 * typical * np.sqrt(deviation.size)
        self.margin_ = auto if isinstance(self.margin, str) else float(self.margin)
        if not isinstance(self.domain, str):
            self.domain_ = self.domain
        elif scaled.ndim > 2:
            _check.choice(self.domain, "domain", "OCSDF.fit on images", ("auto",))
            self.domain_ = Box(0.0, 1.0)
        else:
            reach, middle = np.where(deviation > 0, 5 * deviation, 5 * typical), scaled.mean(axis=0)
            start = np.abs(scaled - middle).max(axis=0) / 2 if self.domain == "gaussian" else None
            self.domain_ = Box(middle - reach, middle + reach, start)

    def _new_net(self, scaled: np.ndarray, rng: np.random.Generator) -> LipschitzNet:
        order = rng.permutation(len(scaled))
        if isinstance(self.network, LipschitzNet):
            return self.network
        if callable(self.network):
            return self.network(scaled[order[:SAMPLE]], members=self.n_networks, rng=rng)
        layers = self._layers()
        n_rows = max(getattr(layer, "sample_rows", SAMPLE) for layer in layers)
        return build(layers, scaled[order[:n_rows]], members=self.n_networks, rng=rng)

    def _layers(self) -> tuple[Layer, ...]:
        if isinstance(self.network, tuple):
            return self.network
        name = self._network_name()
        if name == "dense":
            return dense(self.hidden or (64, 64, 64, 64), _group_size(self.activation))
        return references(trim=self.trim) if name == "references" else BUILDERS[name]()

    def _network_name(self) -> str:
        if isinstance(self.network, str):
            return self.network
        return "references" if self.hidden is None else "dense"

    def _train(self, net: LipschitzNet, scaled: np.ndarray, rng: np.random.Generator) -> Self:
        recipe = self._recipe(len(scaled))
        engine = _engine(self.engine, net.astype("float32"))
        with Progress("OCSDF", recipe.updates, enabled=bool(self.verbose)) as progress:
            history = train(engine, scaled.astype(np.float32), recipe, rng, progress.show)
        self.history_ = vars(history)
        self.net_ = engine.net.finished()
        bound = self.net_.lipschitz()
        self.lipschitz_ = max(bound, 1.0) if self.outside == "anomalous" else bound
        score = self._score(scaled)
        zero_level = self.contamination == "auto" and self.negatives == "newton"
        share = DETECTION_SHARE if isinstance(self.contamination, str) else self.contamination
        self.offset_ = 0.0 if zero_level else float(np.quantile(score, share))
        return self

    def _recipe(self, n: int) -> Recipe:
        per_epoch = -(-n // self.batch_size)
        limit = self._default_steps() if self.max_steps is None else self.max_steps
        planned = limit if self.epochs is None else self.epochs * per_epoch
        updates = planned if self.max_steps is None else min(planned, self.max_steps)
        warmup = round(self.warmup_epochs * per_epoch * updates / max(planned, 1))
        return Recipe(
            margin=self.margin_,
            weight=self.weight,
            negatives=self.negatives,
            domain=self.domain_,
            updates=updates,
            warmup=min(warmup, updates // 2),
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            learning_rate_end=self.learning_rate
            if self.learning_rate_end is None
            else self.learning_rate_end,
            steps=self.steps,
            level=-self.margin_ if self.level is None else self.level,
            pull=self.pull,
            spread=self._spread,
            trim=self.trim,
            updates_per_batch=self.updates_per_batch,
        )

    def _default_steps(self) -> int:
        fixed = self.network in (None, "references") and self.hidden is None
        return 0 if fixed else DENSE_STEPS

    def _rows(self, X: Any, method: str, reset: bool = False) -> np.ndarray:
        if not reset:
            check_is_fitted(self)
        images = self.network not in (None, "dense", "references")
        _check_rows(X, f"OCSDF.{method}", images)
        rows = validate_data(
            self,
            X,
            reset=reset,
            dtype=np.float64,
            allow_nd=images,
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
        finite = np.isfinite(rows)
        if not finite.all():
            where = tuple(int(i) for i in np.argwhere(~finite)[0])
            got = "a NaN" if np.isnan(rows[where]) else "an inf"
            raise ValueError(
                _check.sentence(
                    "X", f"OCSDF.{method}", "finite", f"{got} at index {where}", "drop or impute such rows"
                )
            )
        return rows

    def _scaled(self, rows: np.ndarray) -> np.ndarray:
        scaled = rows - self.center_
        scaled /= self.scale_
        return scaled

    @property
    def _exact(self) -> LipschitzNet:
        """The function whose values ``net_`` computes, to float64 rounding."""
        return self.net_.astype("float64")

    def _chunks(self, scaled: np.ndarray) -> list[np.ndarray]:
        size = max(64, CHUNK[str(self.net_.dtype)] // (self.net_.members * self.net_.width))
        return [scaled[i : i + size] for i in range(0, len(scaled), size)]

    def _score(self, scaled: np.ndarray) -> np.ndarray:
        parts = []
        for part in self._chunks(scaled):
            fits = self.net_.dtype == np.float64 or np.abs(part).max() <= LARGEST  # or its square is an inf
            parts.append((self.net_ if fits else self._exact)(part))
        value = np.concatenate(parts).astype(np.float64, copy=False)
        if self.outside == "anomalous":
            value = np.minimum(value, self.domain_.signed_distance(scaled))
        return value

    def _score_gradient(self, scaled: np.ndarray) -> np.ndarray:
        value, gradient = self._exact.value_and_gradient(scaled)
        if self.outside == "anomalous":
            wall = self.domain_.signed_distance(scaled)
            below = (wall < value).reshape(-1, *(1,) * (scaled.ndim - 1))
            gradient = np.where(below, self.domain_.gradient(scaled), gradient)
        return gradient


def _engine(name: str, net: LipschitzNet) -> Engine:
    if name == "numpy" or (name == "auto" and trains_in_numpy(net)):
        return NumpyEngine(net)
    if name == "mixed":
        from ocsdf._mixed_engine import MixedEngine

        return MixedEngine(net)
    from ocsdf._tensorflow_engine import TensorflowEngine

    return TensorflowEngine(net)


def _group_size(activation: str) -> int | None:
    return None if activation == "fullsort" else int(activation.removeprefix("groupsort"))


def _check_rows(X: Any, caller: str, images: bool) -> None:
    """Sentences where scikit-learn's messages take several lines."""
    if hasattr(X, "tocsr"):
        raise TypeError(_check.sentence("X", caller, "dense", "a sparse matrix", "pass X.toarray()"))
    shape = np.asarray(X).shape
    if len(shape) != 2 and not images:
        remedy = "Reshape your data: X.reshape(-1, 1) is one feature, X.reshape(1, -1) one row"
        allowed = "2-dimensional (n_rows, n_features)"
        raise ValueError(_check.sentence("X", caller, allowed, f"an array of shape {shape}", remedy))
    kind = np.asarray(X).dtype.kind
    if kind in "USMm":
        raise ValueError(
            _check.sentence("X", caller, "real numbers", f"an array of dtype {np.asarray(X).dtype}")
        )
