# SPDX-License-Identifier: MIT
"""ONNX Runtime on guards: where its inputs and outputs lie, what is refused, and a pipeline."""

import ctypes
import multiprocessing

import pytest

numpy = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import xmem
import xmem.onnx
from support import LIMIT

PICTURE = (12, 16, 3)
PICTURES = 25
BUFFERS = 8


def session_of(nodes, inputs, outputs, constants=()):
    """A session of a model: nodes between arguments of (name, TensorProto type, shape)."""
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "test", [info(*each) for each in inputs],
                                   [info(*each) for each in outputs], list(constants))
    model = onnx.helper.make_model(graph, ir_version=8,
                                   opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def doubling(shape=("n", 3)):
    """y = 2 x"""
    kind = onnx.TensorProto.FLOAT
    return session_of([onnx.helper.make_node("Mul", ["x", "two"], ["y"])],
                      [("x", kind, shape)], [("y", kind, shape)],
                      [onnx.helper.make_tensor("two", kind, [1], [2.0])])


def brightness():
    """The mean of each colour of a picture, and the picture's negative."""
    node = onnx.helper.make_node
    number = onnx.helper.make_tensor
    return session_of(
        [node("Cast", ["picture"], ["float"], to=onnx.TensorProto.FLOAT),
         node("ReduceMean", ["float"], ["means"], axes=[0, 1], keepdims=0),
         node("Sub", ["white", "float"], ["inverse"]),
         node("Cast", ["inverse"], ["negative"], to=onnx.TensorProto.UINT8)],
        [("picture", onnx.TensorProto.UINT8, PICTURE)],
        [("means", onnx.TensorProto.FLOAT, (3,)), ("negative", onnx.TensorProto.UINT8, PICTURE)],
        [number("white", onnx.TensorProto.FLOAT, [1], [255.0])])


def free(pool):
    """How many buffers of the pool nobody has."""
    found = []
    try:
        while True:
            found.append(pool.acquire_cpu(1024, timeout=0))
    except xmem.WouldBlock:
        return len(found)
    finally:
        for guard in found:
            guard.release()


@pytest.fixture
def pool():
    """A pool whose buffers are all free in the end, whatever the test has done."""
    with xmem.BufferPool("onnx", writer=True) as made:
        made.preallocate_cpu(1024, BUFFERS)
        yield made
        assert free(made) == BUFFERS


def floats(pool, shape, value=0.0):
    guard = pool.acquire_cpu(shape, "float32")
    numpy.asarray(guard)[...] = value
    return guard


# ---- no copy ----

def test_outputs_are_at_the_addresses_of_the_guards(pool):
    session = doubling()
    with floats(pool, (4, 3), 1.5) as x, floats(pool, (4, 3)) as y:
        with xmem.onnx.Binding(session) as binding:
            binding.input("x", x)
            binding.output("y", y)
            session.run_with_iobinding(binding.io_binding)
            (value,) = binding.io_binding.get_outputs()
            assert value.data_ptr() == y.cpu_ptr
            assert tuple(value.shape()) == y.shape
            del value
        assert (numpy.asarray(y) == 3.0).all()


def test_inputs_are_read_where_the_guards_are_and_when_it_runs(pool):
    session = doubling()
    with floats(pool, (4, 3), 1.0) as x, floats(pool, (4, 3)) as y:
        with xmem.onnx.Binding(session) as binding:
            binding.input("x", x)
            numpy.asarray(x)[...] = 21.0        # a copy made by input() would not see it
            binding.output("y", y)
            binding.run()
        assert (numpy.asarray(y) == 42.0).all()


def test_a_published_frame_is_an_input_and_its_result_is_published(pool):
    session = doubling((2, 2))
    reader = xmem.BufferPool(pool.name)
    with floats(pool, (2, 2), 4.0) as x:
        token = x.publish(keep=True)
        with reader.get(token) as frame, xmem.onnx.acquire_output(pool, session, "y") as y:
            assert frame.readonly and y.shape == (2, 2) and y.dtype == "float32"
            xmem.onnx.run(session, {"x": frame}, {"y": y})
            result = y.publish(keep=True)
            with reader.get(result) as published:
                assert (numpy.asarray(published) == 8.0).all()
        assert y.gone


def test_two_outputs_of_different_types_in_one_run(pool):
    session = brightness()
    picture = numpy.arange(numpy.prod(PICTURE)).reshape(PICTURE).astype("uint8")
    with pool.acquire_cpu(PICTURE, "uint8") as frame:
        numpy.asarray(frame)[...] = picture
        with xmem.onnx.acquire_output(pool, session, "means") as means, \
                xmem.onnx.acquire_output(pool, session, "negative") as negative:
            xmem.onnx.run(session, {"picture": frame}, {"means": means, "negative": negative})
            assert numpy.allclose(means, picture.mean(axis=(0, 1)))
            assert (numpy.asarray(negative) == 255 - picture).all()


@pytest.mark.parametrize("name", sorted(set(xmem.onnx._TYPES.values()) - {"complex64",
                                                                           "complex128"}))
def test_each_type_goes_through(pool, name):
    kind = {"float32": "FLOAT", "float64": "DOUBLE", "bool": "BOOL",
            "float8_e4m3fn": "FLOAT8E4M3FN", "float8_e5m2": "FLOAT8E5M2"}.get(name, name.upper())
    number = onnx.TensorProto.DataType.Value(kind)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["x"], ["y"])], "test",
        [onnx.helper.make_tensor_value_info("x", number, (2, 6))],
        [onnx.helper.make_tensor_value_info("y", number, (2, 6))])
    model = onnx.helper.make_model(graph, ir_version=9,
                                   opset_imports=[onnx.helper.make_opsetid("", 19)])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    with pool.acquire_cpu((2, 6), name) as x, pool.acquire_cpu((2, 6), name) as y:
        size = x.nbytes
        here, there = (numpy.frombuffer((ctypes.c_uint8 * size).from_address(guard.cpu_ptr),
                                        "uint8") for guard in (x, y))
        here[:] = numpy.arange(size) % 2
        there[:] = 7
        xmem.onnx.run(session, {"x": x}, {"y": y})
        assert (there == here).all()


