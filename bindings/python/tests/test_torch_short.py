# SPDX-License-Identifier: MIT
"""The fast path of messages: tensors that the extension handles because they are sent repeatedly,
and those that it leaves to the slow path. The name of the function in a message shows the path."""
from __future__ import annotations

import pickle
import resource
import struct
import sys
import threading
import warnings
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode                   # noqa: E402
from torch_children import Child, ask, details  # noqa: E402

import xmem                                                     # noqa: E402
import xmem.torch                                               # noqa: E402
from xmem import _torch                                         # noqa: E402
from xmem.torch import pools, reductions, storages, versions    # noqa: E402

HEAD = struct.Struct("=QHBB")       # token, type, flags, dimensions: src/torch_message.h


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


def all_of(tensor: Any) -> tuple[Any, ...]:
    return (*details(tensor), type(tensor).__name__, tensor.is_conj(), tensor.is_neg())


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """It has dropped each tensor before it gets the next."""
    with Child(ask, all_of) as child:
        yield child
        child.put(None)
        child.end()


def dumps(thing: Any) -> bytes:
    return bytes(ForkingPickler.dumps(thing))


def is_short(message: bytes) -> bool:
    return b"rebuild_whole" in message


def sent(tensor: Any) -> Any:
    """A tensor that has been sent and read twice, so that references are set aside ahead."""
    for _ in range(2):
        pickle.loads(dumps(tensor))
    return tensor


def goes_short(tensor: Any) -> bool:
    """Does it take the fast path now? Its message is read here, so that nothing stays set aside."""
    message = dumps(sent(tensor))
    again = pickle.loads(message)
    assert type(again) is type(tensor) and again.data_ptr() == tensor.data_ptr()
    return is_short(message)


def check(child: Child, tensor: Any) -> None:
    """It takes the fast path, and arrives unchanged."""
    message = dumps(sent(tensor))
    assert is_short(message)
    child.pipe.send_bytes(message)
    assert child.get() == all_of(tensor)


@pytest.mark.parametrize("dtype", list(storages.TYPES), ids=str)
def test_each_type(child: Child, dtype: Any) -> None:
    check(child, torch.arange(12).to(dtype).reshape(3, 4))


@pytest.mark.parametrize("shape", [(), (1,), (24,), (4, 6), (1, 24, 1), (2, 2, 2, 3, 1, 1, 1, 1)],
                         ids=str)
def test_each_shape(child: Child, shape: tuple[int, ...]) -> None:
    check(child, torch.rand(shape))


@pytest.mark.parametrize("make", [
    lambda t: t.requires_grad_(), torch.nn.Parameter,
    lambda t: torch.nn.Parameter(t, requires_grad=False), torch._neg_view,
    lambda t: t.to(torch.complex64).conj(),
    lambda t: torch._neg_view(t.to(torch.complex128).conj())], ids=range(6))
def test_what_a_message_says_beside_the_place(child: Child, make: Callable[[Any], Any]) -> None:
    check(child, make(torch.arange(6.0)))


def test_first_and_every_so_often_it_is_the_long_way(child: Child) -> None:
    tensor = torch.zeros(1000)
    ways = []
    for number in range(100):
        tensor[999] = number
        message = dumps(tensor)
        ways.append(is_short(message))
        child.pipe.send_bytes(message)
        assert child.get()[5][999] == number
    assert ways == ([False] + ([False] + [True] * 31) * 4)[:100]


@pytest.mark.parametrize("make", [
    lambda t: t[1:], lambda t: t[:3], lambda t: t.t(), lambda t: t[:, 1], lambda t: t.expand(
        2, 4, 6), lambda t: t.as_strided((1, 24), (7, 1)), lambda t: t.to(torch.bool),
    lambda t: t.reshape(1, 1, 1, 1, 1, 1, 1, 4, 6),
    lambda t: torch.quantize_per_tensor(t, 0.5, 2, torch.qint8)], ids=range(9))
def test_what_is_not_whole_or_plain(make: Callable[[Any], Any]) -> None:
    whole = torch.arange(24.0).reshape(4, 6)
    tensor = make(whole)
    assert not goes_short(tensor)
    assert details(pickle.loads(dumps(tensor)).dequantize() if tensor.is_quantized else
                   pickle.loads(dumps(tensor)))[:4] == details(
                       tensor.dequantize() if tensor.is_quantized else tensor)[:4]


class Subclass(torch.Tensor):       # type: ignore[misc]
    """Of a user's."""


