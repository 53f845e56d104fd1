"""A GPU does all of it: no op of any graph, training or scoring, has a kernel for the CPU alone.

The wheel of TensorFlow for Linux registers its CUDA kernels on machines without a GPU too.
"""

import numpy as np
import pytest

from ocsdf import (
    OCSDF,
    AveragePool,
    Conv2D,
    Dense,
    DownSample,
    Flatten,
    GroupSort,
    L2NormPool,
    Residual,
    build,
    dense,
    references,
)

IMAGE_LAYERS = (
    Conv2D(4, stride=2),
    GroupSort(2),
    Residual((Conv2D(4, padding="circular"), GroupSort(2))),
    DownSample(2),
    AveragePool(2),
    L2NormPool(None),
    Flatten(),
    Dense(1),
)
NETWORKS = {
    "groupsort2": (dense((8,)), (3,)),
    "uneven groups": (dense((10,), sort=4), (3,)),
    "fullsort": (dense((8,), sort=None), (3,)),
    "references": (references(), (3,)),
    "images": (IMAGE_LAYERS, (8, 8, 3)),
}


def without_gpu_kernel(graph):
    from tensorflow.python.framework import kernels

    definition = graph.as_graph_def()
    nodes = [*definition.node, *(node for f in definition.library.function for node in f.node_def)]
    devices = {
        op: {kernel.device_type for kernel in kernels.get_registered_kernels_for_op(op).kernel}
        for op in {node.op for node in nodes}
    }
    return {op for op, found in devices.items() if not found & {"GPU", "DEFAULT"}}


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    if not tensorflow.test.is_built_with_cuda():
        pytest.skip("this TensorFlow is built without CUDA, so it has no GPU kernels to look for")
    return tensorflow


def test_an_op_of_the_cpu_alone_is_noticed(tf):
    graph = tf.function(tf.strings.lower).get_concrete_function(tf.TensorSpec((2,), tf.string)).graph
    assert without_gpu_kernel(graph) == {"StringLower"}


@pytest.mark.parametrize("name", NETWORKS)
def test_training_has_no_op_of_the_cpu_alone(name, tf):
    from ocsdf._tensorflow_engine import TensorflowEngine

    layers, shape = NETWORKS[name]
    rng = np.random.default_rng(0)
    engine = TensorflowEngine(build(layers, rng.normal(size=(20, *shape)), members=2, rng=rng).astype("f4"))
    rows, number = tf.TensorSpec((2, None, *shape), tf.float32), tf.TensorSpec((), tf.float32)
    step = engine._loss.get_concrete_function(rows, rows, number, number, tf.TensorSpec((), tf.int32))
    assert without_gpu_kernel(engine._value.get_concrete_function(rows).graph) == set()
    assert without_gpu_kernel(step.graph) == set()


@pytest.mark.parametrize("outside", ["score", "anomalous"])
def test_scoring_has_no_op_of_the_cpu_alone(outside, tf):
    X = np.random.default_rng(0).normal(size=(40, 3))
    score = OCSDF(random_state=0, outside=outside).fit(X).to_tensorflow()
    graph = tf.function(score).get_concrete_function(tf.TensorSpec((None, 3), tf.float64)).graph
    assert without_gpu_kernel(graph) == set()
