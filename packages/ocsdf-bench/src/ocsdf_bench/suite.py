"""A suite as frozen values: what is to be run, and the identity of each run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values have equal text.

    >>> canonical({"b": [1, 0.5], "a": "x"})
    '{"a":"x","b":[1,0.5]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """sha256 of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


WHERE = ("wall_seconds", "memory_mb", "resources")  # they do not change what a run gives


@dataclass(frozen=True)
class AttackPlan:
    """An attack on one run: ``n_rows`` test rows at each radius. ``required``: the suite names the
    detector, so that a detector the attack can not read is a failure and not a note.
    """

    name: str
    radii: tuple[float, ...]
    threats: tuple[str, ...]
    n_rows: int
    required: bool


@dataclass(frozen=True)
class RunSpec:
    """One run as plain data. ``detector`` and ``params`` are what the suite wrote; ``built`` and
    ``build_params`` are what is fitted (they differ where a value was chosen with labels).
    """

    suite: str
    protocol: str
    dataset: str
    normal_class: str
    detector: str
    params: dict[str, Any]
    seed: int
    built: str
    build_params: dict[str, Any]
    radii: tuple[float, ...] = ()
    threats: tuple[str, ...] = ("both",)
    attacks: tuple[AttackPlan, ...] = ()
    row_cap: int | None = None
    score_block: int | None = None
    wall_seconds: float = 3600.0
    memory_mb: float = 8000.0
    resources: dict[str, float] = field(default_factory=dict)  # of a cluster's worker: {"GPU": 1}

    @property
    def key(self) -> tuple[str, str, str, str, str, str, int]:
        """What a table knows a run by; of two rows of one key the later one counts."""
        return (
            self.suite,
            self.protocol,
            self.dataset,
            self.normal_class,
            self.detector,
            canonical(self.params),
            self.seed,
        )

    def fit_identity(self, data_checksum: str) -> str:
        """Identity of the fit and its scores: runs that share it need one fit, whatever they measure."""
        return digest(
            {
                "data": data_checksum,
                "protocol": self.protocol,
                "normal_class": self.normal_class,
                "built": self.built,
                "build_params": self.build_params,
                "seed": self.seed,
                "row_cap": self.row_cap,
                "score_block": self.score_block,
                "attacks": [[a.name, a.radii, a.n_rows, a.required] for a in self.attacks],
            }
        )

    def fingerprint(self, data_checksum: str) -> str:
        """Identity of the run: sha256 of the spec (without limits and resources) and the data's checksum."""
        spec = {k: v for k, v in self.to_json().items() if k not in WHERE}
        return digest({"spec": spec, "data": data_checksum})

    def to_json(self) -> dict[str, Any]:
        return json.loads(canonical(asdict(self)))

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> RunSpec:
        lists = {name: tuple(entry[name]) for name in ("radii", "threats")}
        attacks = tuple(
            AttackPlan(**{**a, "radii": tuple(a["radii"]), "threats": tuple(a["threats"])})
            for a in entry["attacks"]
        )
        return cls(**{**entry, **lists, "attacks": attacks})


@dataclass(frozen=True)
class Choice:
    """A value chosen with labels: every candidate runs with the first seed, the best AUROC wins, and
    the winner runs under the choice's own name with every seed.
    """

    name: str
    params: dict[str, Any]  # as the suite wrote them, with the list of values
    parameter: str
    candidates: tuple[RunSpec, ...]
    seeds: tuple[int, ...]
    attacks: dict[int, tuple[AttackPlan, ...]]  # of each seed

    def finals(self, winner: RunSpec) -> tuple[RunSpec, ...]:
        named = replace(winner, detector=self.name, params=self.params)
        return tuple(replace(named, seed=seed, attacks=self.attacks[seed]) for seed in self.seeds)


@dataclass(frozen=True)
class Suite:
    """A checked suite. ``runs`` are the plain runs (candidates of the choices among them)."""

    name: str
    runs: tuple[RunSpec, ...]
    choices: tuple[Choice, ...] = ()

    @property
    def n_runs(self) -> int:
        return len(self.runs) + sum(len(choice.seeds) for choice in self.choices)

    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.dataset for run in self.runs))


ONLY_FIELDS = ("detector", "dataset", "normal_class", "protocol", "seed")


def parse_only(text: str) -> dict[str, set[str]]:
    """``"detector=HBOS,dataset=wine,dataset=glass"`` as field -> allowed values.

    >>> sorted(parse_only("dataset=wine,dataset=glass")["dataset"])
    ['glass', 'wine']
    """
    allowed: dict[str, set[str]] = {}
    for part in filter(None, text.split(",")):
        field, equals, value = part.partition("=")
        if field.strip() not in ONLY_FIELDS or not equals:
            raise ValueError(
                f"`--only` must be FIELD=VALUE[,FIELD=VALUE...] with FIELD among {', '.join(ONLY_FIELDS)};"
                f" got {part!r}."
            )
        allowed.setdefault(field.strip(), set()).add(value.strip())
    return allowed


def select(suite: Suite, only: dict[str, set[str]]) -> Suite:
    """The part of ``suite`` that ``only`` admits; the candidates of an admitted choice stay."""

    def admitted(detector: str, spec: RunSpec, seed: int) -> bool:
        values = {**asdict(spec), "detector": detector, "seed": seed}
        return all(str(values[field]) in allowed for field, allowed in only.items())

    choices = []
    for choice in suite.choices:
        first = choice.candidates[0]
        seeds = tuple(s for s in choice.seeds if admitted(choice.name, first, s))
        if seeds:
            choices.append(replace(choice, seeds=seeds))
    needed = {spec.key for choice in choices for spec in choice.candidates}
    runs = tuple(r for r in suite.runs if admitted(r.detector, r, r.seed) or r.key in needed)
    return replace(suite, runs=runs, choices=tuple(choices))
