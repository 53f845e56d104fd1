"""Images made by a score: whole Newton steps from noise to the level that training images have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ocsdf_bench.dataset import DATASETS, Source
from ocsdf_bench.figure import STYLE, save_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 64  # T of the article's synthesis, with full steps


@dataclass(frozen=True)
class Synthesis:
    """Images (n, h, w, c) on the set f = ``level``, and how far f is from it at each (n,)."""

    label: str
    images: np.ndarray
    residual: np.ndarray
    level: float


def synthesise(model: Any, X: np.ndarray, n_images: int, seed: int, label: str = "") -> Synthesis:
    """``n_images`` points of the level set of the mean training score, from uniform noise in the pixel cube.

    Parameters
    ----------
    model : OCSDF
        Fitted on the images ``X`` (n, h, w, c), in [0, 1].
    X : array
    n_images, seed : int
    label : str
        Of the figure's row.

    Examples
    --------
    >>> from ocsdf import OCSDF
    >>> X = np.random.default_rng(0).random((20, 4, 4, 1)) / 4
    >>> model = OCSDF.images(max_steps=0, scale="none", random_state=0).fit(X)
    >>> made = synthesise(model, X, 3, seed=0)
    >>> made.images.shape, bool(made.residual.max() < 1e-6)
    ((3, 4, 4, 1), True)
    """
    level = float(model.score_samples(X).mean())
    images, residual = model.sample_boundary(n_images, level, STEPS, seed)
    return Synthesis(label, images, residual, level)


def draw_synthesis(made: list[Synthesis]) -> Figure:
    """A row of images per class."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    n_columns = len(made[0].images)
    with rc_context(STYLE):
        figure = Figure(figsize=(0.55 * n_columns + 0.7, 0.58 * len(made)), layout="constrained")
        grid = figure.subplots(len(made), n_columns, squeeze=False)
        for row, synthesis in zip(grid, made, strict=True):
            for axes, image in zip(row, synthesis.images, strict=True):
                axes.imshow(image.squeeze(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set_visible(False)
            row[0].set_ylabel(synthesis.label, rotation=0, ha="right", va="center")
    return figure


def run_synthesis(dataset: str, out: Path, source: Source, *, n_images: int = 10, seed: int = 0) -> Path:
    """Fit the image recipe on each class of ``dataset`` and write ``out``/figures/synthesis.png."""
    from ocsdf import OCSDF

    card = DATASETS[dataset]
    data = card.load(source)
    made = []
    for index, label in enumerate(card.classes):
        X = data.X[data.y == index].astype(np.float64)
        model = OCSDF.images(scale="none", random_state=seed).fit(X)
        made.append(synthesise(model, X, n_images, seed, label))
    folder = Path(out) / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    return save_png(draw_synthesis(made), folder / "synthesis.png")
