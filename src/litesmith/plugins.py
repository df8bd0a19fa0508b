"""Rooms that can be taken away, one row each: nothing else names them.

A room of the table may be deleted, folder and all, and the rest goes on without it. What the rest
asks of a room is a Protocol beside the code that asks: `run.litert.own_kernels`, `workers.engine`,
`known_networks`. The room's own `plug.py` holds the object that keeps to it, as `PLUG`.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple

from litesmith.phrases import phrase


class Row(NamedTuple):
    """One room.

    room     its folder
    missing  what is said where the room is not installed
    """

    room: str
    missing: str


PLUGINS = {
    "catalogue": Row("networks", phrase("this installation has no catalogue of networks")),
    "kernels": Row("kernels", phrase("this installation has no kernels of its own")),
    "ray": Row("ray_engine", phrase("this installation has no Ray engine")),
}


def find_plugin(name: str) -> ModuleType | None:
    """The module of a room that holds its `PLUG`; None where the room is not installed."""
    module = f"litesmith.{PLUGINS[name].room}.plug"
    return import_module(module) if _is_installed(module) else None


def why_missing(name: str) -> str:
    """Why a room cannot be asked for anything; "" where it is installed."""
    row = PLUGINS[name]
    return "" if _is_installed(f"litesmith.{row.room}.plug") else row.missing


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the folder is not there
        return False
