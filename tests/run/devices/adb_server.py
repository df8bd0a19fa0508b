"""An adb server with one phone behind it, for the real adb client to talk to.

It speaks the protocol's host services, shell (version 2) and sync as far as the client needs them.
The phone's files are a dictionary, its commands a few lines, its `benchmark_model` a recorded text.
"""

import hashlib
import re
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SERIAL = "R58M12ABCDE"
PROGRAM = "/data/local/tmp/benchmark_model"
FACTS = """\
maker=Acme
model=Phone 7
chip=SM8550
board=kalama
android=14
abi=arm64-v8a
cores=8
governor=walt
load=1.25
memory=MemTotal:        7654321 kB
"""
_STDOUT, _EXIT, _CLOSE_STDIN = 1, 3, 4


@dataclass
class FakePhone:
    """What the phone holds and does; tests change it."""

    state: str = "device"
    facts: str = FACTS
    output: str = ""  # of benchmark_model
    status: int = 0
    is_cut_mid_run: bool = False
    files: dict[str, bytes] = field(default_factory=lambda: {PROGRAM: b"a program"})
    commands: list[str] = field(default_factory=list)
    pushes: list[str] = field(default_factory=list)

    def answer(self, command: str) -> tuple[str, int]:
        """What a shell command prints, and its exit status."""
        self.commands.append(command)
        words = command.split()
        if words[:2] == ["test", "-x"]:
            return "", int(words[2] not in self.files)
        if command.startswith("echo"):
            return self.facts, 0
        if "sha256sum" in words:
            path = words[words.index("sha256sum") + 1]
            known = self.files.get(path)
            return (f"{hashlib.sha256(known).hexdigest()}  {path}\n", 0) if known else ("", 1)
        if words[0] == "mv":
            self.files[words[2]] = self.files.pop(words[1])
        if words[0] == PROGRAM:
            graph = words[1].removeprefix("--graph=")
            return (self.output, self.status) if graph in self.files else ("no graph", 1)
        return "", 0


class _Connection(socketserver.StreamRequestHandler):
    """One connection of the client: host services, then perhaps one of the phone's."""

    @property
    def phone(self) -> FakePhone:
        return self.server.phone  # pyright: ignore[reportAttributeAccessIssue]

    def handle(self) -> None:
        service = self._service()
        is_known = self.phone.state == "device" and SERIAL in service
        if service == "host:version":
            self._okay(b"0029")
        elif service.startswith("host:devices"):
            self._okay(f"{SERIAL}\t{self.phone.state}\n".encode() if self.phone.state else b"")
        elif not is_known:
            self._write(b"FAIL" + _counted(f"device '{SERIAL}' not found".encode()))
        elif service.endswith(":features"):
            self._okay(b"shell_v2,cmd")
        else:  # the connection now goes to the phone
            number = struct.pack("<Q", 1) if service.startswith("host:tport") else b""
            self._write(b"OKAY" + number)
            service = self._service()
            self._write(b"OKAY")
            self._sync() if service == "sync:" else self._shell(service)

    def _service(self) -> str:
        return self.rfile.read(int(self.rfile.read(4), 16)).decode()

    def _write(self, content: bytes) -> None:
        self.wfile.write(content)

    def _okay(self, content: bytes) -> None:
        self._write(b"OKAY" + _counted(content))

    def _shell(self, service: str) -> None:
        command = service.partition(":")[2]
        while True:
            kind, size = struct.unpack("<BI", self.rfile.read(5))
            self.rfile.read(size)
            if kind == _CLOSE_STDIN:
                break
        command, _, mark = command.rpartition("; echo ")
        text, status = self.phone.answer(command)
        text += mark.replace("$?", f"{status}\n")
        if self.phone.is_cut_mid_run and command.startswith(PROGRAM):
            self.phone.state = ""
            text = text[: len(text) // 2]
        content = text.encode()
        self._write(struct.pack("<BI", _STDOUT, len(content)) + content)
        if self.phone.state:
            self._write(struct.pack("<BIB", _EXIT, 1, 0))

    def _sync(self) -> None:
        while head := self.rfile.read(8):
            name, size = head[:4], struct.unpack("<I", head[4:])[0]
            path = self.rfile.read(size).decode()
            if name == b"STAT":
                held = self.phone.files.get(path)
                mode = 0 if held is None else 0o100644
                self._write(b"STAT" + struct.pack("<III", mode, len(held or b""), 0))
            elif name == b"SEND":
                self._take(path.rpartition(",")[0])
            else:  # QUIT
                return

    def _take(self, path: str) -> None:
        content = b""
        while (head := self.rfile.read(8))[:4] == b"DATA":
            content += self.rfile.read(struct.unpack("<I", head[4:])[0])
        self.phone.files[path] = content
        self.phone.pushes.append(path)
        self._write(b"OKAY" + struct.pack("<I", 0))


def _counted(content: bytes) -> bytes:
    return f"{len(content):04x}".encode() + content


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextmanager
def serving(phone: FakePhone) -> Iterator[int]:
    """The port that the server listens on meanwhile."""
    with _Server(("127.0.0.1", 0), _Connection) as server:
        server.phone = phone  # pyright: ignore[reportAttributeAccessIssue]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def client_speaks(version_text: str) -> bool:
    """True where the client has the version that this server claims; it would replace it else."""
    return re.search(r"version 1\.0\.41\b", version_text) is not None
