"""deel-lip as an oracle: same weights, same outputs; and constants proven where its own are not."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("deel") is None or importlib.util.find_spec("tf_keras") is None,
    reason="needs the extra ocsdf-core[deel-lip]",
)

# Keras 2 must be chosen before TensorFlow is imported, so the models live in a process of their own.
SCRIPT = """
import json
import numpy as np
import tensorflow as tf
from deel import lip
from ocsdf import (
    AveragePool, Conv2D, Dense, DownSample, Flatten, L2NormPool, Residual, build, dense, vgg
)
from ocsdf.deel_lip import from_deel_lip, lipschitz_bound, to_deel_lip

rng = np.random.default_rng(0)
tf.random.set_seed(0)
result = {}


def slope(model, shape, steps=30):
    # Largest measured gain of the model between close points: a lower bound of its constant.
    x = tf.constant(rng.normal(size=(64, *shape)), tf.float32)
    best = 0.0
    for _ in range(steps):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(model(x, training=False)[..., 0])
        g = tape.gradient(y, x).numpy()
        best = max(best, float(np.linalg.norm(g.reshape(64, -1), axis=1).max()))
        x = x + 0.5 * g
    return best


for name, factor in {"dense": 1.0, "scaled": 3.0}.items():
    model = lip.model.Sequential([
        lip.layers.SpectralDense(16, activation=lip.activations.GroupSort(4)),
        lip.layers.SpectralDense(8),
        lip.activations.FullSort(),
        lip.layers.FrobeniusDense(1),
    ], k_coef_lip=factor)
    x = rng.normal(size=(50, 5)).astype("float32")
    model(x, training=True)
    for layer in model.layers:
        if getattr(layer, "use_bias", False):
            layer.bias.assign(rng.normal(size=layer.bias.shape))
    net = from_deel_lip(model)
    difference = model(x, training=False).numpy()[:, 0] - net(x.astype("float64"))
    bounds = [lipschitz_bound(model), net.lipschitz()]
    result[name] = [float(np.abs(difference).max()), *bounds, slope(model, (5,))]

net = build(dense((16, 8), sort=4), rng.normal(size=(10, 5)), members=1, rng=rng)
x = rng.normal(size=(50, 5))
back = to_deel_lip(net)
result["to"] = float(np.abs(back(x.astype("float32"), training=False).numpy()[:, 0] - net(x)).max())
again = from_deel_lip(back)
result["round trip"] = float(np.abs(again(x) - net(x)).max())

convolution = lip.model.Sequential([
    tf.keras.layers.InputLayer((14, 14, 1)),
    lip.layers.SpectralConv2D(1, (3, 3), use_bias=False),
])
convolution.layers[0].kernel.assign(tf.ones((3, 3, 1, 1)))
for _ in range(5):
    convolution(tf.ones((1, 14, 14, 1)), training=True)
result["constant filter"] = lipschitz_bound(convolution)
image = tf.ones((1, 14, 14, 1))
for _ in range(50):
    image = convolution(image, training=False)
    image = image / tf.norm(image)
result["its gain"] = float(tf.norm(convolution(image, training=False)) / tf.norm(image))

images = lip.model.Sequential([
    tf.keras.layers.InputLayer((8, 8, 2)),
    lip.layers.SpectralConv2D(4, (3, 3), activation=lip.activations.GroupSort2()),
    lip.layers.ScaledL2NormPooling2D((2, 2)),
    lip.layers.SpectralConv2D(6, (3, 3), strides=(2, 2)),
    lip.activations.MaxMin(),
    lip.layers.InvertibleDownSampling((2, 2)),
    lip.layers.ScaledAveragePooling2D((1, 1)),
    tf.keras.layers.ReLU(),
    lip.layers.ScaledGlobalL2NormPooling2D(),
    lip.activations.Householder(),
    lip.layers.FrobeniusDense(1),
])
images(tf.ones((1, 8, 8, 2)), training=True)
result["images"] = [lipschitz_bound(images), slope(images, (8, 8, 2))]

