"""What the parameters of OCSDF may be: one sentence each, all checked before the first update."""

from __future__ import annotations

import re
from typing import Any

from ocsdf import _check
from ocsdf._domain import Ball, Box
from ocsdf._network import BUILDERS, LipschitzNet

CALLER = "OCSDF"


def check_parameters(model: Any) -> None:
    """Raise TypeError or ValueError, with one sentence, on the first parameter that is out of its range."""
    _check_method(model)
    _check_lengths(model)
    _check_network(model)
    _check_data_rules(model)


def _check_method(model: Any) -> None:
    if not (isinstance(model.margin, str) and model.margin == "auto"):
        remedy = 'or "auto"'
        _check.number(model.margin, "margin", CALLER, low=0.0, open_low=True, remedy=remedy)
    _check.number(model.weight, "weight", CALLER, low=0.0)
    if not callable(model.negatives):
        _check.choice(model.negatives, "negatives", CALLER, ("jitter", "newton", "warp"))
    _check.number(model.trim, "trim", CALLER, low=0.0, high=0.5)
    _check.integer(model.steps, "steps", CALLER, low=0)
    if model.level is not None:
        _check.number(model.level, "level", CALLER, remedy="or None for minus the margin")
    _check.choice(model.pull, "pull", CALLER, ("both", "inward"))


def _check_lengths(model: Any) -> None:
    for name in ("epochs", "max_steps"):
        if getattr(model, name) is not None:
            _check.integer(
                getattr(model, name), name, CALLER, low=0 if name == "max_steps" else 1, remedy="or None"
            )
    _check.integer(model.warmup_epochs, "warmup_epochs", CALLER, low=0)
    _check.integer(model.batch_size, "batch_size", CALLER, low=1)
    _check.number(model.learning_rate, "learning_rate", CALLER, low=0.0, open_low=True)
    if model.learning_rate_end is not None:
        _check.number(model.learning_rate_end, "learning_rate_end", CALLER, low=0.0, remedy="or None")
    if not (isinstance(model.updates_per_batch, str) and model.updates_per_batch == "converge"):
        remedy = 'or "converge"'
        _check.integer(model.updates_per_batch, "updates_per_batch", CALLER, low=1, remedy=remedy)


def _check_network(model: Any) -> None:
    allowed = "a non-empty sequence of integers >= 1"
    hidden = model.hidden
    if hidden is not None and (isinstance(hidden, str) or not hasattr(hidden, "__len__") or len(hidden) == 0):
        raise ValueError(_check.sentence("hidden", CALLER, allowed, hidden, "or None"))
    for width in () if hidden is None else hidden:
        _check.integer(width, "hidden", CALLER, low=1, unit="each width")
    activation = model.activation
    if not (isinstance(activation, str) and re.fullmatch(r"fullsort|groupsort([2-9]|[1-9]\d+)", activation)):
        allowed = '"fullsort", or "groupsort" with a group size >= 2 such as "groupsort2"'
        raise ValueError(_check.sentence("activation", CALLER, allowed, activation))
    _check.integer(model.n_networks, "n_networks", CALLER, low=1)
    network = model.network
    if isinstance(network, str):
        _check.choice(network, "network", CALLER, tuple(BUILDERS))
    elif not (network is None or callable(network) or isinstance(network, tuple | LipschitzNet)):
        allowed = "None, a builder's name, a tuple of layers, a function or a LipschitzNet"
        raise TypeError(_check.sentence("network", CALLER, allowed, network))
    if isinstance(network, tuple) and not (network and all(hasattr(layer, "forward") for layer in network)):
        raise TypeError(_check.sentence("network", CALLER, "a non-empty tuple of layers", network))
    _check.choice(model.engine, "engine", CALLER, ("auto", "numpy", "tensorflow", "mixed"))


def _check_data_rules(model: Any) -> None:
    if isinstance(model.domain, str):
        _check.choice(model.domain, "domain", CALLER, ("auto", "gaussian"))
    elif not isinstance(model.domain, Box | Ball):
        allowed = '"auto", "gaussian", a Box or a Ball'
        raise TypeError(_check.sentence("domain", CALLER, allowed, model.domain))
    _check.choice(model.scale, "scale", CALLER, ("standard", "none"))
    _check.choice(model.outside, "outside", CALLER, ("score", "anomalous"))
    if not isinstance(model.verbose, bool):
        _check.integer(model.verbose, "verbose", CALLER, low=0)
    if not (isinstance(model.contamination, str) and model.contamination == "auto"):
        _check.number(
            model.contamination, "contamination", CALLER, low=0.0, high=0.5, open_low=True, remedy='or "auto"'
        )
