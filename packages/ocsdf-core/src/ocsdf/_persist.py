"""One file for a fitted estimator: npz arrays and a JSON header. Nothing is pickled, everything checked."""

from __future__ import annotations

import hashlib
import json
import platform
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ocsdf import _check
from ocsdf._domain import Ball, Box, Domain
from ocsdf._estimator import OCSDF
from ocsdf._layers import Dense, GroupSort, Layer
from ocsdf._network import LipschitzNet
from ocsdf._references import References

FORMAT = 1
KIND = "ocsdf.OCSDF"
LAYERS: dict[str, type] = {layer.__name__: layer for layer in (Dense, GroupSort, References)}
NUMBERS = ("lipschitz_", "offset_", "margin_", "_spread", "n_features_in_")


def save(model: OCSDF, path: str | Path) -> None:
    """Write a fitted estimator to one file; see ``OCSDF.save``."""
    arrays: dict[str, Any] = {"center_": model.center_, "scale_": model.scale_}
    for i, params in enumerate(model.net_.params):
        arrays |= {f"{i}.{name}": array for name, array in params.items()}
    for layer in model.net_.layers:
        _check.choice(type(layer).__name__, "network", "OCSDF.save", tuple(LAYERS))
    header = {
        "kind": KIND,
        "format": FORMAT,
        "versions": _versions(),
        "parameters": {k: v for k, v in model.get_params(deep=False).items() if _is_plain(v)},
        "fitted": {name: float(getattr(model, name)) for name in NUMBERS},
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", ())],
        "domain": _describe_domain(model.domain_),
        "layers": [[type(layer).__name__, vars(layer)] for layer in model.net_.layers],
        "input_shape": list(model.net_.input_shape),
        "history": model.history_,
        "checksum": _checksum(arrays),
    }
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with Path(path).open("wb") as file:
        np.savez(file, header=text, **arrays)


def load(path: str | Path) -> OCSDF:
    """Read what ``OCSDF.save`` wrote; scores, gradients and certificates then cost NumPy only.

    Format version, checksum and shapes are checked, and the Lipschitz bound is proven anew from the weights.
    Parameters that no file can hold (a function, a network, a Generator) have their default.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    OCSDF
        Fitted; its scores are bit for bit those of the estimator that was saved.

    Raises
    ------
    ValueError
        If the file is not one of these, is damaged, or comes from a newer format version; one sentence.
    OSError
        If there is no such file.

    Examples
    --------
    >>> import tempfile, os, numpy as np
    >>> import ocsdf
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> path = os.path.join(tempfile.mkdtemp(), "detector.npz")
    >>> ocsdf.OCSDF(random_state=0).fit(X).save(path)
    >>> bool((ocsdf.load(path).score_samples(X) == ocsdf.OCSDF(random_state=0).fit(X).score_samples(X)).all())
    True
    """
    header, arrays = _read(Path(path))
    try:
        return _restore(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _refused(path, f"whole, with a bound that its weights prove ({error})") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            header = json.loads(bytes(arrays.pop("header")))
        except (
            ValueError,
            KeyError,
            EOFError,
            OSError,
            zipfile.BadZipFile,
            TypeError,
            AttributeError,
        ) as error:
            raise _refused(path, "a file that OCSDF.save wrote") from error
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise _refused(path, "a file that OCSDF.save wrote")
    newer = header.get("format")
    if not isinstance(newer, int) or newer > FORMAT:
        allowed = f"of format version <= {FORMAT}"
        remedy = "update ocsdf-core"
        raise ValueError(_check.sentence("path", "ocsdf.load", allowed, f"version {newer}", remedy))
    if header.get("checksum") != _checksum(arrays):
        raise _refused(path, "undamaged (its checksum does not match)")
    return header, arrays


def _restore(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> OCSDF:
    known = set(OCSDF().get_params(deep=False))
    given: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in header["parameters"].items()
    }
    model = OCSDF(**{k: v for k, v in given.items() if k in known})
    model.center_, model.scale_ = arrays["center_"], arrays["scale_"]
    for name in NUMBERS:
        setattr(model, name, header["fitted"][name])
    model.n_features_in_ = int(model.n_features_in_)
    if header["feature_names"]:
        model.feature_names_in_ = np.asarray(header["feature_names"], object)
    model.domain_ = _restore_domain(header["domain"])
    model.history_ = header["history"]
    layers = tuple(_restore_layer(name, settings) for name, settings in header["layers"])
    params: tuple[dict[str, np.ndarray], ...] = tuple({} for _ in layers)
    for name, array in arrays.items():
        if "." in name:
            index, weight = name.split(".")
            params[int(index)][weight] = array
    model.net_ = LipschitzNet(layers, params, tuple(header["input_shape"]))
    proven = model.net_.lipschitz()
    if not proven <= model.lipschitz_:
        raise ValueError(f"lipschitz is {model.lipschitz_!r}, the weights prove {proven!r}")
    return model


def _restore_layer(name: str, settings: dict[str, Any]) -> Layer:
    return LAYERS[name](**settings)


def _describe_domain(domain: Domain) -> dict[str, Any]:
    kind = type(domain).__name__
    return {"kind": kind, **{k: np.asarray(v).tolist() for k, v in vars(domain).items()}}


def _restore_domain(described: dict[str, Any]) -> Domain:
    settings = {k: v for k, v in described.items() if k != "kind"}
    return {"Box": Box, "Ball": Ball}[described["kind"]](**settings)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("ocsdf-core", "numpy", "scikit-learn", "tensorflow"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a source tree that was never installed, or a scorer without TensorFlow
            continue
    return found


def _checksum(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _refused(path: str | Path, allowed: str) -> ValueError:
    return ValueError(_check.sentence("path", "ocsdf.load", allowed, str(path), "save the detector again"))
