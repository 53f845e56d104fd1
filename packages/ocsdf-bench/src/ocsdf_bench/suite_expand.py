"""A checked TOML document into runs: protocols x data sets x classes x detectors x seeds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

from ocsdf_bench.dataset import DATASETS
from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.protocol import PROTOCOLS
from ocsdf_bench.suite import AttackPlan, Choice, RunSpec, Suite

N_ATTACKED_ROWS = 200

Entry = dict[str, Any]


def expand(raw: Entry, tables: dict[str, list[Entry]]) -> Suite:
    """The runs of a document whose shape and names were checked."""
    runs: list[RunSpec] = []
    choices: list[Choice] = []
    for dataset in _by_protocol(raw, tables["datasets"]):
        for normal_class in _classes(raw, dataset):
            for entry in _of_dataset(tables["detectors"], dataset):
                runs += _detector_runs(raw, tables, dataset, normal_class, entry)
            for entry in _of_dataset(tables["chosen_with_labels"], dataset):
                choices.append(_choice(raw, tables, dataset, normal_class, entry))
    twice = [key for key, count in Counter(run.key for run in runs).items() if count > 1]
    if twice:
        raise ValueError(f"the suite lists one run twice: {twice[0]}; remove one of the entries.")
    if not runs and not choices:
        raise ValueError("the suite has no run; give it at least one of `detectors`, `chosen_with_labels`.")
    known = {run.key for run in runs}
    for choice in choices:
        runs += [run for run in choice.candidates if run.key not in known]
        known |= {run.key for run in choice.candidates}
    return Suite(raw["name"], tuple(runs), tuple(choices))


def _by_protocol(raw: Entry, datasets: list[Entry]) -> list[Entry]:
    """Each data set once for each of its protocols."""
    protocols = dict.fromkeys(p for d in datasets for p in as_list(_setting("protocol", d, raw)))
    return [
        {**dataset, "protocol": protocol}
        for protocol in protocols
        for dataset in datasets
        if protocol in as_list(_setting("protocol", dataset, raw))
    ]


def as_list(value: str | list[str]) -> list[str]:
    """A name alone is a list of one."""
    return [value] if isinstance(value, str) else value


def _classes(raw: Entry, dataset: Entry) -> list[str]:
    if not PROTOCOLS[dataset["protocol"]].by_class:
        return [""]
    return dataset.get("normal_classes", list(DATASETS[dataset["name"]].classes))


def _of_dataset(entries: list[Entry], dataset: Entry) -> list[Entry]:
    return [e for e in entries if dataset["name"] in e.get("datasets", [dataset["name"]])]


def _detector_runs(
    raw: Entry, tables: dict[str, list[Entry]], dataset: Entry, normal_class: str, entry: Entry
) -> list[RunSpec]:
    spec = _spec(raw, dataset, normal_class, entry, entry["name"], entry.get("params", {}))
    plan = partial(_attacks, raw, tables, dataset, entry["name"], spec)
    return [replace(spec, seed=seed, attacks=plan(seed)) for seed in _seeds(raw, entry, spec)]


def _choice(
    raw: Entry, tables: dict[str, list[Entry]], dataset: Entry, normal_class: str, entry: Entry
) -> Choice:
    fixed, parameter = entry.get("params", {}), entry["parameter"]
    candidates = []
    for value in entry["values"]:
        params = {**fixed, parameter: value}
        spec = _spec(raw, dataset, normal_class, entry, entry["detector"], params)
        candidates.append(replace(spec, seed=_seeds(raw, entry, spec)[0]))
    plan = partial(_attacks, raw, tables, dataset, entry["name"], candidates[0])
    seeds = _seeds(raw, entry, candidates[0])
    return Choice(
        name=entry["name"],
        params={**fixed, parameter: entry["values"]},
        parameter=parameter,
        candidates=tuple(candidates),
        seeds=seeds,
        attacks={seed: plan(seed) for seed in seeds},
    )


def _spec(raw: Entry, dataset: Entry, normal_class: str, entry: Entry, built: str, params: Entry) -> RunSpec:
    limits = raw.get("limits", {})
    return RunSpec(
        suite=raw["name"],
        protocol=dataset["protocol"],
        dataset=dataset["name"],
        normal_class=normal_class,
        detector=built,
        params=params,
        seed=0,
        built=built,
        build_params=params,
        radii=tuple(float(r) for r in _setting("radii", entry, dataset, raw, default=[])),
        threats=tuple(_setting("threats", entry, raw, default=["both"])),
        row_cap=entry.get("row_cap", DETECTORS[built].row_cap),
        score_block=entry.get("score_block", DETECTORS[built].score_block),
        wall_seconds=float(limits.get("wall_seconds", 3600)),
        memory_mb=float(limits.get("memory_mb", 8000)),
        resources=entry.get("resources", {}),
    )


def _setting(name: str, *levels: Entry, default: Any = None) -> Any:
    """Value of a key on the first level that has it, innermost first."""
    return next((level[name] for level in levels if name in level), default)


def _seeds(raw: Entry, entry: Entry, spec: RunSpec) -> tuple[int, ...]:
    """One seed for a deterministic detector on rows that no seed changes: the others would be copies."""
    seeds = tuple(_setting("seeds", entry, raw, default=[0]))
    same = DETECTORS[spec.built].deterministic and not PROTOCOLS[spec.protocol].seeded
    return seeds[:1] if same else seeds


def _attacks(
    raw: Entry, tables: dict[str, list[Entry]], dataset: Entry, detector: str, spec: RunSpec, seed: int
) -> tuple[AttackPlan, ...]:
    return tuple(
        AttackPlan(
            name=entry["name"],
            radii=tuple(float(r) for r in entry["radii"]),
            threats=tuple(entry.get("threats", spec.threats)),
            n_rows=entry.get("n_rows", N_ATTACKED_ROWS),
            required="detectors" in entry,
        )
        for entry in _of_dataset(tables["attacks"], dataset)
        if detector in entry.get("detectors", [detector]) and seed in entry.get("seeds", [seed])
    )
