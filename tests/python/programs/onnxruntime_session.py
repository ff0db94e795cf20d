"""Sessions of ONNX Runtime whose CUDA provider is served by Strata. The first argument names the devices, the second what is done. What
the program leaves is torn down as usual: the end is part of the test."""

import gc
import json
import sys
import threading

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from torch_common import FAKE, outcome

import strata.onnxruntime

COUNT = 1 << 18
FLOATS = numpy.arange(COUNT, dtype=numpy.float32)
WEIGHTS = FLOATS + 7
results = {}


def model():
    """x -> y and the weights -> w, by copies on the device; and a kernel, whose result nobody looks at."""

    def info(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    def node(kind, inputs, output):
        return helper.make_node(kind, inputs, [output])

    nodes = [
        node("Identity", ["x"], "a"),
        node("Reshape", ["a", "shape"], "b"),
        node("Identity", ["b"], "y"),
        node("Identity", ["weights"], "w"),
        node("Add", ["x", "x"], "sum"),
    ]
    constants = [numpy_helper.from_array(WEIGHTS, "weights"), numpy_helper.from_array(numpy.array([2, -1]), "shape")]
    graph = helper.make_graph(nodes, "model", [info("x", ["n"])], [info("y", [2, "m"]), info("w", [COUNT]), info("sum", ["n"])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def session(provider):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Else nodes that compute nothing are taken out, and the weights with them.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model(), options, providers=[provider])


def value(array):
    return onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", 0)


def live():
    """The blocks that are live, and those that were served for the default stream."""
    return [facade.statistics().live_allocations, facade.statistics(stream=0).live_allocations]


def right(outputs):
    """Whether x and the weights came through the device as they were."""
    return [bool(numpy.array_equal(told.ravel(), was)) for told, was in zip(outputs, (FLOATS, WEIGHTS))]


def bound(one):
    """An input and the outputs of a run, which stay on the device."""
    given, binding = value(FLOATS), one.io_binding()
    binding.bind_ortvalue_input("x", given)
    for name in ("y", "w", "sum"):
        binding.bind_output(name, "cuda")
    one.run_with_iobinding(binding)
    return [given, *binding.get_outputs()]


def serve():
    """One session: run from the host, and over values that stay on the device."""
    first = session(strata.onnxruntime.provider(facade))
    results["providers"] = first.get_providers()
    results["created"] = live()
    results["run"] = right(first.run(None, {"x": FLOATS}))
    results["between runs"] = live()
    values = bound(first)
    results["places"] = [one.device_name() for one in values]
    results["owned"] = [facade.block_of(one.data_ptr()).size for one in values]
    results["bound"] = right(one.numpy() for one in values[1:])
    results["while bound"] = live()
    del values
    gc.collect()
    results["after the binding"] = live()
    return first


def limited(one):
    """A limit below what a run needs, and lifted again."""
    large = numpy.zeros(64 << 20, dtype=numpy.float32)
    facade.set_limit(facade.statistics().reserved_bytes)
    results["limited"] = outcome(lambda: one.run(None, {"x": large}))
    results["limited value"] = outcome(lambda: value(large))
    results["limited small"] = outcome(lambda: one.run(None, {"x": FLOATS}))
    results["providers after"] = one.get_providers()
    facade.set_limit(None)
    results["lifted"] = outcome(lambda: one.run(None, {"x": large}))
    results["after the limit"] = live()


def together(sessions):
    """Both sessions, from two threads each."""
    told = []

    def work(one):
        for _ in range(20):
            told.extend(right(one.run(None, {"x": FLOATS})))

    threads = [threading.Thread(target=work, args=(one,)) for one in sessions * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results["together"] = [len(told), sum(told)]


def whole():
    first = serve()
    limited(first)
    second = session(strata.onnxruntime.provider(facade))
    results["two"] = live()
    together([first, second])
    results["after both"] = live()
    del first
    gc.collect()
    results["one gone"] = live()
    results["the other"] = right(second.run(None, {"x": FLOATS}))
    kept = bound(second)[1:]
    del second
    gc.collect()
    results["outputs alone"] = live()
    results["outputs"] = right(one.numpy() for one in kept)
    del kept
    gc.collect()
    results["gone"] = live()

    name, told = strata.onnxruntime.provider(facade)
    results["a stream beside it"] = session((name, {**told, "user_compute_stream": "4096"})).get_providers()


def early():
    """A value before the first session, and one after it."""
    results["before"] = outcome(lambda: value(FLOATS))
    asked = FAKE.fake_cudart_mallocs()
    one = session(strata.onnxruntime.provider(facade))
    results["after"] = outcome(lambda: value(FLOATS))
    results["asked"] = [asked, FAKE.fake_cudart_mallocs()]
    results["run"] = outcome(lambda: one.run(None, {"x": FLOATS}))


def whose():
    """Which of two facades serves the first value outside sessions, and one after another session."""
    other = strata.open("strata", devices=sys.argv[1], ignore_environment=True)
    sessions = [session(strata.onnxruntime.provider(one)) for one in (facade, other)]
    first = value(FLOATS)
    sessions.append(session(strata.onnxruntime.provider(facade)))
    results["served"] = [other.block_of(one.data_ptr()).size for one in (first, value(FLOATS))]


onnxruntime.set_default_logger_severity(4)
facade = strata.open("strata", devices=sys.argv[1], ignore_environment=True)
{"whole": whole, "early": early, "whose": whose}[sys.argv[2]]()
results["mallocs"] = FAKE.fake_cudart_mallocs()
results["kernels"], results["aside"] = FAKE.fake_cudart_kernels(), FAKE.fake_cudart_aside()
facade.validate()
results["leaks"] = len(facade.close("force"))
print("RESULTS " + json.dumps(results), flush=True)
