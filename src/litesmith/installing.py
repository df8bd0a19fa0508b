"""How the user adds an extra: the command that fits how the package itself was installed."""

import json
import os
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

_PACKAGE = "litesmith"


def install_command(extra: str, prefix: str = sys.prefix) -> str:
    """The command line that brings an extra of the package, ready to be copied."""
    wanted = f"{_PACKAGE}[{extra}]"
    parts = Path(prefix).parts
    if "pipx" in parts:
        return f"pipx install --force {_quote(wanted)}"
    if _is_inside(parts, "uv", "tools"):
        return f"uv tool install {_quote(wanted)}"
    if "uv" in parts:  # a folder of its cache, which `uvx` runs from
        return f"uvx --from {_quote(wanted)} {_PACKAGE}"
    folder = _source_folder()
    if folder is not None:
        return f"pip install -e {_quote(f'{folder}[{extra}]')}"
    return f"pip install {_quote(wanted)}"


def _is_inside(parts: tuple[str, ...], first: str, second: str) -> bool:
    return (first, second) in pairwise(parts)


def _source_folder() -> Path | None:
    """The checkout that an editable installation is of."""
    try:
        told = distribution(_PACKAGE).read_text("direct_url.json")
        read = json.loads(told or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return None
    if not read.get("dir_info", {}).get("editable"):
        return None
    return Path(url2pathname(urlparse(str(read["url"])).path))


def _quote(text: str) -> str:
    """Brackets are patterns to many shells."""
    return f'"{text}"' if os.name == "nt" else shlex.quote(text)
