"""Deep SVDD on images: LeNet as in its article and as in its authors' code, and an unconstrained VGG."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.detectors._training import Schedule
from ocsdf_bench.detectors.deep_svdd import SOURCE, DeepSVDDDetector

if TYPE_CHECKING:
    import tensorflow as tf

_LENET_GRAY = ((8, 4), 32)  # filters of each convolution, width of the output
_LENET_COLOUR = ((32, 64, 128), 128)
_VGG_DEPTHS = (4, 4, 3)  # convolutions before each halving of the image


def lenet(shape: tuple[int, ...], seed: int, batch_norm: bool) -> tf.keras.Model:
    """5 x 5 convolutions without bias, leaky ReLU, 2 x 2 max pooling; a dense output without bias.

    ``batch_norm`` normalises each convolution without learning a scale or shift, as the authors' code does:
    a learned shift would let the network reach its centre whatever the input.
    """
    import tensorflow as tf

    filters, width = _LENET_COLOUR if len(shape) == 3 and shape[2] > 1 else _LENET_GRAY
    layers = _input(shape)
    for index, count in enumerate(filters):
        start = tf.keras.initializers.GlorotUniform(seed=seed + index)
        layers.append(
            tf.keras.layers.Conv2D(count, 5, padding="same", use_bias=False, kernel_initializer=start)
        )
        if batch_norm:
            layers.append(tf.keras.layers.BatchNormalization(center=False, scale=False, epsilon=1e-4))
        layers += [tf.keras.layers.LeakyReLU(0.01), tf.keras.layers.MaxPooling2D()]
    start = tf.keras.initializers.GlorotUniform(seed=seed + len(filters))
    layers += [
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(width, use_bias=False, kernel_initializer=start),
    ]
    return tf.keras.Sequential(layers)


def vgg(shape: tuple[int, ...], seed: int, width: int) -> tf.keras.Model:
    """The paper's VGG with ordinary layers: 3 x 3 convolutions, ReLU, max pooling, global mean, dense output.

    ``width`` filters in the first block (64 in the paper), doubled in each of the next two.
    """
    import tensorflow as tf

    layers, index = _input(shape), 0
    for block, depth in enumerate(_VGG_DEPTHS):
        for _ in range(depth):
            start = tf.keras.initializers.HeNormal(seed=seed + index)
            index += 1
            layers.append(
                tf.keras.layers.Conv2D(
                    width * 2**block,
                    3,
                    padding="same",
                    activation="relu",
                    use_bias=False,
                    kernel_initializer=start,
                )
            )
        layers.append(tf.keras.layers.MaxPooling2D(padding="same"))
    start = tf.keras.initializers.HeNormal(seed=seed + index)
    layers += [
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(32, use_bias=False, kernel_initializer=start),
    ]
    return tf.keras.Sequential(layers)


def _input(shape: tuple[int, ...]) -> list[Any]:
    import tensorflow as tf

    return [tf.keras.Input(shape), tf.keras.layers.Reshape(shape if len(shape) == 3 else (*shape, 1))]


def build_lenet(
    *,
    seed: int,
    epochs: int = 150,
    batch_size: int = 200,
    learning_rate: float = 1e-4,
    weight_decay: float = 1e-6,
    max_steps: int = 1_500,
    batch_norm: bool = False,
) -> Detector:
    """``max_steps`` (ours) is 50 epochs of 6,000 images. Left out: the autoencoder that the article starts
    from, and its contrast normalisation, which would give each image another radius in pixels.
    """
    schedule = Schedule(epochs, batch_size, learning_rate, max_steps)
    return DeepSVDDDetector(partial(lenet, batch_norm=batch_norm), schedule, weight_decay, False, seed)


def build_vgg(
    *,
    seed: int,
    width: int = 16,
    epochs: int = 150,
    batch_size: int = 128,
    learning_rate: float = 1e-4,
    weight_decay: float = 1e-6,
    max_steps: int = 300,
) -> Detector:
    """``width`` 64 is the paper's; 16 and 300 updates (ours) take minutes of one core a class."""
    schedule = Schedule(epochs, batch_size, learning_rate, max_steps)
    return DeepSVDDDetector(partial(vgg, width=width), schedule, weight_decay, False, seed)


for _name, _build in (
    ("DeepSVDD-LeNet", build_lenet),
    ("DeepSVDD-LeNet-BN", partial(build_lenet, batch_norm=True)),
    ("DeepSVDD-VGG", build_vgg),
):
    DETECTORS.add(
        DetectorInfo(name=_name, build=_build, source=SOURCE, preload=("tensorflow",), kinds=("image",))
    )