# ---- who keeps what ----

def test_an_input_that_is_released_stays_until_it_is_unbound(pool):
    session = doubling()
    reader = xmem.BufferPool(pool.name)
    with floats(pool, (4, 3), 5.0) as x:
        token = x.publish(keep=True)
        with xmem.onnx.Binding(session) as binding:
            frame = reader.get(token)
            binding.input("x", frame)
            frame.release()
            x.release()
            assert free(pool) == BUFFERS - 1
            with floats(pool, (4, 3)) as y:
                binding.output("y", y)
                binding.run()
                assert (numpy.asarray(y) == 10.0).all()
            binding.clear()
            assert free(pool) == BUFFERS


@pytest.mark.parametrize("end, error", [
    (lambda y: y.release(), xmem.Released),
    (lambda y: y.publish(), xmem.Released),
    (lambda y: y.publish(keep=True), xmem.NotPermitted),
])
def test_an_output_that_has_gone_is_not_written(pool, end, error):
    session = doubling()
    with floats(pool, (4, 3), 1.0) as x, xmem.onnx.Binding(session) as binding:
        y = floats(pool, (4, 3), 7.0)
        seen = numpy.asarray(y)
        binding.input("x", x)
        binding.output("y", y)
        end(y)
        with pytest.raises(error, match="output 'y': its guard has been published"):
            binding.run()
        assert (seen == 7.0).all()
        with floats(pool, (4, 3)) as other:
            binding.output("y", other)
            binding.run()
            assert (numpy.asarray(other) == 2.0).all()


