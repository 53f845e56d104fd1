"""From what was measured to a page: tables and figures of a toy suite."""

from __future__ import annotations

import json
from pathlib import Path

from ocsdf_bench.study import StudyLog
from ocsdf_bench.toy2d.figures import draw_figures
from ocsdf_bench.toy2d.measure import KNOWN_HALF_WIDTH, ToySuite
from ocsdf_bench.toy2d.sets import KNOWN_SETS, TOY_SETS

PAPER_SLOPES = {
    "one_cloud": 26.66,
    "two_circles": 122.84,
    "two_blobs": 1421.41,
    "blob_and_cloud": 53.90,
    "two_moons": 258.73,
}
"""Local Lipschitz constants of the conventional network as the paper prints them (10,000 steps, width 512)."""

PAPER_BUDGET = "the paper has 512-512-512-512, 10,000 steps, batch 256, λ = 100"


def budget_text(suite: ToySuite) -> str:
    """The budget in words, for captions."""
    width = "-".join(map(str, suite.hidden))
    asked = (suite.hidden, suite.activation, suite.steps, suite.batch_size, suite.weight)
    reduced = asked != ((512,) * 4, "fullsort", 10_000, 256, 100)
    note = f" (reduced: {PAPER_BUDGET})" if reduced else ""
    return f"{width} {suite.activation}, {suite.steps:,} steps, batch {suite.batch_size}, λ = {suite.weight:g}{note}"


def write_report(suite: ToySuite, out: Path) -> Path:
    """Write figures/ and README.md into ``out`` from its runs.csv and arrays/."""
    log = StudyLog(out / "runs.csv", suite.name, "toy2d")
    values = _values(log)
    (out / "figures").mkdir(exist_ok=True)
    draw_figures(suite, out, values, budget_text(suite))
    page = out / "README.md"
    page.write_text(_page(suite, values), encoding="utf-8")
    return page


Values = dict[tuple[str, str, int, str], dict[str, float]]


def _values(log: StudyLog) -> Values:
    """Metrics by (set, detector, n, params)."""
    found: Values = {}
    for row in log.rows():
        key = (row["dataset"], row["detector"], int(row["n_train"]), row["params"])
        if row["value"]:
            found.setdefault(key, {})[row["metric"]] = float(row["value"])
    return found


def _page(suite: ToySuite, values: Values) -> str:
    return f"""# Pictures in the plane

Budget of every figure and table: {budget_text(suite)}; seed {suite.seed}, n = {suite.n_points:,} rows a set,
T = {suite.newton_steps}, B the ball of radius 5. What the pictures say is told in
[docs/toy2d.md](../../docs/toy2d.md); each number is in [runs.csv](runs.csv).

## Level sets

![Level sets of four detectors on five sets](figures/level_sets.png)

Rows: OCSDF, a conventional ReLU network with cross-entropy on the same negatives, OCSVM (ν = 0.05, γ = 1/2),
isolation forest (5 %). Thick: the level zero. Thin: evenly spaced levels. Orange circles: the proven certified
radius around a point, inside which no decision changes. Only OCSDF has one.

## Scores

![Histograms of scores](figures/histograms.png)

## Slope

The largest norm of the input gradient over the rows and 10,000 uniform points of B (*measured*, a lower bound of the
local Lipschitz constant), beside the constant that is *proven* for OCSDF. A conventional network has no proven one.

{_slope_table(suite, values)}

Paper: the constant of its conventional network at full budget, from its table of local Lipschitz constants.

## Is it a signed distance?

Uniform samples of regions whose signed distance (SDF) is known. Mean |f − m − SDF| and the share of the points where
the norm of ∇f is within 5 % of 1, on a grid of 100 × 100 over [−{KNOWN_HALF_WIDTH}, {KNOWN_HALF_WIDTH}]².

![Error of f - m](figures/signed_distance.png)

{_distance_table(suite, values)}

![Levels of f - m on the true ones](figures/known_sets.png)

## How negatives find the boundary

![Negatives during training](figures/negatives.png)

Grey: uniform points of B. Orange: the same points after T Newton–Raphson steps. Line: the level zero. Each panel is a
training from the same start with its own number of steps.
"""


def _slope_table(suite: ToySuite, values: Values) -> str:
    lines = [
        "| set | conventional, paper | conventional, measured | OCSDF, measured | OCSDF, proven | rows inside: OCSDF |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in suite.sets:
        of = {key[1]: v for key, v in values.items() if key[0] == name}
        own, other = of["OCSDF"], of["conventional network"]
        lines.append(
            f"| {TOY_SETS[name].title} | {PAPER_SLOPES[name]:.2f} | {other['slope']:.2f} | {own['slope']:.4f} "
            f"| {own['lipschitz']:.7f} | {100 * own['share_inside']:.1f} % |"
        )
    return "\n".join(lines)


def _distance_table(suite: ToySuite, values: Values) -> str:
    lines = [
        "| region | n | margin | λ | mean error | inside | outside | signed mean | norm of ∇f within 5 % of 1 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (name, _, n, params), v in sorted(
        values.items(), key=lambda item: (item[0][0], item[0][2], item[0][3])
    ):
        if name in suite.known_sets:
            asked = json.loads(params)
            lines.append(
                f"| {KNOWN_SETS[name].title} | {n:,} | {asked['margin']} | {asked['weight']:g} | {v['sdf_error']:.3f} | {v['sdf_error_inside']:.3f} "
                f"| {v['sdf_error_outside']:.3f} | {v['sdf_shift']:+.3f} "
                f"| {100 * v['gradient_norm_within_5_percent']:.0f} % |"
            )
    return "\n".join(lines)