def test_what_torch_is_to_judge() -> None:
    plain = sent(torch.arange(6.0))
    assert goes_short(plain)
    hooked = torch.arange(6.0, requires_grad=True)
    hooked.register_hook(lambda grad: grad)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert not is_short(dumps(hooked)) and not is_short(dumps(hooked))
    assert any("hook" in str(each.message) for each in said)
    leaf = torch.arange(6.0, requires_grad=True)
    assert goes_short(leaf)
    with pytest.raises(RuntimeError, match="requires_grad"):
        dumps(leaf.view(6))
    assert not is_short(dumps(plain.as_subclass(Subclass)))
    sparse = torch.eye(3).to_sparse()
    if torch.__version__ < "2.2":
        with pytest.raises(NotImplementedError):
            dumps(sparse)
    else:
        assert not is_short(dumps(sparse))
    if versions.names_of:
        with pytest.raises(RuntimeError, match="[Nn]amed"):
            dumps(sent(torch.zeros(3)).refine_names("N"))


class Looks(TorchFunctionMode):     # type: ignore[misc]
    """Sees functions and methods of torch, and changes nothing."""

    seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


def test_settings_that_want_the_long_way() -> None:
    tensor = sent(torch.arange(6.0))
    with Looks() as mode:
        assert not is_short(message := dumps(tensor)) and not mode.seen
    pickle.loads(message)
    xmem.torch.install(in_flight=60)
    assert not is_short(message := dumps(tensor)), "each message has its own time"
    pickle.loads(message)
    xmem.torch.install()
    assert goes_short(tensor)
    with xmem.BufferPool("torch-short", writer=True) as pool, pool.acquire_cpu(4) as guard:
        written = xmem.torch.tensor(guard)
        assert goes_short(tensor), "it is not the guard's"
        for _ in range(3):
            with pytest.raises(xmem.Error, match="publish the guard first"):
                dumps(written)


def test_an_uninstalled_sender_says_so() -> None:
    tensor = sent(torch.arange(6.0))
    for uninstall, flags in ((False, 0), (True, 4)):
        if uninstall:
            xmem.torch.uninstall()
        message = short_message(tensor)
        assert HEAD.unpack_from(message)[1:] == (0x220, flags, 1)
        assert _torch.rebuild(message).data_ptr() == tensor.data_ptr()


def test_what_is_here_is_the_storage_that_is_here() -> None:
    tensor = sent(torch.arange(6.0))
    message = dumps(tensor)
    assert is_short(message)
    again = pickle.loads(message)
    assert versions.untyped(again)._cdata == versions.untyped(tensor)._cdata


