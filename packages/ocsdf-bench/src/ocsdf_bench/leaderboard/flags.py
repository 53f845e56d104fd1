"""Red flags: signs that a number may not mean what it seems to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ocsdf_bench.grid import Block, Key, Method, Results
from ocsdf_bench.leaderboard.reading import detector_info, is_pixels, radius_text
from ocsdf_bench.leaderboard.structure import Column, Row, Table, text_cell
from ocsdf_bench.store import Run


def red_flags_table(results: Results) -> Table | None:
    """Signs that a number may not mean what it seems to."""
    rows = tuple(
        Row((text_cell(block.label), text_cell(method.label), text_cell(flag, "warn")))
        for (block, method), runs in sorted(results.cells.items(), key=lambda item: _order(results, item[0]))
        for flag in red_flags(results, block, method, runs)
    )
    if not rows:
        return None
    columns = tuple(Column(title, numeric=False) for title in ("data set", "detector", "flag"))
    return Table(
        "red-flags", "Red flags", "Signs that a number may not mean what it seems to.", columns, rows
    )


def flags_note(table: Table | None) -> tuple[str, ...]:
    """Footnote that names every flagged column, so that no number is read without it."""
    if table is None:
        return ()
    counts = Counter(row.cells[1].text for row in table.rows)
    named = ", ".join(f"{label} {count}" for label, count in counts.most_common())
    return (f"Red flags: {named}. Each stands with its data set in the table of that name.",)


def _order(results: Results, cell: tuple[Block, Method]) -> tuple[int, int]:
    return results.blocks.index(cell[0]), results.methods.index(cell[1])


def red_flags(results: Results, block: Block, method: Method, runs: tuple[Run, ...]) -> Iterator[str]:
    ok = [run for run in runs if run.status == "ok"]
    aurocs = results.values(Key("auroc"), block, method).values()
    if aurocs and min(aurocs) < 0.5:
        yield f"AUROC under 0.5 ({100 * min(aurocs):.1f}): worse than chance"
    counts = [(run.distinct_scores or 0, run.n_test or 0) for run in ok if run.distinct_scores is not None]
    few = [(distinct, n_test) for distinct, n_test in counts if distinct <= max(10, n_test / 100)]
    if few:
        yield f"few distinct scores ({few[0][0]} on {few[0][1]:,} rows): many pairs may be ties"
    info = detector_info(method.base)
    scores = [run.scores_sha256 for run in ok if run.scores_sha256]
    if info is not None and not info.deterministic and len(scores) > len(set(scores)):
        yield "two seeds gave the same scores: the seed may be ignored"
    yield from dict.fromkeys(flag for run in ok for flag in run.flags)
    yield from _attack_flags(results, block, method)


def _attack_flags(results: Results, block: Block, method: Method) -> Iterator[str]:
    pixels = is_pixels(results)
    for metric in results.metrics():
        for key in results.keys(metric) if metric.startswith("attacked_auroc:") else ():
            attack, here = metric.partition(":")[2], f"at radius {radius_text(key.radius or 0.0, pixels)}"
            attacked = results.values(key, block, method)
            bounds = results.values(Key("certified_auroc", key.radius, key.threat, key.n_test), block, method)
            chance = Key("attacked_auroc:noise", key.radius, key.threat, key.n_test)
            noise = results.values(chance, block, method)
            if any(attacked[s] < bounds[s] - 1e-9 for s in attacked.keys() & bounds.keys()):
                yield f"{attack} {here} beats the certificate: the stated constant is wrong"
            if attack != "noise" and any(attacked[s] >= noise[s] for s in attacked.keys() & noise.keys()):
                yield f"{attack} {here} is no better than random noise"
