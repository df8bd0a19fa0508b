"""Functions of the user's, by the name `module:function`."""

import importlib
import os
import sys
from collections.abc import Callable

from litesmith.data.readers import foreign_failure
from litesmith.errors import BadInput
from litesmith.units import plain


def users_function(name: str) -> Callable[..., object]:
    """The function that `module:function` names, as seen from the current folder."""
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
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises is not ours
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
