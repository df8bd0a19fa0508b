"""A real sshd on this machine's loopback with its own keys and settings, to serve as a device.

with serving(folder) as server:
    os.environ["PATH"] = server.path  # the `ssh` that knows its keys comes first
    connected(server.address())
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SSH = shutil.which("ssh")

# Why sshd cannot run here; "" where it can.
MISSING = (
    "" if SSHD and SSH else "there is no sshd or ssh; apt-get install openssh-server openssh-client"
)


@dataclass(frozen=True)
class Server:
    """A running sshd."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int

    def address(self, python: str | Path = sys.executable) -> str:
        return f"ssh://127.0.0.1:{self.port}/cpu:1?python={python}"

    @property
    def path(self) -> str:
        """A search path on which an `ssh` with the right settings comes first."""
        return f"{self.folder / 'bin'}:{os.environ['PATH']}"

    @property
    def cache(self) -> Path:
        """Where the runner on that device keeps models."""
        return self.folder / "cache" / "litesmith-agent"

    def kill(self) -> None:
        """Ends sshd and the processes of its connections at once, as a power cut would."""
        for pid in [*self.processes("sshd"), self.process.pid]:
            if "sshd" in _name(pid):
                with suppress(ProcessLookupError):  # it ended meanwhile
                    os.kill(pid, signal.SIGKILL)

    def processes(self, word: str) -> list[int]:
        """The processes that its connections started and whose name contains the word."""
        return [pid for pid in _descendants(self.process.pid) if word in _name(pid)]


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """An sshd whose files are in a folder, until the end of the block."""
    assert SSHD is not None, MISSING
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it where root starts it
    port = _free_port()
    host_key = make_key(folder / "host")
    (folder / "accepted").write_text(make_key(folder / "key"))
    (folder / "server").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder / 'host'}\nPidFile none\n"
        f"AuthorizedKeysFile {folder / 'accepted'}\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"SetEnv XDG_CACHE_HOME={folder / 'cache'}\n"
    )
    _write_client(folder, f"[127.0.0.1]:{port} {host_key}")
    process = subprocess.Popen(
        [SSHD, "-D", "-e", "-f", str(folder / "server")], stderr=subprocess.DEVNULL
    )
    started = Server(process, folder, port)
    try:
        _wait_for(port, process)
        yield started
    finally:
        started.kill()
        process.wait()


def _write_client(folder: Path, known: str) -> None:
    """Writes an `ssh` that reads these settings instead of the user's; `known` holds host keys."""
    (folder / "known").write_text(known)
    (folder / "client").write_text(
        f"IdentityFile {folder / 'key'}\nIdentitiesOnly yes\n"
        f"UserKnownHostsFile {folder / 'known'}\nGlobalKnownHostsFile /dev/null\n"
        "StrictHostKeyChecking yes\n"
    )
    program = folder / "bin" / "ssh"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {SSH} -F {folder / "client"} "$@"\n')
    program.chmod(0o755)


def _descendants(parent: int) -> list[int]:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it ended meanwhile
            continue
    found = [parent]
    for pid in found:
        found += [child for child, its_parent in parents.items() if its_parent == pid]
    return found[1:]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def make_key(path: Path) -> str:
    """Makes a pair of keys and returns the public one."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(words, check=True)
    return path.with_suffix(".pub").read_text()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "sshd does not start"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("sshd does not answer")
