"""How the user adds an extra: the command that fits how the package itself was installed."""

import json
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from litesmith.operating_system import quote
from litesmith.type_guards import is_mapping

_PACKAGE = "litesmith"


def install_command(extra: str, prefix: str = sys.prefix) -> str:
    """The command line that brings an extra of the package, ready to be copied."""
    parts = Path(prefix).parts
    wanted = wanted_package(_read_origin(), extra)
    if "pipx" in parts:
        return f"pipx install --force {_quote(wanted)}"
    if _is_inside(parts, "uv", "tools"):
        return f"uv tool install {_quote(wanted)}"
    if "uv" in parts:  # a folder of its cache, which `uvx` runs from
        return f"uvx --from {_quote(wanted)} {_PACKAGE}"
    return f"{_pip(prefix)} install {_quote(wanted)}"


def wanted_package(origin: Mapping[str, object], extra: str) -> str:
    """The package with an extra, from where it came: a checkout, a repository, or the index."""
    url, vcs, folder = (origin.get(key) for key in ("url", "vcs_info", "dir_info"))
    if not isinstance(url, str):
        return f"{_PACKAGE}[{extra}]"
    if is_mapping(vcs):
        return f"{_PACKAGE}[{extra}] @ {vcs.get('vcs')}+{url}"
    if not url.startswith("file:"):
        return f"{_PACKAGE}[{extra}] @ {url}"
    place = f"{url2pathname(urlparse(url).path)}[{extra}]"
    return f"-e {place}" if is_mapping(folder) and folder.get("editable") else place


def _pip(prefix: str) -> str:
    """The pip of this environment, which need not be the one that the shell finds."""
    found = shutil.which("pip")
    if found is not None and Path(found).is_relative_to(prefix):
        return "pip"
    if find_spec("pip") is None and shutil.which("uv") is not None:
        return f"uv pip --python {_quote(sys.executable)}"
    return f"{_quote(sys.executable)} -m pip"


def _is_inside(parts: tuple[str, ...], first: str, second: str) -> bool:
    return (first, second) in pairwise(parts)


def _read_origin() -> Mapping[str, object]:
    """What the installer noted about where the package came from; nothing for an index."""
    try:
        told = distribution(_PACKAGE).read_text("direct_url.json")
        read: object = json.loads(told or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return {}
    return {str(key): value for key, value in read.items()} if is_mapping(read) else {}


def _quote(text: str) -> str:
    """Brackets are patterns to many shells."""
    option, _, place = text.rpartition("-e ")
    quoted = quote(place)
    return f"-e {quoted}" if option or text.startswith("-e ") else quoted
