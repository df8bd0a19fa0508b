"""A session in a process of its own, so that a crash of native code takes nothing else down.

The worker makes its arrays in memory that both processes map, so that inputs and outputs are the
runtime's own memory here too; only a short message travels for a run.
"""

import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from litesmith.errors import CannotRun, LitesmithError, os_reason
from litesmith.ir.types import Array
from litesmith.operating_system import crash_name, limit_child
from litesmith.phrases import phrase
from litesmith.run.core.child_process import call_seconds
from litesmith.run.core.runner import Port
from litesmith.run.core.target import Target
from litesmith.run.session import Session

_MODULE = "litesmith.run.guarded"
_SIDES = ("inputs", "outputs")

# Files that one message can carry. Arrays lie in blocks of memory, each at least as large as all
# before it, so that there are few files however many inputs and outputs there are.
_MOST_FILES = 200
_LEAST_BLOCK, _ALIGNMENT = 1 << 20, 64

Word = dict[str, Any]

# The description of a port: its name, the number of its file, its place in the file, its shape and
# its type.
Told = tuple[str, int, int, Sequence[int], str]


def can_share_memory() -> bool:
    """True where two processes can share memory by its descriptor: not on Windows."""
    return hasattr(socket, "send_fds")


class GuardedRunner:
    """A model that runs in a child process."""

    def __init__(self, content: bytes | memoryview, target: Target, *, signature: str = "") -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(call_seconds())
        model = _make_file(len(content))
        with mmap.mmap(model, len(content)) as place:
            place[:] = content
        folders = (os.path.abspath(folder) for folder in sys.path if folder)
        self._child = subprocess.Popen(
            # -P: modules come from where the package is, not from the folder that the user is in.
            [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno()), str(model)],
            pass_fds=(theirs.fileno(), model),
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        )
        theirs.close()
        os.close(model)
        self.inputs: tuple[Port, ...] = ()
        self.outputs: tuple[Port, ...] = ()
        self.copies, self.note = False, ""
        try:
            self._ask(target=str(target), signature=signature)
        except BaseException:
            self.close()
            raise

    @property
    def process(self) -> int:
        """The number of the child process."""
        return self._child.pid

    def run(self) -> None:
        self._ask()

    def resize(self, shapes: dict[int, tuple[int, ...]]) -> None:
        self._ask(shapes=list(shapes.items()))

    def close(self) -> None:
        self._socket.close()  # which ends the worker, unless it does not hear
        try:
            self._child.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _ask(self, **order: object) -> None:
        """Has the worker do something, and takes its answer; whatever prevents that ends it."""
        try:
            _send(self._socket, order)
            answer, handles = _receive(self._socket)
        except TimeoutError:
            self.close()
            raise CannotRun(
                "one call of native code took over {seconds:g} s, and was stopped; open another "
                "session",
                call_seconds(),
            ) from None
        except (OSError, EOFError):
            raise self._lost() from None
        except BaseException:  # as Ctrl-C, which native code does not hear
            self._child.kill()
            raise
        if "refused" in answer:
            raise CannotRun("{reason}", answer["refused"])
        self.copies, self.note = answer["copies"], answer["note"]
        try:
            files = [_map(handle) for handle in handles]
        except OSError as error:
            self.close()
            raise _not_shared(error) from None
        for side in _SIDES:
            if side in answer:
                told: list[Told] = answer[side]
                ports = [
                    Port(name, _view(files[file], start, shape, dtype))
                    for name, file, start, shape, dtype in told
                ]
                setattr(self, side, tuple(ports))

    def _lost(self) -> CannotRun:
        self.close()
        status = self._child.returncode
        return CannotRun(
            "the runtime crashed ({how}) in its own process; the model is damaged, or the runtime "
            "has a bug; open another session",
            crash_name(status) or phrase("status {status}", status),
        )


def _send(to: socket.socket, word: Word, handles: Sequence[int] = ()) -> None:
    content = json.dumps(word).encode() + b"\n"
    sent = socket.send_fds(to, [content], handles) if handles else 0
    to.sendall(content[sent:])


def _receive(where: socket.socket) -> tuple[Word, list[int]]:
    content, handles = b"", list[int]()
    while not content.endswith(b"\n"):
        piece, more, _, _ = socket.recv_fds(where, 1 << 16, _MOST_FILES)
        if not piece:
            raise EOFError
        content, handles = content + piece, handles + more
    return json.loads(content), handles


