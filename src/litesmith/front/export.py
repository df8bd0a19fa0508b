"""`export`: a model as a C array with its resolver, planned for a microcontroller."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from litesmith.anatomy.source_file import Source, open_source
from litesmith.arguments import argument, check_types
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.ir.edit import drop_plan
from litesmith.micro.boards import find_room
from litesmith.micro.c_export import (
    array_pieces,
    c_name,
    header_text,
    resolver_methods,
    resolver_text,
)
from litesmith.micro.memory_report import MicroMemory, report_memory
from litesmith.micro.plan_file import PlannedModel, plan_model
from litesmith.pages.drawing.memory_plan import draw_memory
from litesmith.phrases import phrase
from litesmith.tflite.file import refuse_output, write_together
from litesmith.tflite.write import to_bytes
from litesmith.units import bytes_text, change_text

Json = dict[str, object]


@dataclass(frozen=True, repr=False)
class Exported:
    """A model on its way to a microcontroller.

    before  what the model took as it was given
    after   what it takes as it was written
    plan    the plan that was written with it
    files   what was written
    """

    before: MicroMemory
    after: MicroMemory
    plan: PlannedModel
    files: tuple[Path, ...]

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        was, now = self.before.device.needed, self.after.device.needed
        if was == now:
            return self.after.verdict
        how = phrase(
            "arena {was} to {now} ({change})",
            bytes_text(was),
            bytes_text(now),
            change_text(was, now),
        )
        return phrase("{verdict}; {how}", self.after.verdict, how)

    @property
    def is_as_asked(self) -> bool:
        return self.after.fits

    def to_rows(self) -> list[Mapping[str, object]]:
        return [
            {"model": one.name, "arena_bytes": one.device.needed, "flash_bytes": one.flash.total}
            for one in (self.before, self.after)
        ]

    def to_json(self) -> Json:
        return {
            "schema": 1,
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "overlap": self.plan.overlap,
            "reordered": self.plan.is_reordered,
            "files": [str(path) for path in self.files],
        }


@check_types
def export(
    model: Source,
    c: str | os.PathLike[str],
    *,
    fits: str | None = None,
    ram: int | str | None = None,
    flash: int | str | None = None,
    overlap: str = "none",
) -> Exported:
    """Writes a model as a C array and the op resolver that it needs, into a folder.

    >>> made = litesmith.export("int8.tflite", "firmware", ram="64K", flash="256K")
    >>> made.is_as_asked
    True

    Ops are put into the order that needs least memory, and a plan of the arena is proven and
    written into the file, where that takes less than TensorFlow Lite Micro's own: the answers stay
    the same bits. `overlap` "reference" also writes a layer's output over its input, which is safe
    with the reference kernels alone. `fits` is a board, `ram` and `flash` are sizes such as "256K".
    """
    source = open_source(model)
    room = find_room(fits, ram, flash)
    folder = Path(c)
    if folder.exists() and not folder.is_dir():
        raise BadInput("{c}: it is a file; give a folder", argument("c", str(c)))
    given = source.model
    methods = resolver_methods(given)
    planned = plan_model(given, overlap)
    content = to_bytes(planned.model)
    stem = c_name("model" if source.path is None else Path(source.path).stem)
    before = report_memory(source.name, drop_plan(given), source.bytes, room=room)
    after = report_memory(f"{stem}.tflite", planned.model, len(content), room=room)
    files = {
        folder / f"{stem}.tflite": [content],
        folder / f"{stem}.h": [header_text(stem, len(content), after.device).encode()],
        folder / f"{stem}.cc": array_pieces(stem, content),
        folder / f"{stem}_ops.h": [resolver_text(stem, methods).encode()],
        folder / f"{stem}_memory.svg": [draw_memory(after).encode()],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        refuse_output(path, *([] if source.path is None else [Path(source.path)]))
    write_together(files)
    return Exported(before, after, planned, tuple(files))
