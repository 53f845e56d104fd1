"""The score as a graph for other runtimes: a TensorFlow SavedModel, or ONNX. The scaler is part of it."""

from __future__ import annotations

import contextlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ocsdf import _check
from ocsdf._estimator import OCSDF

OPSET = 18


def export(model: OCSDF, path: str | Path, format: str = "saved_model") -> None:
    """Write the score of a fitted estimator as a graph; see ``OCSDF.export``."""
    _check.choice(format, "format", "OCSDF.export", ("saved_model", "onnx"))
    for layer in model.net_.layers:
        if not hasattr(layer, "tensor"):
            got = f"a {type(layer).__name__}"
            raise TypeError(_check.sentence("network", "OCSDF.export", "of layers with `tensor`", got))
    path = Path(path)
    wrong = path.is_file() if format == "saved_model" else path.is_dir()
    if wrong:
        allowed, got = ("a folder", "a file") if format == "saved_model" else ("a file", "a folder")
        raise ValueError(_check.sentence("path", "OCSDF.export", f"{allowed} or free", got))
    (_export_onnx if format == "onnx" else _export_saved_model)(model, path)


def _export_saved_model(model: OCSDF, path: Path) -> None:
    import tensorflow as tf

    module = tf.Module()
    module.score = tf.function(model.to_tensorflow())
    for dtype in (tf.float32, tf.float64):
        module.score.get_concrete_function(tf.TensorSpec((None, *model.net_.input_shape), dtype, "x"))
    for name, value in _facts(model).items():
        setattr(module, name, tf.Variable(value, trainable=False))
    served = _traced(model, "float64")
    tf.saved_model.save(module, str(path), signatures=served.get_concrete_function())


def _export_onnx(model: OCSDF, path: Path) -> None:
    try:
        import onnx
        import tf2onnx
    except ImportError as error:
        raise ImportError("OCSDF.export to ONNX needs tf2onnx: pip install 'ocsdf-core[onnx]'.") from error
    # onnxruntime has no float64 convolution.
    served = _traced(model, "float32" if len(model.net_.input_shape) > 1 else "float64")
    graph, _ = tf2onnx.convert.from_function(served, input_signature=served.input_signature, opset=OPSET)
    onnx.helper.set_model_props(graph, {name: repr(value) for name, value in _facts(model).items()})
    onnx.save(graph, path)


def _traced(model: OCSDF, dtype: str) -> Any:
    """The score of rows "x" of ``dtype``, computed in it, as a graph function with the output "score"."""
    import tensorflow as tf

    score = model.to_tensorflow(dtype)
    signature = [tf.TensorSpec((None, *model.net_.input_shape), dtype, "x")]
    return tf.function(lambda x: {"score": score(x)}, input_signature=signature)


def _facts(model: OCSDF) -> dict[str, Any]:
    """What a reader of the graph needs for decisions and certificates."""
    facts = {"lipschitz": float(model.lipschitz_), "offset": float(model.offset_)}
    with contextlib.suppress(PackageNotFoundError):  # a source tree that was never installed
        facts["ocsdf_core"] = version("ocsdf-core")  # type: ignore[assignment]
    return facts
