"""Devices beside this machine, as an address: `ssh://pi@kitchen/cpu:4`, `adb://SERIAL/cpu:4`."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from litesmith.errors import BadInput, CannotRun
from litesmith.phrases import Phrase, phrase
from litesmith.run.core.target import Target
from litesmith.units import total_text


class Transport(NamedTuple):
    """How a device is reached: what an address may say of it."""

    host: str  # a pattern with the groups user, host and port
    example: str
    targets: frozenset[tuple[str, str]]  # kinds and kernels that its programs have
    program: str  # the word of an address that names the program which runs models there
    default: str  # that program where none is named


_USER = r"(?:(?P<user>[A-Za-z0-9_.][A-Za-z0-9_.-]*)@)?"
_HOST = r"(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.%a-z]+\])"
_SERIAL = r"(?P<user>)(?P<host>[A-Za-z0-9_\[][A-Za-z0-9_.:\[\]-]*)(?P<port>)"

TRANSPORTS = {
    "adb": Transport(
        _SERIAL,
        "adb://R58M12ABCDE/cpu:4",
        frozenset({("cpu", "xnnpack"), ("cpu", "builtin"), ("gpu", "xnnpack")}),
        "benchmark_model",
        "/data/local/tmp/benchmark_model",
    ),
    "ssh": Transport(
        rf"{_USER}{_HOST}(?::(?P<port>[0-9]{{1,5}}))?",
        "ssh://pi@raspberrypi.local/cpu:4",
        frozenset({("cpu", "xnnpack"), ("cpu", "builtin"), ("cpu", "reference")}),
        "python",
        "python3",
    ),
}


class Lost(CannotRun):
    """A device that is gone.

    samples  the µs of each model so far, in the order of opening
    digests  of these models
    """

    def __init__(
        self,
        message: str,
        samples: tuple[tuple[float, ...], ...],
        digests: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.samples, self.digests = samples, digests


@dataclass(frozen=True)
class Address:
    """A device and a target on it."""

    transport: str
    host: str  # the serial number where the transport is adb
    target: Target
    user: str = ""
    port: int | None = None
    program: str = ""  # what runs models there; "" stands for the default

    def __str__(self) -> str:
        named = (
            phrase("?{program}={program2}", TRANSPORTS[self.transport].program, self.program)
            if self.program
            else ""
        )
        return f"{self.device}/{self.target}{named}"

    @property
    def threads(self) -> int:
        return self.target.threads

    @property
    def device(self) -> str:
        """The address without the target: equal for two targets of one device."""
        user = phrase("{user}@", self.user) if self.user else ""
        port = "" if self.port is None else phrase(":{port}", self.port)
        return f"{self.transport}://{user}{self.host}{port}"


def is_address(text: str) -> bool:
    """True for a text that names a device, right or wrong, rather than a target of this machine."""
    return "://" in text


def parse(text: str) -> Address:
    """The address that a text stands for.

    >>> parse("ssh://pi@kitchen:2222/cpu:4").port
    2222
    """
    name, _, rest = text.strip().partition("://")
    if name not in TRANSPORTS:
        known = " and ".join(row.example for row in TRANSPORTS.values())
        raise BadInput("no device {what!r}; devices are written like {known}", text, known)
    transport = TRANSPORTS[name]
    place, slash, target_text = rest.partition("/")
    if not slash or not target_text:
        raise BadInput(
            "device {what!r}: no target after it; write it like {example}", text, transport.example
        )
    found = re.fullmatch(transport.host, place)
    if found is None:
        secret = (
            phrase("; a password has no place here, use a key") if re.search(":.*@", place) else ""
        )
        raise BadInput(
            "device {what!r}: {place!r} names no device{secret}; write it like {example}",
            text,
            place,
            secret,
            transport.example,
        )
    target_text, _, query = target_text.partition("?")
    target = _target(text, target_text, transport)
    program = _program(text, query, transport)
    return Address(
        name, found["host"], target, found["user"] or "", _port(text, found["port"]), program
    )


def _target(text: str, target_text: str, transport: Transport) -> Target:
    try:
        target = Target.parse(target_text)
    except BadInput as error:
        raise BadInput("device {what!r}: {error}", text, error) from None
    if (target.kind, target.kernels) not in transport.targets:
        known = sorted(
            "gpu" if kind == "gpu" else f"cpu:THREADS:{kernels}"
            for kind, kernels in transport.targets
        )
        raise BadInput(
            "device {what!r}: no target {target!r} there; use {known}",
            text,
            target_text,
            ", ".join(known),
        )
    return target


def _port(text: str, port: str | None) -> int | None:
    if not port:
        return None
    if not 1 <= int(port) <= 65_535:
        raise BadInput("device {what!r}: no port {port}; ports go from 1 to 65535", text, port)
    return int(port)


def _program(text: str, query: str, transport: Transport) -> str:
    if not query:
        return ""
    key, _, path = query.partition("=")
    if key != transport.program or not re.fullmatch(r"[\w./~+@-]+", path) or path[0] in "-@+":
        raise BadInput(
            "device {what!r}: after '?' comes {program}=PATH, a path of letters, digits and "
            "_./~+@-",
            text,
            transport.program,
        )
    return path


def after_runs(count: int) -> Phrase:
    """The time at which a connection was lost, in runs."""
    return phrase("after 1 run") if count == 1 else phrase("after {count} runs", total_text(count))
