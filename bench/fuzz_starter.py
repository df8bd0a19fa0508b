"""Starts commands for the fuzzing bench, as doubles of one process that has done their imports.

Imports take half of the time of a short command, and are the same for all. Each line of standard
input is a command as JSON: its `words`, `folder`, `variables`, and `told`, where its standard error
goes. Two lines answer it: its process; and, when that has ended, its status and its peak memory.
"""

import gc
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import IO, NoReturn

import litesmith

# Rooms that bring numba, torch or Ray, which most commands do without; and the command line, which
# may look at variables while it is imported.
LATER = ("cli", "conversion", "kernels", "native", "networks", "ray_engine", "training", "transfer")


class Starter:
    """A process that starts commands, one at a time; it ends with this one."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asks, self._hears = self._process.stdin, self._process.stdout

    def start(
        self, words: Sequence[str], *, folder: str, variables: Mapping[str, str], told: str
    ) -> int:
        """The process of a command that begins, in a session of its own."""
        command = {"words": words, "folder": folder, "variables": variables, "told": told}
        self._asks.write(f"{json.dumps(command)}\n")
        self._asks.flush()
        return int(self._hears.readline())

    def wait(self) -> tuple[int, int]:
        """The status of the command, and the most bytes that it or a child of it had."""
        status, kilobytes = self._hears.readline().split()
        return int(status), 1024 * int(kilobytes)


def serve(commands: IO[str]) -> None:
    for found in pkgutil.walk_packages(litesmith.__path__, "litesmith."):
        if found.name.split(".")[1] not in (*LATER, "__main__"):
            import_module(found.name)
    gc.freeze()
    for line in commands:
        child = os.fork()
        if child == 0:
            become(**json.loads(line))
        print(child, flush=True)
        _, ended, usage = os.wait4(child, 0)
        print(os.waitstatus_to_exitcode(ended), usage.ru_maxrss, flush=True)


def become(words: Sequence[str], folder: str, variables: Mapping[str, str], told: str) -> NoReturn:
    """Makes this double the command `litesmith`, as if it had been typed."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    nowhere, errors = os.open(os.devnull, os.O_RDWR), os.open(told, os.O_WRONLY | os.O_CREAT)
    for number, opened in enumerate((nowhere, nowhere, errors)):
        os.dup2(opened, number)
    os.close(nowhere)
    os.close(errors)
    sys.path[0] = folder
    sys.argv = ["litesmith", *words]
    import_module("litesmith.cli.main").main()
    raise AssertionError("the command did not exit")


if __name__ == "__main__":
    serve(sys.stdin)
