"""OCSDF: the anomaly score is minus f, with its proven constant."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo

if TYPE_CHECKING:
    import tensorflow as tf

_EPOCHS = {"paper": 40, "notebook": 45}  # 5 of them with negatives that do not move
_LEAST_UPDATES = {"paper": 0, "notebook": 45 * 15}  # an epoch of the notebook has 15 at least
_NOTEBOOK: dict[str, Any] = {"domain": "gaussian", "level": 0.0, "pull": "inward"}
_FEW_ROWS = 2_000  # up to here they are run in full
_MANY_ROWS_HIDDEN = (256, 256, 256, 256)  # above: a reduced budget
_MANY_ROWS_STEPS = 1_000


class OCSDFDetector:
    """``ocsdf.OCSDF`` on rows that the protocol has scaled already (``scale="none"``).

    The paper's recipe trains 40 epochs at width 512 on up to ``full_rows`` rows, and 1,000 updates at width
    256 above, which ``budget`` states; ``epochs``, ``max_steps`` or ``hidden`` in ``params`` override this.
    ``least_updates`` is how many it takes at least. "notebook" is the same recipe as its authors' published
    notebook of tables runs it: negatives start from a Gaussian of half the rows' extent and move up to the
    level 0 alone, 5 epochs of warm-up come before the 40, and an epoch has 15 updates at least.
    Images reach a network of tables flattened; their domain is the box of the values seen in training,
    unless ``params`` has one.

    Parameters
    ----------
    recipe : {"auto", "detection", "novelty", "paper", "notebook", "images"}
        "auto" is OCSDF's default for what it is given: "images" for images, or else "detection". "novelty"
        is for protocols that promise training rows without anomalies.
    params : dict
        Of ``ocsdf.OCSDF``; ``domain`` may be a pair (low, high), a box, a number, the radius of a ball, or
        "gaussian".
    distance : dict
        Of the distance to references in place of ``network``: "count", "rank" and "neighbours" of
        ``ocsdf.References``, and "squash", the curve of ``ocsdf.Squash`` before it.
    seed : int
    """

    def __init__(
        self,
        recipe: str,
        params: dict[str, Any],
        seed: int,
        *,
        least_updates: int = 0,
        full_rows: int = _FEW_ROWS,
        **distance: Any,
    ) -> None:
        self._recipe = recipe
        self._least_updates = least_updates
        self._full_rows = full_rows
        self._params = params
        self._distance = distance
        self._seed = seed
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        from ocsdf import OCSDF

        recipe = self._recipe
        if recipe == "auto":
            recipe = "images" if X.ndim > 2 and "hidden" not in self._params else "detection"
        self._flat = recipe != "images" and self._params.get("network") in (None, "dense", "references")
        recipes: dict[str, Callable[..., OCSDF]] = {
            "novelty": OCSDF.novelty,
            "paper": OCSDF.paper,
            "notebook": partial(OCSDF.paper, **_NOTEBOOK),
            "images": OCSDF.images,
        }
        create = recipes.get(recipe, OCSDF)
        params = {**self._length(len(X)), **self._params, **self._domain(X), **self._network()}
        self.__dict__.pop("_tensorflow", None)  # of an earlier fit
        self._model = create(**params, scale="none", random_state=self._seed).fit(self._rows(X))
        self.lipschitz = self._model.lipschitz_
        steps = max(self._model.history_["update"], default=0)
        self.budget = {
            "steps": steps,
            "epochs": round(steps * self._model.batch_size / len(X), 2),
            "networks": self._model.n_networks,
            "layers": [str(layer) for layer in self._model.net_.layers],
            "margin": float(self._model.margin_),
        }

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return -self._model.score_samples(self._rows(X))

    @property
    def score_bounds(self) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None:
        """For a distance to references; other networks move as their constant says, or nearly so."""
        from ocsdf import References

        return self._bounds if isinstance(self._model.net_.layers[-1], References) else None

    def _bounds(self, X: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._model.score_bounds(self._rows(X), radii)
        return -high, -low

    def gradient(self, X: np.ndarray) -> np.ndarray:
        return -self._model.input_gradient(self._rows(X)).reshape(X.shape)

    def tensorflow_score(self, x: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        return -self._tensorflow(tf.reshape(x, (len(x), -1)) if self._flat else x)

    @cached_property
    def _tensorflow(self) -> Callable[[Any], Any]:
        """The score in float32: an attack walks along it, and NumPy scores where it ends."""
        return self._model.to_tensorflow("float32")

    @property
    def xla(self) -> bool:
        """It fuses what lies between small convolutions; it sorts full layers slowly."""
        from ocsdf import Conv2D

        return any(isinstance(layer, Conv2D) for layer in self._model.net_.layers)

    def _rows(self, X: np.ndarray) -> np.ndarray:
        return X.reshape(len(X), -1) if self._flat else X

    def _length(self, n_rows: int) -> dict[str, Any]:
        """The budget of the paper's recipe; ``params`` has the last word on each part of it."""
        if self._recipe not in ("paper", "notebook"):
            return {}
        few = n_rows <= self._full_rows
        width = {} if few else {"hidden": _MANY_ROWS_HIDDEN}
        if {"epochs", "max_steps"} & set(self._params):
            return width
        per_epoch = -(-n_rows // self._params.get("batch_size", 128))
        planned = _EPOCHS[self._recipe]
        least = max(self._least_updates, _LEAST_UPDATES[self._recipe])
        updates = max(planned * per_epoch, least) if few else _MANY_ROWS_STEPS
        epochs = max(planned, -(-updates // per_epoch))
        # Longer epochs are longer from the first on: the warm start keeps its share of 5 of them.
        warm = {"warmup_epochs": round(5 * epochs / planned)} if few else {}
        return {**width, **warm, "epochs": epochs, "max_steps": updates}

    def _network(self) -> dict[str, Any]:
        from ocsdf import Squash, references

        if not self._distance:
            return {}
        settings = {name: self._params[name] for name in ("trim",) if name in self._params} | self._distance
        curve = settings.pop("squash", None)
        front = () if curve is None else (Squash(curve),)
        return {"network": (*front, *references(**settings)), "max_steps": self._params.get("max_steps", 0)}

    def _domain(self, X: np.ndarray) -> dict[str, Any]:
        from ocsdf import Ball, Box

        given = self._params.get("domain")
        if isinstance(given, str):
            return {}
        if given is not None:
            return {"domain": Box(*given) if isinstance(given, list | tuple) else Ball(given)}
        return {"domain": Box(float(X.min()), float(X.max()))} if X.ndim > 2 else {}


def build(
    *,
    seed: int,
    recipe: Literal["auto", "detection", "novelty", "paper", "notebook", "images"] = "auto",
    margin: float | Literal["auto"] | None = None,
    weight: float | None = None,
    hidden: tuple[int, ...] | None = None,
    activation: str | None = None,
    negatives: str | None = None,
    trim: float | None = None,
    n_networks: int | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    warmup_epochs: int | None = None,
    max_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    learning_rate_end: float | None = None,
    level: float | None = None,
    pull: str | None = None,
    updates_per_batch: int | str | None = None,
    domain: tuple[float, float] | float | Literal["gaussian"] | None = None,
    outside: str | None = None,
    network: str | None = None,
    engine: str | None = None,
    count: int | None = None,
    rank: float | None = None,
    neighbours: float | None = None,
    squash: Literal["asinh", "clip"] | None = None,
    least_updates: int | None = None,
    full_rows: int | None = None,
) -> Detector:
    """OCSDF by one of its recipes, "auto" by what the rows are; None leaves a parameter to the recipe.

    "count" to "squash" are those of its distance to references, in place of ``network``; the last two are of
    the paper's recipe. See :class:`OCSDFDetector`.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    own = ("count", "rank", "neighbours", "squash", "least_updates", "full_rows")
    settings = {name: given.pop(name) for name in own if name in given}
    params = {name: value for name, value in given.items() if name not in ("seed", "recipe")}
    return OCSDFDetector(recipe, params, seed, **settings)


# The paper's images: 70 epochs, the first 10 of them with negatives that do not move.
_PROFILES: dict[str, dict[str, Any]] = {
    "paper": {"width": 1.0, "steps": 16, "epochs": 70, "warmup_epochs": 10, "batch_size": 128},
    "cpu": {
        "width": 0.125,
        "steps": 2,
        "epochs": None,
        "max_steps": 300,
        "warmup_epochs": 0,
        "batch_size": 32,
    },
}


def build_vgg(
    *,
    seed: int,
    profile: Literal["cpu", "paper"] = "cpu",
    margin: float = 0.4,
    weight: float = 200.0,
    kernel: Literal["isometric", "orthogonal"] = "isometric",
    negatives: Literal["newton", "warp", "jitter"] = "newton",
    width: float | None = None,
    steps: int | None = None,
    max_steps: int | None = None,
    learning_rate: float = 1e-3,
    learning_rate_end: float = 1e-6,
) -> Detector:
    """The paper's network and recipe of images; ``profile`` "paper" is as printed, for a GPU, "cpu" takes a
    minute of two cores. ``margin`` is an l2 distance in pixels of [0, 1]: 0.4 is the paper's 0.02 sqrt(2 d)
    of MNIST in [-1, 1].
    """
    from ocsdf import vgg

    given = {"width": width, "steps": steps, "max_steps": max_steps}
    chosen = _PROFILES[profile] | {name: value for name, value in given.items() if value is not None}
    network = vgg(chosen.pop("width"), kernel)
    hkr = {"margin": margin, "weight": weight, "negatives": negatives}
    rates = {"learning_rate": learning_rate, "learning_rate_end": learning_rate_end}
    return OCSDFDetector("paper", {"network": network, **chosen, **hkr, **rates}, seed)


_SOURCE = "Béthune, Novello et al., Robust one-class classification, ICML 2023, arXiv:2303.01978"
DETECTORS.add(DetectorInfo("OCSDF", build, _SOURCE, preload=("ocsdf._estimator", "ocsdf._numpy_engine")))
DETECTORS.add(
    DetectorInfo(
        "OCSDF-VGG", build_vgg, _SOURCE, preload=("ocsdf._estimator", "tensorflow"), kinds=("image",)
    )
)
