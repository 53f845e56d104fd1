"""From a TOML file to a checked suite: every problem is found before the first fit, with its line."""

from __future__ import annotations

import difflib
import importlib.util
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocsdf_bench.attack import ATTACKS
from ocsdf_bench.dataset import DATASETS
from ocsdf_bench.detector import DETECTORS, DetectorInfo
from ocsdf_bench.metric import THREATS
from ocsdf_bench.protocol import PROTOCOLS
from ocsdf_bench.registry import Registry, UnknownNameError
from ocsdf_bench.signature import parameter_problems
from ocsdf_bench.suite import Suite
from ocsdf_bench.suite_expand import as_list, expand


class SuiteError(ValueError):
    """A suite that can not be run; ``problems`` holds one sentence each, with file and line."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True)
class Rule:
    """What a value must be, in words and as a test."""

    words: str
    test: Callable[[Any], bool]
    choices: tuple[str, ...] = ()  # names it may be, to find the nearest one


def _is_int(value: Any, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_number(value: Any, low: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value < float("inf")


def _list_of(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and len(value) > 0 and all(map(test, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


TEXT = Rule("a string", _is_text)
NAMES = Rule("a list of names", _list_of(_is_text))
SEEDS = Rule("a list of integers >= 0", _list_of(lambda v: _is_int(v, 0)))
COUNT = Rule("an integer >= 1", lambda v: _is_int(v, 1))
POSITIVE = Rule("a number > 0", lambda v: _is_number(v, 0) and v > 0)
RADII = Rule(
    "a list of numbers >= 0 (l2 distances)",
    lambda v: isinstance(v, list) and all(_is_number(r, 0) for r in v),
)
RESOURCES = Rule(
    "a table of numbers > 0, like {GPU = 1}",
    lambda v: isinstance(v, dict) and all(_is_number(n, 0) and n > 0 for n in v.values()),
)
TABLE = Rule("a table", lambda v: isinstance(v, dict))
ENTRIES = Rule(
    "a list of names or tables", _list_of(lambda v: _is_text(v) or (isinstance(v, dict) and "name" in v))
)
THREAT_LIST = Rule(f"a list with any of {', '.join(THREATS)}", _list_of(lambda v: v in THREATS), THREATS)
PROTOCOL = Rule(
    f"one or a list of {', '.join(PROTOCOLS)}",
    lambda v: (isinstance(v, str) and v in PROTOCOLS) or _list_of(lambda p: p in list(PROTOCOLS))(v),
    tuple(PROTOCOLS),
)
SUITE_NAME = Rule(
    "lower-case letters, digits and hyphens",
    lambda v: isinstance(v, str) and re.fullmatch(r"[a-z0-9][a-z0-9-]*", v) is not None,
)
_PER_DETECTOR = {
    "params": TABLE, "seeds": SEEDS, "row_cap": COUNT, "score_block": COUNT, "datasets": NAMES,
    "radii": RADII, "threats": THREAT_LIST, "resources": RESOURCES,
}  # fmt: skip
SECTIONS: dict[str, dict[str, Rule]] = {
    "": {
        "name": SUITE_NAME, "description": TEXT, "protocol": PROTOCOL, "datasets": ENTRIES, "seeds": SEEDS,
        "radii": RADII, "threats": THREAT_LIST, "detectors": ENTRIES, "limits": TABLE,
        "chosen_with_labels": ENTRIES, "attacks": ENTRIES,
    },
    "datasets": {"name": TEXT, "protocol": PROTOCOL, "normal_classes": NAMES, "radii": RADII},
    "detectors": {"name": TEXT, **_PER_DETECTOR},
    "chosen_with_labels": {
        "name": TEXT, "detector": TEXT, "parameter": TEXT,
        "values": Rule("a list of at least two values", lambda v: isinstance(v, list) and len(v) > 1),
        **_PER_DETECTOR,
    },
    "attacks": {
        "name": TEXT, "radii": RADII, "datasets": NAMES, "detectors": NAMES, "n_rows": COUNT,
        "threats": THREAT_LIST, "seeds": SEEDS,
    },
    "limits": {"wall_seconds": POSITIVE, "memory_mb": POSITIVE},
}  # fmt: skip
REQUIRED = {
    "": ("name", "protocol", "datasets"),
    "chosen_with_labels": ("name", "detector", "parameter", "values"),
    "attacks": ("name", "radii"),
}


def read_suite(path: Path) -> Suite:
    """The suite in ``path``; raises SuiteError with every problem found, one sentence each."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError([f"{path}: the suite can not be read: {error}."]) from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise SuiteError([f"{path}:{found.group(1) if found else 1}: not TOML: {error}."]) from error
    tables = {"": [raw], "limits": [raw.get("limits", {})]}
    for section in ("datasets", "detectors", "chosen_with_labels", "attacks"):
        entries = raw.get(section, [])
        entries = entries if isinstance(entries, list) else []
        tables[section] = [{"name": e} if isinstance(e, str) else e for e in entries]
    shape = list(_shape_problems(tables))
    problems = shape or list(_name_problems(tables))
    if problems:
        raise SuiteError([f"{path}:{_line(text, *where)}: {problem}" for where, problem in problems])
    try:
        return expand(raw, tables)
    except ValueError as error:
        raise SuiteError([f"{path}:1: {error}"]) from error


Problem = tuple[tuple[str, int, str], str]  # (section, index, token to find the line by), sentence


