"""A zip file with which another person can reproduce a problem, and which reveals nothing of the
model but its structure."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from litesmith.anatomy.anonymous import anonymous
from litesmith.ir.check import check
from litesmith.ir.types import Model
from litesmith.profiling.op_times import Profile
from litesmith.tflite.file import write_whole
from litesmith.tflite.write import to_bytes
from litesmith.timing.host import host

_EPOCH = (1980, 1, 1, 0, 0, 0)  # a zip file needs a date; the same one gives the same bytes

_READ_ME = """\
A model whose time is in question, made by `litesmith doctor --bundle`.

model.tflite   the same ops, shapes, types and scales; the constants are random numbers in the
               range of the original ones; names are numbers, those of custom ops too; integer
               settings are as they were
profile.json   the time of every op where the problem was seen
host.json      the machine and the versions
command.txt    what was run

To see the same: pip install litesmith, then litesmith profile model.tflite
"""


def bundle_files(
    model: Model, profile: Profile | None, *, command: str, keep_custom_options: bool = False
) -> dict[str, bytes]:
    """The contents by name. Nothing in them comes from the model's names, weights or metadata."""
    stripped = anonymous(model, keep_custom_options=keep_custom_options)
    check(stripped)
    files = {
        "README.txt": _READ_ME.encode(),
        "model.tflite": to_bytes(stripped),
        "host.json": _json(host().facts()),
        "command.txt": f"{command}\n".encode(),
    }
    if profile is not None:
        files["profile.json"] = _json(_profile_facts(model, stripped, profile))
    return files


def write_bundle(path: Path, files: Mapping[str, bytes]) -> None:
    """Writes the zip file whole or not at all."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    write_whole(path, [packed.getbuffer()])


def _profile_facts(model: Model, stripped: Model, profile: Profile) -> dict[str, object]:
    """The profile under the names of the stripped model."""
    ops = [op for _, _, op in stripped.ops()]
    renamed = [
        {**row, "kind": op.label, "name": op.outputs[0].name if op.outputs else ""}
        for row, op in zip(profile.to_rows(), ops, strict=True)
    ]
    customs = {old.custom: new.custom for (_, _, old), new in zip(model.ops(), ops, strict=True)}
    rest = [{**asdict(one), "tag": _renamed(one.tag, customs)} for one in profile.unmatched]
    return {"schema": 1, **profile.facts(), "ops": renamed, "unmatched": rest}


def _renamed(tag: str, customs: Mapping[str, str]) -> str:
    """The runtime's name for some work, without the names of custom ops."""
    for old in sorted(filter(None, customs), key=len, reverse=True):
        tag = tag.replace(old, customs[old])
    return tag


def _json(facts: Mapping[str, object]) -> bytes:
    return json.dumps(facts, indent=1).encode()
