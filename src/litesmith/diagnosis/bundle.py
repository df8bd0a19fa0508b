"""A zip file that reproduces a problem and reveals nothing of the model but its structure."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from litesmith.anatomy.anonymous import anonymize
from litesmith.ir.check import check
from litesmith.ir.types import Model
from litesmith.profiling.op_times import Profile
from litesmith.run.core.target import Target
from litesmith.tflite.file import write_whole
from litesmith.tflite.write import to_bytes
from litesmith.timing.host import host
from litesmith.type_guards import is_list_or_tuple, is_mapping

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
    model: Model, profile: Profile | None, *, target: str, keep_custom_options: bool = False
) -> dict[str, bytes]:
    """The contents by name. Nothing in them comes from the model's names, weights or metadata."""
    kept = " --keep-custom-options" if keep_custom_options else ""
    command = f"litesmith doctor MODEL --on {target} --bundle OUT.zip{kept}\n"
    stripped = anonymize(model, keep_custom_options=keep_custom_options)
    check(stripped)
    files = {
        "README.txt": _READ_ME.encode(),
        "model.tflite": to_bytes(stripped),
        "host.json": _json(host().facts()),
        "command.txt": str(_rename_texts(command, _delegate_words(target))).encode(),
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


def _profile_facts(model: Model, stripped: Model, profile: Profile) -> object:
    """The profile under the names of the stripped model."""
    ops = [op for _, _, op in stripped.ops()]
    renamed = [
        {**row, "kind": op.label, "name": op.outputs[0].name if op.outputs else ""}
        for row, op in zip(profile.to_rows(), ops, strict=True)
    ]
    words = {old.custom: new.custom for (_, _, old), new in zip(model.ops(), ops, strict=True)}
    words |= _delegate_words(profile.target)
    return _rename_texts({"schema": 1, **profile.facts(), "ops": renamed}, words)


def _delegate_words(target: str) -> dict[str, str]:
    """The word that stands for a delegate of the user's own."""
    parsed = Target.parse(target)
    return {parsed.kernels: "NAME"} if parsed.kind == "custom" else {}


def _rename_texts(value_to_rename: object, words: Mapping[str, str]) -> object:
    """Replaces the names of custom ops and delegates in every text: the runtime uses them in its
    events.
    """
    if is_mapping(value_to_rename):
        return {name: _rename_texts(value, words) for name, value in value_to_rename.items()}
    if is_list_or_tuple(value_to_rename):
        return [_rename_texts(value, words) for value in value_to_rename]
    if isinstance(value_to_rename, str):
        for old in sorted(filter(None, words), key=len, reverse=True):
            value_to_rename = value_to_rename.replace(old, words[old])
    return value_to_rename


def _json(facts: object) -> bytes:
    return json.dumps(facts, indent=1).encode()