def test_outputs_are_bound_for_one_run_and_inputs_for_all(pool):
    session = doubling()
    with floats(pool, (4, 3), 1.0) as x, xmem.onnx.Binding(session) as binding:
        binding.input("x", x)
        for number in range(1, 4):
            numpy.asarray(x)[...] = number
            with floats(pool, (4, 3)) as y:
                binding.output("y", y)
                binding.run()
                assert (numpy.asarray(y) == 2.0 * number).all()
                token = y.publish(keep=True)    # for reading; the run has let it go
                assert y.token == token
        assert (numpy.asarray(x) == 3.0).all()


# ---- what is refused ----

def test_what_does_not_fit_is_said(pool):
    session = doubling()
    with xmem.onnx.Binding(session) as binding, floats(pool, (4, 3)) as fits, \
            floats(pool, (4, 2)) as narrow, floats(pool, (3,)) as flat, \
            pool.acquire_cpu((4, 3), "float64") as wide, pool.acquire_cpu(48) as unsaid, \
            pool.acquire_cpu(96) as strided:
        strided.describe((4, 3), "float32", (24, 8))
        for call, kind in (binding.input, "input"), (binding.output, "output"):
            name = {"input": "x", "output": "y"}[kind]
            with pytest.raises(ValueError, match=f"no {kind} 'z'; it has: {name}"):
                call("z", fits)
            with pytest.raises(TypeError, match="is of float32, and this guard of float64"):
                call(name, wide)
            with pytest.raises(TypeError, match="are not described"):
                call(name, unsaid)
            for wrong, shape in (narrow, r"\(4, 2\)"), (flat, r"\(3\)"):
                with pytest.raises(ValueError, match=rf"has shape \(n, 3\), and this.*{shape}"):
                    call(name, wrong)
            with pytest.raises(ValueError, match="are not contiguous"):
                call(name, strided)
        binding.input("x", fits)
        with pytest.raises(ValueError, match="bound already"):
            binding.output("y", fits)


def test_a_guard_for_reading_is_no_output_and_one_that_has_gone_is_nothing(pool):
    session = doubling()
    with floats(pool, (4, 3)) as y, xmem.onnx.Binding(session) as binding:
        y.publish(keep=True)
        with pytest.raises(xmem.NotPermitted, match="is for reading"):
            binding.output("y", y)
        y.release()
        with pytest.raises(xmem.Released):
            binding.input("x", y)
        with pytest.raises(xmem.Released):
            binding.output("y", y)


def test_an_open_shape_has_to_be_said(pool):
    session = doubling()
    with pytest.raises(ValueError, match=r"shape \(n, 3\): say which"):
        xmem.onnx.acquire_output(pool, session, "y")
    with xmem.onnx.acquire_output(pool, session, "y", (5, 3)) as y:
        assert y.shape == (5, 3)
    with pytest.raises(ValueError, match="no output 'x'; it has: y"):
        xmem.onnx.acquire_output(pool, session, "x")


def test_a_result_of_another_shape_is_told_by_name_and_nothing_is_lost(pool):
    session = doubling()
    with floats(pool, (4, 3), 1.0) as x, floats(pool, (3, 3), 7.0) as y, \
            floats(pool, (4, 3)) as right, xmem.onnx.Binding(session) as binding:
        binding.input("x", x)
        binding.output("y", y)
        for _ in range(2):              # all is bound as before
            with pytest.raises(ValueError, match=r"^output 'y': the model has made shape "
                               r"\(4, 3\), and this guard has \(3, 3\)$") as caught:
                binding.run()
            assert caught.value.__cause__ is not None       # ONNX Runtime's own words
        assert (numpy.asarray(y) == 7.0).all() and not y.gone
        binding.output("y", right)      # in its place
        binding.run()
        assert (numpy.asarray(right) == 2.0).all() and (numpy.asarray(y) == 7.0).all()