def load_in_threads(messages: list[bytes]) -> tuple[int, list[Any]]:
    """How many storages they are of, and what all of them show."""
    got: list[Any] = []
    start = threading.Barrier(len(messages))

    def load(message: bytes) -> None:
        start.wait()
        got.append(pickle.loads(message))

    threads = [threading.Thread(target=load, args=(each,)) for each in messages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len({versions.untyped(each)._cdata for each in got}), [each.tolist() for each in got]


def test_threads_that_receive_the_same_make_one_storage() -> None:
    tensor = sent(torch.zeros(4))
    with Child(ask, load_in_threads) as child:
        for number in range(50):
            tensor[3] = number
            child.put([dumps(tensor) for _ in range(4)])
            assert child.get() == (1, [[0.0, 0.0, 0.0, float(number)]] * 4)
        child.put(None)
        child.end()


def test_a_message_that_is_none_is_an_error() -> None:
    tensor = sent(torch.arange(6.0))
    name, token, _ = _torch.find(tensor.data_ptr())
    for wrong in ("text", None, 3, bytearray(40)):
        with pytest.raises(TypeError):
            _torch.rebuild(wrong)
    for cut in (b"", HEAD.pack(token, 0x220, 0, 1)[:-1]):
        with pytest.raises(struct.error):
            _torch.rebuild(cut)
    with pytest.raises(xmem.NotFound):
        _torch.rebuild(HEAD.pack(token, 0x220, 0, 1) + struct.pack("q", 6) + b"torch-none")
    with pytest.raises(struct.error):
        _torch.rebuild(HEAD.pack(token, 0x220, 0, 200) + struct.pack("q", 6) + name.encode())


def short_message(tensor: Any) -> bytes:
    function, (message,) = _torch.reduce(tensor)
    assert function is reductions.rebuild_whole
    return bytes(message)


def rebuild(message: bytes) -> Any:
    try:
        return _torch.rebuild(message).tolist()
    except (ValueError, xmem.Stale) as error:
        return type(error).__name__, str(error), getattr(error, "__notes__", [])


def test_a_message_that_does_not_fit_its_buffer() -> None:
    tensor = sent(torch.arange(6.0))
    with Child(ask, rebuild) as child:
        child.put(short_message(tensor))
        assert child.get() == tensor.tolist()
        name, token, _ = _torch.find(tensor.data_ptr())
        number = pools.join(name).number
        before = _torch.claims(number, token)
        wrong = ((0x220, (7,)), (0x220, (-6,)), (0x220, (-2, -3)), (0x220, (0,)),
                 (0x220, (1 << 62, 4)), (0x240, (6,)), (0, (6,)))
        for kind, shape in wrong:
            _torch.offer(tensor.data_ptr())
            child.put(HEAD.pack(token, kind, 0, len(shape))
                      + struct.pack(f"{len(shape)}q", *shape) + name.encode())
            assert child.get() == ("ValueError", "the message of a tensor does not fit its buffer",
                                   [])
        assert _torch.claims(number, token) == before - len(wrong), "each took its reference"
        child.put(None)
        child.end()


def test_a_message_whose_memory_is_gone_says_why() -> None:
    tensor = sent(torch.arange(6.0))
    short = short_message(tensor)
    with Child(ask, rebuild) as child:
        child.put(short)
        assert child.get() == tensor.tolist()
        del tensor
        _torch.stat(pools.join(xmem.torch.installed() or "").number)    # it is found to be free
        child.put(short)
        kind, _, notes = child.get()
        assert kind == "Stale" and "Nobody has this tensor any more" in notes[0]
        child.put(None)
        child.end()


def interrupted(letter: tuple[str, bytes]) -> str:
    """Read a message, while a handler of a signal raises something when the buffer is there and its
    storage is being noted."""
    name, message = letter
    pool = pools.join(name)

    def remember(token: int, storage: Any) -> None:
        raise TimeoutError("an alarm")

    _torch.set_known(pool.number, pool._known, remember)
    try:
        return str(_torch.rebuild(message).tolist())
    except TimeoutError as error:
        return str(error)


def test_what_a_handler_raises_is_raised_and_takes_one_reference() -> None:
    tensor = sent(torch.arange(6.0))
    name, token, _ = _torch.find(tensor.data_ptr())
    with Child(ask, interrupted) as child:
        message = short_message(tensor)
        before = _torch.claims(pools.join(name).number, token)
        child.put((name, message))
        assert child.get() == "an alarm"
        assert _torch.claims(pools.join(name).number, token) == before - 1
        child.put(None)
        child.end()


def test_nothing_is_left_of_messages(child: Child) -> None:
    tensor = sent(torch.arange(6.0))
    pool = pools.join(xmem.torch.installed() or "")

    def send(count: int) -> None:
        for _ in range(count):
            pickle.loads(dumps(tensor))

    send(100)
    before = sys.getallocatedblocks()
    send(20000)
    assert sys.getallocatedblocks() - before < 100
    storage = versions.untyped(tensor)
    before = sys.getallocatedblocks()
    for _ in range(20000):
        ref = _torch.WeakRef(storage)
        assert not ref.expired() and ref.storage()._cdata == storage._cdata
    del ref
    assert sys.getallocatedblocks() - before < 100
    token = _torch.find(tensor.data_ptr())[1]
    assert _torch.claims(pool.number, token) < 32, "no more than are set aside ahead"


def resident() -> int:
    """Bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_a_weak_reference_keeps_nothing() -> None:
    tensor = xmem.torch.share(torch.arange(6.0))
    holds = _torch.holds()
    ref = _torch.WeakRef(versions.untyped(tensor))
    del tensor
    assert _torch.holds() == holds - 1 and ref.expired() and ref.storage() is None
    before = resident()
    for _ in range(100000):
        ref = _torch.WeakRef(versions.untyped(torch.empty(1)))
    assert resident() - before < 4 << 20, "nor the objects of storages that are gone"
    for wrong in ((), (1, 2)):
        with pytest.raises(TypeError):
            _torch.WeakRef(*wrong)
    with pytest.raises(AttributeError):
        _torch.WeakRef(3)
    with pytest.raises(TypeError):
        _torch.WeakRef(storage=3)


def known_wrongly(letter: tuple[str, int, bytes]) -> str:
    name, token, message = letter
    _torch.set_known(pools.join(name).number, {token: 3}, print)
    try:
        return str(_torch.rebuild(message).tolist())
    except TypeError as error:
        return str(error)


def test_what_is_told_wrongly_is_refused() -> None:
    for wrong in (None, [], ()):
        with pytest.raises(TypeError):
            _torch.set_messages(wrong)
    with pytest.raises(KeyError, match="reduce"):
        _torch.set_messages({})
    with pytest.raises(ValueError):
        _torch.set_known(63, {}, print)
    with pytest.raises(TypeError):
        _torch.set_known(0, [], print)
    with pytest.raises(TypeError):
        _torch.set_installed(3)
    with Child(ask, known_wrongly) as child:
        tensor = sent(torch.arange(6.0))
        name, token, _ = _torch.find(tensor.data_ptr())
        child.put((name, token, short_message(tensor)))
        assert child.get() == "the known storage of a token is no WeakRef"
        child.put(None)
        child.end()
    assert goes_short(torch.arange(6.0)), "all is as before"