converted = lip.model.Sequential([
    tf.keras.layers.InputLayer((9, 10, 2)),
    lip.layers.SpectralConv2D(4, (3, 3), activation=lip.activations.GroupSort2(), k_coef_lip=2.0),
    lip.layers.ScaledL2NormPooling2D((2, 2), k_coef_lip=0.5),
    lip.layers.SpectralConv2D(6, (3, 3), strides=(2, 2), padding="same"),
    lip.activations.GroupSort2(),
    lip.layers.FrobeniusConv2D(8, (2, 2), use_bias=False),
    tf.keras.layers.Conv2D(8, 2, padding="valid"),
    lip.layers.InvertibleDownSampling((1, 1)),
    lip.layers.ScaledAveragePooling2D((1, 1)),
    tf.keras.layers.Flatten(),
    lip.layers.SpectralDense(4, activation=lip.activations.FullSort()),
    lip.layers.FrobeniusDense(1),
])
flattened = lip.model.Sequential([
    tf.keras.layers.InputLayer((8, 8, 1)),
    lip.layers.InvertibleDownSampling((2, 2)),
    lip.layers.SpectralConv2D(6, (3, 3)),
    lip.layers.ScaledGlobalAveragePooling2D(),
    lip.layers.SpectralDense(1),
])
pooled = lip.model.Sequential([
    tf.keras.layers.InputLayer((8, 8, 1)),
    lip.layers.SpectralConv2D(6, (3, 3), activation=lip.activations.GroupSort2()),
    lip.layers.ScaledAveragePooling2D((2, 2)),
    lip.layers.ScaledGlobalL2NormPooling2D(),
    lip.layers.SpectralDense(1),
])
for name, model in {"converted": converted, "flattened": flattened, "pooled": pooled}.items():
    shape = model.input_shape[1:]
    x = rng.normal(size=(20, *shape)).astype("float32")
    model(x, training=True)
    for layer in model.layers:
        if getattr(layer, "use_bias", False):
            layer.bias.assign(rng.normal(size=layer.bias.shape))
    net = from_deel_lip(model)
    difference = model(x, training=False).numpy()[:, 0] - net(x.astype("float64"))
    bounds = [lipschitz_bound(model), net.lipschitz()]
    result[name] = [float(np.abs(difference).max()), *bounds, slope(model, shape)]

for name, layers, shape in [
    ("vgg", vgg(width=1 / 16), (16, 16)),
    ("orthogonal", vgg(width=1 / 16, kernel="orthogonal"), (8, 8, 3)),
    ("others", (DownSample(2), Conv2D(4, 3, 2), AveragePool(2, "valid"), Flatten(), Dense(1)), (12, 20, 2)),
]:
    x = rng.normal(size=(10, *shape))
    net = build(layers, x, members=1, rng=rng)
    model = to_deel_lip(net)
    back = from_deel_lip(model)
    outputs = model(x.astype("float32"), training=False).numpy()[:, 0]
    result["to " + name] = [float(np.abs(outputs - net(x)).max()), float(np.abs(back(x) - net(x)).max())]

errors = {}
for name, layer in {
    "conversion": tf.keras.layers.Dense(1, activation="relu"),
    "factor": lip.activations.GroupSort(3, k_coef_lip=2.0),
}.items():
    model = tf.keras.Sequential([tf.keras.layers.InputLayer((3,)), layer])
    try:
        from_deel_lip(model)
    except TypeError as error:
        errors[name] = str(error)
for name, layer in {
    "circular": Conv2D(2, padding="circular"),
    "odd": L2NormPool(2),
    "residual": Residual((Conv2D(1),)),
}.items():
    net = build((layer, L2NormPool(None), Dense(1)), np.zeros((1, 5, 5, 1)), members=1, rng=rng)
    try:
        to_deel_lip(net)
    except TypeError as error:
        errors[name] = str(error)
for name, layer in {
    "bound": tf.keras.layers.LayerNormalization(),
    "activation": tf.keras.layers.Dense(1, activation="swish"),
    "jump": tf.keras.layers.ReLU(threshold=0.5),
}.items():
    model = tf.keras.Sequential([tf.keras.layers.InputLayer((3,)), layer])
    try:
        lipschitz_bound(model)
    except TypeError as error:
        errors[name] = str(error)