@pytest.mark.parametrize("found", [5, 20])
def test_a_shape_that_only_the_contents_decide(pool, found):
    """One output fits, one is of fixed shape, and one is too short or too long."""
    kind = onnx.TensorProto
    node = onnx.helper.make_node
    session = session_of(
        [node("NonZero", ["x"], ["places"]), node("Neg", ["x"], ["minus"]),
         node("ReduceSum", ["x"], ["sum"], keepdims=0)],
        [("x", kind.FLOAT, ("n", 3))],
        [("sum", kind.FLOAT, ()), ("minus", kind.FLOAT, ("n", 3)),
         ("places", kind.INT64, (2, "found"))])
    with floats(pool, (4, 3), 1.0) as x, floats(pool, ()) as total, \
            floats(pool, (4, 3)) as minus, xmem.onnx.Binding(session) as binding, \
            xmem.onnx.acquire_output(pool, session, "places", (2, found)) as wrong, \
            xmem.onnx.acquire_output(pool, session, "places", (2, 12)) as right:
        binding.input("x", x)
        binding.output("sum", total)
        binding.output("minus", minus)
        binding.output("places", wrong)
        with pytest.raises(ValueError) as caught:
            binding.run()
        assert str(caught.value) == ("output 'places': the model has made shape (2, 12), and "
                                     f"this guard has (2, {found})")
        binding.output("places", right)
        binding.run()
        assert numpy.asarray(right).tolist() == [[row for row in range(4) for _ in range(3)],
                                                 [0, 1, 2] * 4]
        assert numpy.asarray(total) == 12.0 and (numpy.asarray(minus) == -1.0).all()


def test_what_fails_for_another_reason_is_onnx_runtimes_error(pool):
    """An index outside: the outputs' shapes are right, or nobody knows what they would be."""
    kind = onnx.TensorProto
    session = session_of([onnx.helper.make_node("Gather", ["x", "at"], ["y"])],
                         [("x", kind.FLOAT, ("n",)), ("at", kind.INT64, ("m",))],
                         [("y", kind.FLOAT, ("m",))])
    with floats(pool, (4,), 1.0) as x, pool.acquire_cpu((2,), "int64") as at, \
            floats(pool, (2,)) as y:
        numpy.asarray(at)[...] = 0, 9
        with pytest.raises(Exception, match="idx=9") as caught:
            xmem.onnx.run(session, {"x": x, "at": at}, {"y": y})
        assert not isinstance(caught.value, ValueError)
        numpy.asarray(at)[...] = 0, 3
        xmem.onnx.run(session, {"x": x, "at": at}, {"y": y})
        assert (numpy.asarray(y) == 1.0).all()


# ---- buffers on a GPU ----

class Recorder:
    """A session with the provider of CUDA, and its io_binding: what they are told, in order.

    This stands in for ONNX Runtime's build for CUDA, which needs a GPU to be loaded.
    """

    def __init__(self, session):
        self.get_inputs, self.get_outputs = session.get_inputs, session.get_outputs
        self.calls = []

    def io_binding(self):
        return self

    def __getattr__(self, name):
        return lambda *arguments: self.calls.append((name, *arguments))


def test_what_is_on_a_gpu_is_bound_by_its_device_address():
    if not xmem.gpus():
        pytest.skip("there is no GPU, and no driver that stands in for one")
    with xmem.BufferPool("onnx-gpu", writer=True) as pool:
        pool.preallocate_cuda(4096, 2)
        x, y = (pool.acquire_cuda((4, 3), dtype="float32") for _ in range(2))
        x.copy_from_host(numpy.full((4, 3), 1.5, "float32"))
        x.publish(keep=True)
        session = Recorder(doubling())
        with xmem.onnx.Binding(session) as binding:
            binding.input("x", x)
            binding.output("y", y)
            bound = x.cuda_ptr, y.cuda_ptr_mut
            x.release()                 # the binding has it still
            with pytest.raises(xmem.WouldBlock):
                pool.acquire_cuda(48, timeout=0)
            binding.run()
            y.publish()
        device = "cuda", 0, numpy.float32, [4, 3]
        assert session.calls == [
            ("bind_input", "x", *device, bound[0]), ("bind_output", "y", *device, bound[1]),
            ("run_with_iobinding", session, None), ("synchronize_outputs",),
            ("clear_binding_outputs",), ("clear_binding_inputs",), ("clear_binding_outputs",)]
        for _ in range(2):
            pool.acquire_cuda(48, timeout=LIMIT).publish()


