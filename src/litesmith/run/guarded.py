"""A session in a process of its own: what native code does there takes nobody along.

The worker makes its arrays in memory that both processes map, so that inputs and outputs are the
runtime's own memory here too; only a word travels for a run.
"""

import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from litesmith.errors import CannotRun, LitesmithError
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.run.core.child_process import call_seconds, limit_child
from litesmith.run.core.runner import Port
from litesmith.run.core.target import Target
from litesmith.run.session import Session

_MODULE = "litesmith.run.guarded"
_SIDES = ("inputs", "outputs")
_MOST_PORTS = 200  # descriptors that one message can carry

Word = dict[str, Any]


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
        files = iter(handles)
        for side in _SIDES:
            if side in answer:
                ports = (Port(name, _map(next(files), *kind)) for name, *kind in answer[side])
                setattr(self, side, tuple(ports))

    def _lost(self) -> CannotRun:
        self.close()
        status = self._child.returncode
        return CannotRun(
            "the runtime crashed ({how}) in its own process; the model is damaged, or the runtime "
            "has a bug; open another session",
            signal.Signals(-status).name if status < 0 else phrase("status {status}", status),
        )


def _send(to: socket.socket, word: Word, handles: Sequence[int] = ()) -> None:
    content = json.dumps(word).encode() + b"\n"
    sent = socket.send_fds(to, [content], handles) if handles else 0
    to.sendall(content[sent:])


def _receive(where: socket.socket) -> tuple[Word, list[int]]:
    content, handles = b"", list[int]()
    while not content.endswith(b"\n"):
        piece, more, _, _ = socket.recv_fds(where, 1 << 16, _MOST_PORTS)
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


def _map(handle: int, shape: Sequence[int], dtype: str) -> Array:
    """The array that lies in a file, whose memory it keeps when the file is closed."""
    memory = mmap.mmap(handle, os.fstat(handle).st_size)
    os.close(handle)
    return np.frombuffer(memory, dtype, int(np.prod(shape, dtype=np.int64))).reshape(shape)


_files: dict[int, int] = {}  # in the worker: where an array begins, and the file that it lies in


def _allocate(shape: tuple[int, ...], dtype: str) -> Array:
    """Zeros in a file."""
    handle = _make_file(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
    array = _map(os.dup(handle), shape, dtype)
    _files[array.ctypes.data] = handle
    return array


class _SharedSession(Session):
    """A session whose arrays lie in files."""

    _allocate = staticmethod(_allocate)


class _Worker:
    """The other side: runs a session for who asks."""

    def __init__(self, to: socket.socket, content: memoryview) -> None:
        self._socket = to
        order, _ = _receive(to)
        self._session = _SharedSession(content, order["target"], signature=order["signature"])
        self._told: dict[str, list[Array]] = {side: [] for side in _SIDES}
        self._copied: dict[str, list[tuple[Array, Array]]] = {}
        self._answer()

    def serve(self) -> None:
        """Does what it is asked until nobody asks any more."""
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
        handles: list[int] = []
        for side in _SIDES:
            ports: tuple[Port, ...] = getattr(self._session.runner, side)
            arrays = [port.array for port in ports]
            if [*map(id, arrays)] != [*map(id, self._told[side])]:
                self._copied[side] = [(own, _copy(own)) for own in arrays if not _is_shared(own)]
                shared = {id(own): copy for own, copy in self._copied[side]}
                placed = [shared.get(id(own), own) for own in arrays]
                word[side] = [
                    (port.name, one.shape, one.dtype.str)
                    for port, one in zip(ports, placed, strict=True)
                ]
                handles += [_files[one.ctypes.data] for one in placed]
                self._told[side] = arrays
        for own, shared in self._copied["outputs"]:
            shared[...] = own
        _send(self._socket, word, handles)
        self._close_others()

    def _close_others(self) -> None:
        """Closes the files of arrays that are none any more."""
        used = {one.ctypes.data for arrays in self._told.values() for one in arrays}
        for place in _files.keys() - used:
            os.close(_files.pop(place))


def _is_shared(array: Array) -> bool:
    return array.ctypes.data in _files


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
