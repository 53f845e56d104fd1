"""Footnotes: how every table of a section is to be read, and where it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ocsdf_bench.grid import Results
from ocsdf_bench.leaderboard.reading import THREATS, method_note, radius_unit
from ocsdf_bench.published import NOTES, PAPER
from ocsdf_bench.store import Run

PROTOCOLS = {
    "unsupervised": "fit on all rows without labels, score the same rows",
    "one-class": "fit on half of the normals, score the other half and all anomalies",
    "one-versus-rest": "fit on one class, score the test part; the other classes are its anomalies",
    "adbench": "ADBench's 70/30 split; sets under 1,000 rows are bootstrapped before it",
    "adbench-clean": "ADBench's 70/30 split without its copies",
}


def notes(results: Results) -> tuple[str, ...]:
    """Footnotes: how to read every table of the section, and where it was made."""
    runs = results.runs
    seeds = sorted({run.spec.seed for run in runs})
    threats = sorted({t for run in runs for t in run.spec.threats if run.spec.radii})
    found = [
        f"Protocol {results.protocol}: {PROTOCOLS.get(results.protocol, 'as its plug-in states')}.",
        f"{len(runs)} runs, seeds {', '.join(map(str, seeds))}; a detector without randomness runs one seed.",
        "Unmarked columns were run here and are in runs.jsonl (ocsdf-bench verify recomputes them from "
        "stored scores); columns marked reported were sent in with their scores and recomputed from them; "
        "columns marked published are printed by others and were not run here.",
        "Positive class: the anomaly.",
    ]
    if threats:
        found.append(
            f"Threat model: {'; '.join(f'{t} = {THREATS[t]}' for t in threats)}, at test time; training rows "
            f"do not move. Radius: {radius_unit(results)}."
        )
    if any("transductive" in method_note(results, m) for m in results.methods):
        found.append("Transductive: the score of a row depends on the other rows it is scored with.")
    if any(m.role == "chosen" for m in results.methods):
        found.append(
            "Chosen with labels: a parameter was picked by its AUROC; not comparable with the others."
        )
    if results.protocol in NOTES:
        found.append(f"Published: {PAPER}. {NOTES[results.protocol]}")
    return (*found, *_provenance(runs))


def _provenance(runs: tuple[Run, ...]) -> Iterator[str]:
    yield f"Hardware: {_counted([_hardware_text(run.hardware) for run in runs])}."
    yield f"Versions: {_counted([_versions_text(run.versions) for run in runs])}."
    commits = [run.commit[:12] + (" with local changes" if run.dirty else "") for run in runs if run.commit]
    yield f"Commit: {_counted(commits)}."


def _hardware_text(hardware: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(hardware.items()))


def _versions_text(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(versions.items()))


def _counted(texts: list[str]) -> str:
    counts = Counter(filter(None, texts))
    if len(counts) < 2:
        return next(iter(counts), "not recorded")
    return "; ".join(f"{text} ({n} runs)" for text, n in sorted(counts.items()))
