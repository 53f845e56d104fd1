"""Images made by a score: on the level, in the cube, the same for the same seed."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ocsdf_bench import synthesis
from ocsdf_bench.cli import app
from ocsdf_bench.synthesis import Synthesis, draw_synthesis, synthesise


def test_doctests_of_the_module_hold() -> None:
    assert doctest.testmod(synthesis).failed == 0


def test_made_images_lie_on_the_level_in_the_cube_and_differ() -> None:
    from ocsdf import OCSDF

    X = np.random.default_rng(0).random((40, 5, 5, 1)) / 3
    model = OCSDF.images(max_steps=5, scale="none", random_state=0).fit(X)
    made, again = (synthesise(model, X, 4, seed=1) for _ in range(2))
    np.testing.assert_array_equal(made.images, again.images)
    assert made.images.min() >= 0
    assert made.images.max() <= 1
    np.testing.assert_allclose(model.score_samples(made.images), made.level, atol=made.residual.max() + 1e-9)
    assert made.residual.max() < 0.01 * abs(model.score_samples(X)).max() + 1e-6
    assert len({image.tobytes() for image in made.images}) == 4


def test_the_figure_has_a_row_a_class_and_takes_gray_and_colour() -> None:
    gray = Synthesis("0", np.zeros((3, 4, 4, 1)), np.zeros(3), 0.0)
    colour = Synthesis("cat", np.zeros((3, 4, 4, 3)), np.zeros(3), 0.0)
    axes = draw_synthesis([gray, colour]).axes
    assert len(axes) == 6
    assert [axes[0].get_ylabel(), axes[3].get_ylabel()] == ["0", "cat"]


@pytest.mark.parametrize(("name", "words"), [("sk-wine", "a set of images"), ("mnits", "mnist")])
def test_what_is_no_set_of_images_is_refused(name: str, words: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["synthesise", name, "--out", str(tmp_path)])
    assert result.exit_code != 0
    assert words in result.output.replace("\n", " ")
