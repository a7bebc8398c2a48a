# SPDX-License-Identifier: MIT
"""ONNX Runtime reads its inputs from guards and writes its outputs into guards, without a copy.

    session = onnxruntime.InferenceSession("model.onnx")
    for frame in frames:                                    # a subscription
        with frame, xmem.onnx.acquire_output(pool, session, "scores") as scores:
            xmem.onnx.run(session, {"picture": frame}, {"scores": scores})
            scores.publish()

A ``Binding`` does this in steps, and keeps what is bound to it from one run to the next.
This module needs onnxruntime and numpy, which it takes from the session's caller.
"""
from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from . import dtypes
from .errors import NotPermitted, Released
from .guard import BufferGuard

if TYPE_CHECKING:
    from .pool import BufferPool

_CUDA = 1 << 5          # XMEM_BUFFER_CUDA
#: The names of the models' types of elements in this package.
_TYPES = {
    "tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16",
    "tensor(bfloat16)": "bfloat16", "tensor(bool)": "bool",
    "tensor(float8e4m3fn)": "float8_e4m3fn", "tensor(float8e5m2)": "float8_e5m2",
    "tensor(complex64)": "complex64", "tensor(complex128)": "complex128",
    **{f"tensor({kind}{bits})": f"{kind}{bits}" for kind in ("int", "uint")
       for bits in (8, 16, 32, 64)},
}
#: The numbers of onnx.TensorProto for types that numpy does not have.
_NUMBERS = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19}


class Binding:
    """The inputs and outputs of a session, bound to guards.

    The contents of a bound guard stay in place, even if the guard is released meanwhile: an input
    until it is bound again or cleared, an output until the run that writes it. Outputs must be
    bound again for each run, because a published buffer is not written any more.

    ``io_binding`` is ONNX Runtime's own, for inputs that are no guards (``bind_cpu_input``).
    ``with`` clears it at the end. Threads: one at a time.
    """

    def __init__(self, session: Any) -> None:
        self.session = session
        self.io_binding = session.io_binding()
        self._arguments = {"input": {node.name: node for node in session.get_inputs()},
                           "output": {node.name: node for node in session.get_outputs()}}
        self._inputs: dict[str, tuple[BufferGuard, object]] = {}
        self._outputs: dict[str, tuple[BufferGuard, object]] = {}

    def __enter__(self) -> Binding:
        return self

    def __exit__(self, *unused: object) -> None:
        self.clear()

    def input(self, name: str, guard: BufferGuard) -> None:
        """Bind a guard from which the model reads its input of that name.

        Raises ValueError: there is no such input, it has another shape, or the guard's elements
        are not contiguous; TypeError: it has another type, or is no guard (io_binding takes
        arrays); Released.
        """
        _guard("input", name, guard)
        if any(guard is bound for bound, _ in self._outputs.values()):
            raise ValueError(f"input {name!r}: this guard is bound as an output")
        bound = guard, _hold(guard)     # before its address is asked for
        self.io_binding.bind_input(name, *self._place("input", name, guard))
        self._inputs[name] = bound

    def output(self, name: str, guard: BufferGuard) -> None:
        """Bind a guard into which the next run of the model writes its output of that name.

        Raises as input(), and NotPermitted: the guard is for reading.
        """
        _guard("output", name, guard)
        if guard.readonly:
            raise NotPermitted(errno.EPERM, f"output {name!r}: this guard is for reading, and the "
                               "model would write into it")
        if any(guard is bound for bound, _ in (*self._inputs.values(), *self._outputs.values())):
            raise ValueError(f"output {name!r}: this guard is bound already")
        bound = guard, _hold(guard)
        self.io_binding.bind_output(name, *self._place("output", name, guard))
        self._outputs[name] = bound

    def run(self, run_options: Any = None) -> None:
        """Run the model. Afterwards its outputs are in their guards, which are no longer bound.

        Raises Released: an output's guard has been published or released since it was bound;
        NotPermitted: it has been published, and kept; ValueError: an output whose shape the model
        leaves open has another shape than its guard; what ONNX Runtime raises.
        After an error all guards are bound as before, and the other outputs may have been written.
        """
        self._check_outputs()
        try:
            self.session.run_with_iobinding(self.io_binding, run_options)
        except Exception as error:
            wrong = self._wrong_shapes(run_options)
            if wrong:
                raise ValueError("; ".join(wrong)) from error
            raise
        self.io_binding.synchronize_outputs()
        self.io_binding.clear_binding_outputs()
        self._outputs.clear()

    def clear(self) -> None:
        """Unbind all. ONNX Runtime forgets an address before its contents may go."""
        self.io_binding.clear_binding_inputs()
        self.io_binding.clear_binding_outputs()
        self._inputs.clear()
        self._outputs.clear()

    def _check_outputs(self) -> None:
        for name, (guard, _) in self._outputs.items():
            if guard.gone:
                raise Released(errno.EBADF, f"output {name!r}: its guard has been published or "
                               "released since it was bound")
            if guard.readonly:
                raise NotPermitted(errno.EPERM, f"output {name!r}: its guard has been published "
                                   "since it was bound")

    def _wrong_shapes(self, run_options: Any) -> list[str]:
        """A run has failed: get a text for each output whose shape is the cause.

        ONNX Runtime only has a text for it, which may change. A run with these inputs and without
        bound outputs shows the shapes for certain.
        """
        is_open = {name: guard for name, (guard, _) in self._outputs.items()
                   if not _is_fixed(self._arguments["output"][name].shape)}
        if not is_open:
            return []
        places = {name: self._place("output", name, guard)
                  for name, (guard, _) in self._outputs.items()}
        self.io_binding.clear_binding_outputs()
        try:
            for name in is_open:
                device, index = places[name][:2]
                self.io_binding.bind_output(name, device, index)
            self.session.run_with_iobinding(self.io_binding, run_options)
            made = [tuple(value.shape()) for value in self.io_binding.get_outputs()]
        except Exception:
            return []           # The cause was something else, which the first error names.
        finally:
            self.io_binding.clear_binding_outputs()
            for name, place in places.items():
                self.io_binding.bind_output(name, *place)
        return [f"output {name!r}: the model has made shape {_text(shape)}, and this guard has "
                f"{_text(guard.shape)}"
                for (name, guard), shape in zip(is_open.items(), made) if shape != guard.shape]

    def _place(self, kind: str, name: str, guard: BufferGuard) -> tuple[Any, ...]:
        """The place and layout of contents, as arguments of bind_input and bind_output."""
        dtype, shape = _wanted(self._arguments[kind], kind, name)
        if guard.dtype is None:
            raise TypeError(f"{kind} {name!r}: the contents of this guard are not described; "
                            "acquire it with shape and dtype, or describe it")
        if guard.dtype != dtype:
            raise TypeError(f"{kind} {name!r} is of {dtype}, and this guard of {guard.dtype}")
        if len(guard.shape) != len(shape) or any(
                isinstance(wanted, int) and wanted != found
                for wanted, found in zip(shape, guard.shape)):
            raise ValueError(f"{kind} {name!r} has shape {_text(shape)}, and this guard "
                             f"{_text(guard.shape)}")
        if not _dense(guard):
            raise ValueError(f"{kind} {name!r}: the elements of this guard are not contiguous")
        device, index, address = _address(kind, guard)
        return device, index, _element_type(dtype), list(guard.shape), address