def _shape_problems(tables: dict[str, list[Any]]) -> Iterator[Problem]:
    for section, entries in tables.items():
        rules, title = SECTIONS[section], f"[{section}]" if section else "the suite"
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict):
                yield (section, index, ""), f"{title} must be a table or a name; got {entry!r}."
                continue
            for key in REQUIRED.get(section, ("name",) if section not in ("", "limits") else ()):
                if key not in entry:
                    yield (section, index, ""), f"{title} needs the key `{key}` ({rules[key].words})."
            for key, value in entry.items():
                if key not in rules:
                    yield (
                        (section, index, key),
                        f"unknown key `{key}` in {title}.{_near(key, rules)} Allowed: {', '.join(rules)}.",
                    )
                elif not rules[key].test(value):
                    yield (
                        (section, index, key),
                        f"`{key}` of {title} must be {rules[key].words}; got {value!r}."
                        f"{_near(value, rules[key].choices)}",
                    )


def _name_problems(tables: dict[str, list[dict[str, Any]]]) -> Iterator[Problem]:
    datasets = [e["name"] for e in tables["datasets"]]
    chosen = [e["name"] for e in tables["chosen_with_labels"]]
    detectors = [e["name"] for e in tables["detectors"]] + chosen
    for index, entry in enumerate(tables["datasets"]):
        yield from _unknown(DATASETS, "datasets", index, entry["name"])
        yield from _class_problems(index, entry, tables[""][0]["protocol"])
    for section, key in (("detectors", "name"), ("chosen_with_labels", "detector")):
        for index, entry in enumerate(tables[section]):
            params = entry.get("params", {})
            tried = [params]
            if section == "chosen_with_labels":
                if entry["name"] in DETECTORS:
                    yield (
                        (section, index, entry["name"]),
                        f"{entry['name']!r} is a detector; choose a new name.",
                    )
                tried = [{**params, entry["parameter"]: value} for value in entry["values"]]
            yield from _unknown(DETECTORS, section, index, entry[key])
            if entry[key] in DETECTORS:
                yield from _missing_modules(DETECTORS[entry[key]], section, index)
                found = [p for params in tried for p in parameter_problems(DETECTORS[entry[key]], params)]
                for token, problem in dict.fromkeys(found):
                    yield (section, index, token), problem
    for index, entry in enumerate(tables["attacks"]):
        yield from _unknown(ATTACKS, "attacks", index, entry["name"])
    for section in ("detectors", "chosen_with_labels", "attacks"):
        for index, entry in enumerate(tables[section]):
            for key, known in (("datasets", datasets), ("detectors", detectors)):
                for name in entry.get(key, []):
                    if name not in known:
                        yield (
                            (section, index, name),
                            f"`{key}` of [{section}] must name {key} of this suite; got {name!r}."
                            f"{_near(name, known)}",
                        )


def _missing_modules(info: DetectorInfo, section: str, index: int) -> Iterator[Problem]:
    """An extra that is not installed, before the first fit and without importing it."""
    for module in info.needs:
        if importlib.util.find_spec(module) is None:
            extra = f"python -m pip install 'ocsdf-bench[{info.extra}]'" if info.extra else "install it"
            yield (section, index, info.name), f"detector {info.name} needs the module {module!r}; {extra}."


def _class_problems(index: int, entry: dict[str, Any], protocol: str | list[str]) -> Iterator[Problem]:
    if entry["name"] not in DATASETS:
        return
    card = DATASETS[entry["name"]]
    for name in as_list(entry.get("protocol", protocol)):
        if PROTOCOLS[name].by_class != bool(card.classes):
            kind = "has classes" if card.classes else "has no classes"
            fit = ", ".join(p.name for p in PROTOCOLS.values() if p.by_class == bool(card.classes))
            yield (
                ("datasets", index, entry["name"]),
                f"data set {card.name!r} {kind}, so that its protocol must be {fit}; got {name!r}.",
            )
    for name in entry.get("normal_classes", []):
        if name not in card.classes:
            allowed = ", ".join(card.classes) or "absent: it has no classes"
            yield (
                ("datasets", index, name),
                f"`normal_classes` of {card.name!r} must be {allowed}; got {name!r}.",
            )


def _unknown(registry: Registry[Any], section: str, index: int, name: str) -> Iterator[Problem]:
    try:
        registry[name]
    except UnknownNameError as error:
        yield (section, index, name), str(error)


def _near(word: Any, known: Any) -> str:
    lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(word).lower(), list(lower), 1, 0.5)
    return f" Did you mean {lower[near[0]]!r}?" if near else ""


def _line(text: str, section: str, index: int, token: str) -> int:
    """Line of ``token`` in the ``index``-th table of ``section`` (1 where it can not be told)."""
    lines = [line.partition("#")[0] for line in text.splitlines()]
    heads = [i for i, line in enumerate(lines) if re.match(r"\s*\[", line)]
    own = [i for i in heads if section and re.match(rf"\s*\[+\s*{re.escape(section)}\s*\]", lines[i])]
    if own:
        start = own[min(index, len(own) - 1)]
        stop = next((i for i in heads if i > start), len(lines))
    else:
        start, stop = 0, len(lines)
    name = re.escape(token)
    key, word = rf"(?:^|[{{,\[])\s*{name}\s*[=\]]", rf"(?<![\w-]){name}(?![\w-])"  # a key before a mention
    found = (i + 1 for form in (key, word) for i in range(start, stop) if re.search(form, lines[i]))
    return next(found, start + 1) if token else start + 1