rows = tf.keras.layers.Input((3,))
twice = tf.keras.layers.Dense(3)
try:
    lipschitz_bound(tf.keras.Model(rows, twice(twice(rows))))
except TypeError as error:
    errors["functional"] = str(error)
try:
    from_deel_lip(images)
except TypeError as error:
    errors["from"] = str(error)
x = rng.normal(size=(4, 5))
try:
    to_deel_lip(build(dense((4,)), x, members=2, rng=rng))
except ValueError as error:
    errors["to"] = str(error)
result["errors"] = errors
print("RESULT" + json.dumps(result))
"""


def run(script, **variables):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment
    )
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def result():
    out, err = run(SCRIPT, TF_USE_LEGACY_KERAS="1")
    assert "RESULT" in out, err
    return json.loads(out.split("RESULT")[1])


@pytest.mark.parametrize(("name", "factor"), [("dense", 1.0), ("scaled", 3.0)])
def test_a_dense_model_keeps_its_outputs_and_gets_a_proven_constant(result, name, factor):
    difference, bound, bound_of_net, slope = result[name]
    assert difference <= 1e-5
    assert slope <= bound * (1 + 1e-5)  # the slope is float32
    assert bound == pytest.approx(bound_of_net, rel=1e-6)
    # deel-lip's orthonormalisation stops at 1e-3.
    assert bound == pytest.approx(factor, rel=5e-3)


@pytest.mark.parametrize("name", ["converted", "flattened", "pooled"])
def test_a_model_of_images_keeps_its_outputs_and_its_proven_constant(result, name):
    difference, bound, bound_of_net, slope = result[name]
    assert difference <= 1e-5
    assert slope <= bound * (1 + 1e-5)  # the slope is float32
    assert bound == pytest.approx(bound_of_net, rel=1e-5)


@pytest.mark.parametrize("name", ["vgg", "orthogonal", "others"])
def test_a_network_of_images_keeps_its_outputs_in_deel_lip_and_back(result, name):
    assert max(result["to " + name]) <= 1e-5


def test_a_network_keeps_its_outputs_in_deel_lip_and_back(result):
    assert result["to"] <= 1e-5
    assert result["round trip"] <= 1e-5


def test_constant_filter_of_deel_lip_has_a_gain_of_1_020_and_is_bounded_by_it(result):
    assert result["its gain"] == pytest.approx(1.020, abs=1e-3)
    assert result["its gain"] <= result["constant filter"] * (1 + 1e-6)
    assert result["constant filter"] == pytest.approx(1.020, abs=1e-3)


def test_a_convolutional_model_is_bounded_above_its_measured_slope(result):
    bound, slope = result["images"]
    assert 0 < slope <= bound * (1 + 1e-5)


def test_what_cannot_be_bounded_or_converted_is_named(result):
    errors = result["errors"]
    assert "got a LayerNormalization" in errors["bound"]
    assert "`activation` of lipschitz_bound must be one of linear, relu" in errors["activation"]
    assert "'swish'" in errors["activation"]
    assert "without jumps; got a ReLU of threshold 0.5" in errors["jump"]
    assert "must be a Sequential; got a Functional" in errors["functional"]
    assert "invertible down-sampling and Flatten; got a MaxMin" in errors["from"]
    assert "got a Dense with relu" in errors["conversion"]
    assert "of factor 1 before the first kernel; got a GroupSort of factor 2" in errors["factor"]
    assert "got a Conv2D" in errors["circular"]
    assert "got a L2NormPool of 5 x 5 pixels in windows of 2" in errors["odd"]
    assert "got a Residual" in errors["residual"]
    assert "one network; got a mean of 2; use n_networks=1" in errors["to"]


def test_keras_3_is_refused_with_the_remedy():
    script = (
        "import numpy as np\n"
        "from ocsdf import build, dense\n"
        "from ocsdf.deel_lip import to_deel_lip\n"
        "rng = np.random.default_rng(0)\n"
        "to_deel_lip(build(dense((4,)), np.zeros((2, 2)), members=1, rng=rng))\n"
    )
    _, err = run(script, TF_USE_LEGACY_KERAS="0")
    assert "set TF_USE_LEGACY_KERAS=1 before TensorFlow is first imported" in err