# ---- camera -> inference stage -> viewer ----

def picture(number):
    return (numpy.arange(numpy.prod(PICTURE)) * 7 + number * 31).reshape(PICTURE).astype("uint8")


def camera(name, subscribed):
    with xmem.BufferPool(name, writer=True, wait_bound=LIMIT) as pool:
        assert subscribed.wait(LIMIT)
        for number in range(PICTURES):
            with pool.acquire_cpu(PICTURE, "uint8", timeout=LIMIT) as frame:
                numpy.asarray(frame)[...] = picture(number)
                frame.publish(timestamp_ns=number + 1)


def stage(name, results, subscribed, watched):
    session = brightness()
    frames = xmem.BufferPool(name).subscribe(waits=True, timeout=LIMIT)
    pool = xmem.BufferPool(results, writer=True, wait_bound=LIMIT)
    subscribed.set()
    assert watched.wait(LIMIT)
    with xmem.onnx.Binding(session) as binding:
        for frame in frames:
            with frame, xmem.onnx.acquire_output(pool, session, "negative") as negative, \
                    xmem.onnx.acquire_output(pool, session, "means") as means:
                binding.input("picture", frame)
                binding.output("negative", negative)
                binding.output("means", means)
                binding.run()
                negative.publish(timestamp_ns=frame.timestamp_ns)
                means.publish(timestamp_ns=frame.timestamp_ns)
    assert frames.lost == 0


def test_camera_stage_and_viewer_are_three_processes():
    spawn = multiprocessing.get_context("spawn")
    subscribed, watched = spawn.Event(), spawn.Event()
    others = [spawn.Process(target=camera, args=("onnx-camera", subscribed)),
              spawn.Process(target=stage, args=("onnx-camera", "onnx-results", subscribed,
                                                watched))]
    for process in others:
        process.start()
    try:
        viewer = xmem.BufferPool("onnx-results").subscribe(waits=True, timeout=LIMIT)
        watched.set()
        negatives = means = 0
        for result in viewer:
            with result:
                source = picture(result.timestamp_ns - 1)
                if result.dtype == "uint8":
                    assert (numpy.asarray(result) == 255 - source).all()
                    negatives += 1
                else:
                    assert numpy.allclose(result, source.mean(axis=(0, 1)))
                    means += 1
        assert (negatives, means, viewer.lost) == (PICTURES, PICTURES, 0)
    finally:
        for process in others:
            process.join(LIMIT)
            process.kill()
    assert [process.exitcode for process in others] == [0, 0]


# ---- what does not fit ----

def test_what_is_no_guard_or_is_not_given():
    session = doubling()
    with xmem.BufferPool(writer=True) as pool:
        source, target = (pool.acquire_cpu((2, 3), "float32") for _ in range(2))
        array = numpy.zeros((2, 3), "float32")
        with pytest.raises(TypeError, match="input 'x' is a ndarray, and no guard"):
            xmem.onnx.run(session, {"x": array}, {"y": target})
        with pytest.raises(TypeError, match="output 'y' is a ndarray, and no guard"):
            xmem.onnx.run(session, {"x": source}, {"y": array})
        with pytest.raises(ValueError, match="not given: x"):
            xmem.onnx.run(session, {}, {"y": target})
        with pytest.raises(ValueError, match="no output is given; the model has: y"):
            xmem.onnx.run(session, {"x": source}, {})