def run(session: Any, inputs: Mapping[str, BufferGuard], outputs: Mapping[str, BufferGuard],
        run_options: Any = None) -> None:
    """Run a model once, from guards into guards.

    Raises as Binding does, and ValueError: an input of the model is not given, or no output is.
    """
    missing = [node.name for node in session.get_inputs() if node.name not in inputs]
    if missing:
        raise ValueError(f"these inputs of the model are not given: {', '.join(missing)}")
    if not outputs:
        names = ", ".join(node.name for node in session.get_outputs())
        raise ValueError(f"no output is given; the model has: {names}")
    with Binding(session) as binding:
        for name, guard in inputs.items():
            binding.input(name, guard)
        for name, guard in outputs.items():
            binding.output(name, guard)
        binding.run(run_options)


def acquire_output(pool: BufferPool, session: Any, name: str,
                   shape: tuple[int, ...] | None = None,
                   timeout: float | None = None) -> BufferGuard:
    """Acquire a buffer for an output of a model, of its type and shape.

    shape: needed if the model leaves a dimension open. timeout: as BufferPool.acquire_cpu.
    Raises ValueError, and what acquire_cpu raises.
    """
    arguments = {node.name: node for node in session.get_outputs()}
    dtype, declared = _wanted(arguments, "output", name)
    if shape is None:
        if not _is_fixed(declared):
            raise ValueError(f"output {name!r} has shape {_text(declared)}: say which, by shape=")
        shape = declared
    return pool.acquire_cpu(shape=shape, dtype=dtype, timeout=timeout)


def _wanted(arguments: dict[str, Any], kind: str, name: str) -> tuple[str, tuple[Any, ...]]:
    """The type and the shape that a model declares; open dimensions are None or have a name."""
    node = arguments.get(name)
    if node is None:
        raise ValueError(f"the model has no {kind} {name!r}; it has: {', '.join(arguments)}")
    dtype = _TYPES.get(node.type)
    if dtype is None:
        raise TypeError(f"{kind} {name!r} is a {node.type}, which cannot be shared")
    return dtype, tuple(node.shape)


def _guard(kind: str, name: str, guard: object) -> None:
    if not isinstance(guard, BufferGuard):
        raise TypeError(f"{kind} {name!r} is a {type(guard).__name__}, and no guard: what else "
                        "ONNX Runtime takes is bound by Binding.io_binding")


def _text(shape: tuple[Any, ...]) -> str:
    return "(" + ", ".join("?" if count is None else str(count) for count in shape) + ")"


def _is_fixed(declared: Iterable[Any]) -> bool:
    return all(isinstance(count, int) for count in declared)


def _element_type(dtype: str) -> Any:
    if dtype in _NUMBERS:
        return _NUMBERS[dtype]
    import numpy
    return numpy.dtype(dtype).type


def _dense(guard: BufferGuard) -> bool:
    step = dtypes.item_bytes(guard.dtype_number)
    for count, stride in zip(reversed(guard.shape), reversed(guard.strides)):
        if count > 1 and stride != step:
            return False
        step *= count
    return True


def _address(kind: str, guard: BufferGuard) -> tuple[str, int, int]:
    """ONNX Runtime has streams of its own, so this waits for contents on a GPU."""
    if not guard.flags & _CUDA:
        return "cpu", 0, guard.cpu_ptr
    if kind == "output":
        return "cuda", guard.device_id, guard.cuda_ptr_mut
    guard.wait()
    return "cuda", guard.device_id, guard.cuda_ptr


def _hold(guard: BufferGuard) -> object:
    """An object that keeps the contents in place as long as it lives, even if the guard is
    released."""
    if guard.flags & _CUDA:
        return guard.__dlpack__(max_version=(1, 0))
    return guard._span() if guard.dtype in _NUMBERS else memoryview(guard)
