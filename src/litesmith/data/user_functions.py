"""The user's functions: found by the name `module:function`, and called for samples."""

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from litesmith.data.readers import foreign_failure
from litesmith.errors import BadInput
from litesmith.type_guards import is_iterable, is_mapping
from litesmith.units import plain

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from litesmith.ir.types import Array


def users_function(name: str) -> Callable[..., object]:
    """The function that `module:function` names, found from the current folder."""
    module_name, _, function = name.partition(":")
    if not module_name or module_name.startswith("."):
        raise BadInput(
            "{name}: no module {module_name!r}; say module:function",
            plain(name),
            plain(module_name),
        )
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise BadInput(
                "{name}: no module {module_name!r} ({error})",
                plain(name),
                plain(module_name),
                error,
            ) from None
        raise foreign_failure(plain(name), error) from error
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise foreign_failure(plain(name), error) from error
    found = getattr(module, function, None)
    if not callable(found):
        raise BadInput(
            "{name}: module {module_name} has no function {function!r}",
            plain(name),
            module_name,
            plain(function),
        )
    return found


def call_function(function: Callable[[], object], name: str) -> Iterable[object]:
    """Calls a user's function for its samples."""
    try:
        given = function()
    except Exception as error:
        raise foreign_failure(name, error) from error
    if _is_array(given):
        return [given]
    if is_mapping(given) or not is_iterable(given):
        raise BadInput(
            "{name}: gives {name2}; it must give samples one by one", name, type(given).__name__
        )
    return given


def _is_array(value: object) -> "TypeIs[Array]":
    return isinstance(value, np.ndarray)
