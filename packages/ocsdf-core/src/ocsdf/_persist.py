"""One file for a fitted estimator: npz arrays and a JSON header. Nothing is pickled, everything checked."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import platform
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ocsdf import _check, _conv, _layers, _patches, _pool, _references, _residual, _shape, _squash
from ocsdf._domain import Ball, Box
from ocsdf._estimator import OCSDF
from ocsdf._network import LipschitzNet
from ocsdf._parameters import check_parameters

FORMAT = 1
KIND = "ocsdf.OCSDF"
MODULES = (_layers, _references, _patches, _conv, _pool, _shape, _residual, _squash)
LAYERS: dict[str, type] = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, type) and dataclasses.is_dataclass(value)
}
VALUES: dict[str, type] = {**LAYERS, "Box": Box, "Ball": Ball}
NUMBERS = ("lipschitz_", "offset_", "margin_", "_spread", "n_features_in_")
UNREADABLE = (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, TypeError, AttributeError)


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
        "parameters": _parameters(model),
        "fitted": {name: float(getattr(model, name)) for name in NUMBERS},
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", ())],
        "domain": _encode(model.domain_),
        "layers": _encode(model.net_.layers),
        "input_shape": list(model.net_.input_shape),
        "history": model.history_,
    }
    header["checksum"] = _checksum(header, arrays)
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with Path(path).open("wb") as file:
        np.savez(file, header=text, **arrays)


def load(path: str | Path, backend: str = "numpy", dtype: str = "float64") -> OCSDF:
    """Read what ``OCSDF.save`` wrote.

    Checked are the format version, the checksum of header and arrays, every parameter, the scaler, the
    shapes, and the Lipschitz bound, which is proven anew from the weights. A checksum finds damage, not
    malice: whoever can write the file can write another detector into it, but never code.

    Parameters
    ----------
    path : str or Path
    backend : {"numpy", "tensorflow"}
        What computes scores and gradients. "numpy" imports no TensorFlow, whatever the network;
        "tensorflow" compiles, and uses a GPU where it sees one.
    dtype : {"float64", "float32"}
        In which the network computes. "float32", for NumPy alone, scores about twice as fast. ``certify`` and
        ``score_bounds`` hold for those scores: they add the proven rounding (``model.net_.rounding``), which
        for a dense network of width 128 is 2e-4 of a row's norm where float64 has 1e-12; for a distance to
        references it is 5e-3 and more. What takes scores alone (the certified metrics,
        ``CertifiedConformal``) knows nothing of it: give it ``score_bounds``.

    Returns
    -------
    OCSDF
        Fitted; with NumPy in float64 its scores are bit for bit those of the estimator that was saved. A
        parameter that no file can hold has its default (a function of negatives, a Generator), and
        ``network``, where it was a function or a network, is the fitted network.

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
    >>> path = os.path.join(tempfile.mkdtemp(), "detector.ocsdf")
    >>> ocsdf.OCSDF(random_state=0).fit(X).save(path)
    >>> bool((ocsdf.load(path).score_samples(X) == ocsdf.OCSDF(random_state=0).fit(X).score_samples(X)).all())
    True
    """
    _check.choice(backend, "backend", "ocsdf.load", ("numpy", "tensorflow"))
    # TensorFlow's products may be of fewer bits than float32 has, which no bound here covers.
    allowed = ("float64", "float32") if backend == "numpy" else ("float64",)
    _check.choice(dtype, "dtype", "ocsdf.load", allowed)
    header, arrays = _read(Path(path))
    try:
        model = _restore(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _refused(path, f"whole, with a bound that its weights prove ({error})") from error
    if model.net_.dtype != dtype:
        model.net_ = model.net_.astype(dtype)
        model.lipschitz_ = max(model.lipschitz_, model.net_.lipschitz())
    if backend == "tensorflow":
        from ocsdf._tensorflow_engine import TensorflowNet

        model.net_ = TensorflowNet(model.net_.layers, model.net_.params, model.net_.input_shape)
    return model


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            header = json.loads(bytes(arrays.pop("header")))
        except UNREADABLE as error:
            raise _refused(path, "a file that OCSDF.save wrote") from error
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise _refused(path, "a file that OCSDF.save wrote")
    newer = header.get("format")
    if not isinstance(newer, int) or newer > FORMAT:
        allowed = f"of format version <= {FORMAT}"
        remedy = "update ocsdf-core"
        raise ValueError(_check.sentence("path", "ocsdf.load", allowed, f"version {newer}", remedy))
    if header.pop("checksum", None) != _checksum(header, arrays):
        raise _refused(path, "undamaged (its checksum does not match)")
    return header, arrays


def _restore(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> OCSDF:
    writer = header["versions"].get("ocsdf-core", "of unknown version")
    unknown = sorted(set(header["parameters"]) - set(OCSDF().get_params(deep=False)))
    if unknown:
        raise ValueError(f"{unknown[0]} is a parameter of ocsdf-core {writer}, which wrote it")
    model = OCSDF(**{name: _decode(value) for name, value in header["parameters"].items()})
    model.net_ = _restore_net(header, arrays)
    if "network" not in header["parameters"]:
        model.network = model.net_
    check_parameters(model)
    for name in NUMBERS:
        setattr(model, name, _check.number(header["fitted"][name], name, "ocsdf.load"))
    model.n_features_in_ = int(model.n_features_in_)
    if header["feature_names"]:
        model.feature_names_in_ = np.asarray(header["feature_names"], object)
    model.center_, model.scale_ = _restore_scale(arrays, model.net_.input_shape)
    model.domain_, model.history_ = _decode(header["domain"]), header["history"]
    model.domain_.signed_distance(np.zeros((1, *model.net_.input_shape)))  # its shape is that of a row
    proven = model.net_.lipschitz()
    if not proven <= model.lipschitz_:
        raise ValueError(f"lipschitz is {model.lipschitz_!r}, the weights prove {proven!r}")
    return model


def _restore_net(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> LipschitzNet:
    layers = _decode(header["layers"])
    params: tuple[dict[str, np.ndarray], ...] = tuple({} for _ in layers)
    for name, array in arrays.items():
        if "." in name:
            index, weight = name.split(".", 1)
            params[int(index)][weight] = array
    return LipschitzNet(layers, params, tuple(header["input_shape"]))


def _restore_scale(
    arrays: dict[str, np.ndarray], input_shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    center, scale = arrays["center_"], arrays["scale_"]
    finite = np.isfinite(center).all() and np.isfinite(scale).all() and (scale > 0).all()
    if not finite or np.broadcast_shapes(center.shape, scale.shape, input_shape) != input_shape:
        raise ValueError("the scale is not one positive number for each feature")
    return center, scale


def _parameters(model: OCSDF) -> dict[str, Any]:
    """Those that JSON can hold."""
    found = {}
    for name, value in model.get_params(deep=False).items():
        with contextlib.suppress(TypeError):
            found[name] = _encode(value)
    return found


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    kind = type(value).__name__
    if VALUES.get(kind) is not type(value):
        raise TypeError(f"no file can hold a {kind}")
    return {"kind": kind, **{name: _encode(item) for name, item in vars(value).items()}}


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if isinstance(value, dict):
        settings = {name: _decode(item) for name, item in value.items() if name != "kind"}
        return VALUES[value["kind"]](**settings)
    return value


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("ocsdf-core", "numpy", "scikit-learn", "tensorflow"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a source tree that was never installed, or a scorer without TensorFlow
            continue
    return found


def _checksum(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _refused(path: str | Path, allowed: str) -> ValueError:
    return ValueError(_check.sentence("path", "ocsdf.load", allowed, str(path), "save the detector again"))