def _make_file(size: int) -> int:
    """A file without a name that two processes can map."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("litesmith")
    else:
        handle, name = tempfile.mkstemp()
        os.unlink(name)
    os.ftruncate(handle, max(size, 1))
    return handle


def _map(handle: int) -> mmap.mmap:
    """The memory of a file, which is closed."""
    try:
        return mmap.mmap(handle, os.fstat(handle).st_size)
    finally:
        os.close(handle)


def _view(memory: mmap.mmap, start: int, shape: Sequence[int], dtype: str) -> Array:
    """The array that lies in memory from there on, and keeps it."""
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(memory, dtype, count, start).reshape(shape)


def _not_shared(error: OSError) -> CannotRun:
    return CannotRun(
        "guarded=True: no memory can be shared with the session's process ({why}); leave guarded "
        "out",
        os_reason(error),
    )


class _Block:
    """Memory in a file, of which arrays take one part after the other."""

    def __init__(self, size: int) -> None:
        self.handle = _make_file(size)
        self.size, self._taken = size, 0
        self._memory = _map(os.dup(self.handle))
        self._start = np.frombuffer(self._memory, np.uint8).ctypes.data

    def has_room(self, size: int) -> bool:
        return self._taken + size <= self.size

    def take(self, shape: tuple[int, ...], dtype: str, size: int) -> Array:
        start, self._taken = self._taken, self._taken + size
        return _view(self._memory, start, shape, dtype)

    def place(self, array: Array) -> int | None:
        """The place where an array begins; None where it lies elsewhere."""
        start = array.ctypes.data - self._start
        return start if 0 <= start < self.size else None


_blocks: list[_Block] = []  # in the worker: those of which arrays are in use


def _allocate(shape: tuple[int, ...], dtype: str) -> Array:
    """Zeros that another process can map, on the runtime's boundary."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    size = max(_ALIGNMENT, size + -size % _ALIGNMENT)
    if not _blocks or not _blocks[-1].has_room(size):
        all_before = sum(block.size for block in _blocks)
        try:
            _blocks.append(_Block(max(size, _LEAST_BLOCK, all_before)))
        except OSError as error:
            raise _not_shared(error) from None
    return _blocks[-1].take(shape, dtype, size)


def _place(array: Array) -> tuple[_Block, int] | None:
    """The block that an array lies in, and where in it."""
    for block in _blocks:
        start = block.place(array)
        if start is not None:
            return block, start
    return None


class _SharedSession(Session):
    """A session whose arrays lie in files."""

    _allocate = staticmethod(_allocate)


class _Worker:
    """The other side: runs a session on request."""

    def __init__(self, to: socket.socket, content: memoryview) -> None:
        self._socket = to
        order, _ = _receive(to)
        self._session = _SharedSession(content, order["target"], signature=order["signature"])
        self._told: dict[str, list[Array]] = {side: [] for side in _SIDES}
        self._copied: dict[str, list[tuple[Array, Array]]] = {}
        self._answer()

    def serve(self) -> None:
        """Serves requests until the connection ends."""
        while True:
            order, _ = _receive(self._socket)
            try:
                if "shapes" in order:
                    shapes = {place: tuple(shape) for place, shape in order["shapes"]}
                    self._session.runner.resize(shapes)
                else:
                    for own, shared in self._copied["inputs"]:
                        own[...] = shared
                    self._session.run()
                self._answer()
            except LitesmithError as error:
                _send(self._socket, {"refused": str(error)})

    def _answer(self) -> None:
        """Hands over arrays that are not known there yet, and outputs that are copied."""
        word: Word = {"copies": self._session.copies, "note": self._session.note}
        blocks: list[_Block] = []
        for side in _SIDES:
            ports: tuple[Port, ...] = getattr(self._session.runner, side)
            arrays = [port.array for port in ports]
            if [*map(id, arrays)] != [*map(id, self._told[side])]:
                self._copied[side] = [(own, _copy(own)) for own in arrays if _place(own) is None]
                shared = {id(own): copy for own, copy in self._copied[side]}
                word[side] = [
                    (port.name, *_tell(shared.get(id(port.array), port.array), blocks))
                    for port in ports
                ]
                self._told[side] = arrays
        for own, shared in self._copied["outputs"]:
            shared[...] = own
        _send(self._socket, word, [block.handle for block in blocks])
        self._close_others()

    def _close_others(self) -> None:
        """Closes blocks without arrays in use."""
        known = [one for arrays in self._told.values() for one in arrays]
        known += [shared for pairs in self._copied.values() for _, shared in pairs]
        used = {id(found[0]) for found in map(_place, known) if found is not None}
        for block in [one for one in _blocks if id(one) not in used]:
            _blocks.remove(block)
            os.close(block.handle)


def _tell(array: Array, blocks: list[_Block]) -> tuple[int, int, tuple[int, ...], str]:
    """What the other side needs to see an array: which of the blocks, where in it, its shape and
    its type. A block that is not among them yet is added."""
    found = _place(array)
    assert found is not None
    block, start = found
    if block not in blocks:
        blocks.append(block)
    return blocks.index(block), start, array.shape, array.dtype.str


def _copy(array: Array) -> Array:
    if array.dtype == object:
        raise CannotRun("guarded=True: the model has texts as inputs or outputs; leave guarded out")
    made = _allocate(array.shape, array.dtype.str)
    made[...] = array
    return made


def _main() -> None:
    limit_child()
    to = socket.socket(fileno=int(sys.argv[1]))
    try:
        with suppress(EOFError, ConnectionError):
            _Worker(to, memoryview(mmap.mmap(int(sys.argv[2]), 0, access=mmap.ACCESS_READ))).serve()
    except LitesmithError as error:
        _send(to, {"refused": str(error)})


if __name__ == "__main__":
    _main()
