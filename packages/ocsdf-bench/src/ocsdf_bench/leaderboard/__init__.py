"""A store as a leaderboard: every table and note once, as values that each format prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ocsdf_bench.grid import Key, Results, split_results
from ocsdf_bench.leaderboard.account import (
    cost_table,
    datasets_table,
    detectors_table,
    failures_table,
)
from ocsdf_bench.leaderboard.copies import copies_tables
from ocsdf_bench.leaderboard.flags import flags_note, red_flags_table
from ocsdf_bench.leaderboard.notes import notes
from ocsdf_bench.leaderboard.precision import standard_error_table
from ocsdf_bench.leaderboard.printed import comparison_tables, pyod_table
from ocsdf_bench.leaderboard.quality import grid_table, ranking_table
from ocsdf_bench.leaderboard.robustness import attack_tables, certified_tables
from ocsdf_bench.leaderboard.structure import Cell, Column, Leaderboard, Row, Section, Table
from ocsdf_bench.leaderboard.training import training_table
from ocsdf_bench.published import Published
from ocsdf_bench.store import Run

__all__ = ["Cell", "Column", "Leaderboard", "Row", "Section", "Table", "build_leaderboard"]


def build_leaderboard(
    runs: Iterable[Run], causes: Mapping[str, str] | None = None, printed: tuple[Published, ...] = ()
) -> Leaderboard:
    """Everything the report says, from the runs alone.

    Parameters
    ----------
    runs : iterable of Run
        In any order; of two runs of one key the later one counts.
    causes : mapping, optional
        Text by row label or data set, for rows outside the paper's spread.
    printed : tuple of Published
        Figures of others to show beside the runs, marked published.

    Raises
    ------
    ValueError
        Where there is no run.
    """
    found = split_results(runs, printed)
    if not found:
        raise ValueError(
            "`runs` of build_leaderboard must hold at least one run; got none. Run a suite first."
        )
    suites = list(dict.fromkeys(results.suite for results in found))
    several = len({(r.suite, r.protocol) for r in found}) > len(suites)
    sections = tuple(_section(results, causes or {}, several, found) for results in found)
    return Leaderboard(f"Leaderboard: {', '.join(suites)}", sections)


def _section(
    results: Results, causes: Mapping[str, str], several: bool, found: tuple[Results, ...]
) -> Section:
    flags = red_flags_table(results)
    tables = [
        ranking_table(results),
        grid_table(results, Key("auroc"), "auroc", "AUROC"),
        *copies_tables(results, found),
        *comparison_tables(results, causes),
        standard_error_table(results),
        *certified_tables(results),
        *attack_tables(results),
        training_table(results),
        grid_table(results, Key("average_precision"), "average-precision", "Average precision"),
        grid_table(results, Key("fpr_at_95_tpr"), "fpr-at-95-tpr", "FPR at 95 % TPR"),
        pyod_table(results),
        flags,
        failures_table(results),
        detectors_table(results),
        datasets_table(results),
        cost_table(results),
    ]
    title = f"{results.suite}, protocol {results.protocol}" if several else f"Protocol {results.protocol}"
    footnotes = (*notes(results), *flags_note(flags))
    return Section(title, tuple(table for table in tables if table is not None), footnotes, results)
