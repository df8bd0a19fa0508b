"""The messages of the package for its translators: found in the source, kept as gettext files.

    python tools/messages.py extract    the template, from the source
    python tools/messages.py update     the catalogues, from the template
    python tools/messages.py compile    what is read at run time, from the catalogues
    python tools/messages.py            all three

A message is an English sentence with names in braces where values are filled in. Sentences are not
marked in the source: what is a sentence for people, `tools/prose.py` tells.
"""

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from litesmith.lang.template import NUMBER_NAMES

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).resolve().parent))

from prose import messages_of  # noqa: E402

SOURCE = ROOT / "src" / "litesmith"
TEMPLATE = SOURCE / "lang" / "litesmith.pot"
LANGUAGES = ("es", "pt", "zh")

# Layers with nothing to read in them: the schema, machine code.
_SILENT = ("schema.py", "native/emit_llvm.py", "lang/book.py", "lang/numbers.py")

# Texts that programs read, or that files keep, by how they begin: the same in every language.
_FOR_PROGRAMS = {
    "networks/build_network.py": ("padded as in",),
    "cli/commands/bench.py": ("Inference timings in us",),
    "ir/build.py": ("made with litesmith",),
    "diagnosis/bundle.py": ("A model whose time",),
    "calibration/context.py": ("random {count}",),
    "data/sample_splits.py": ("all but one", "{digest}"),
    "accuracy/sharded.py": ("answers {keys}",),
    "data/sample_shipping.py": ("data {token}",),
    "timing/threads.py": ("import os",),
    "ops/native.py": ("Failed in", "There are"),
    "pages/overlay.py": ("sum", "avg"),
    "run/accelerators/openvino.py": ("No translator found",),
    "run/accelerators/vela.py": ("Vela: {",),
    "tflite/describe.py": ("one class a line", "of each class"),
}


def extracted() -> Catalog:
    """The template, from the source; messages that differ in names alone, or in the first letter's
    case, are one."""
    catalog = Catalog(project="litesmith", charset="utf-8", fuzzy=False, header_comment="")
    found = list(_found())
    kept: dict[str, str] = {}
    for _, message in found:
        kept.setdefault(_shape(message), message)
    for name, message in found:
        catalog.add(kept[_shape(message)], locations=[(name, 0)])
    return catalog


def _shape(message: str) -> str:
    """What is alike in messages that are one: numbers stay numbers, other values are anything."""
    same = re.sub(r"\{(\w+?)\d*\}", lambda m: "{#}" if m[1] in NUMBER_NAMES else "{}", message)
    return same if same.startswith("{") else same[:1].lower() + same[1:]


def _found() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(_SILENT):
            silent = _FOR_PROGRAMS.get(name, ())
            for message in messages_of(path.read_text(encoding="utf-8"), name):
                if not message.startswith(silent):
                    yield name, message
    foreign = ROOT / "tools" / "foreign.txt"
    for line in foreign.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield "tools/foreign.txt", line


def catalogue(language: str) -> Path:
    return SOURCE / "lang" / "locale" / language / "LC_MESSAGES" / "litesmith.po"


def template_bytes(catalog: Catalog) -> bytes:
    """As it is kept: sorted by file, and with nothing in it that changes by itself."""
    written = BytesIO()
    write_po(written, catalog, sort_by_file=True, omit_header=True, include_lineno=False, width=100)
    return written.getvalue()


def translated(language: str, template: Catalog) -> Catalog:
    """The catalogue of a language, brought up to the template; what is gone is left out."""
    path = catalogue(language)
    if path.is_file():
        with path.open("rb") as file:
            found = read_po(file, locale=language)
    else:
        found = Catalog(locale=language)
    known = {message.id: message.string for message in found if message.id and not message.fuzzy}
    made = Catalog(locale=language, charset="utf-8")
    for message in template:
        if message.id:
            made.add(message.id, known.get(message.id, ""), locations=message.locations)
    return made


def compiled_bytes(catalog: Catalog) -> bytes:
    catalog.creation_date = catalog.revision_date = datetime(
        2026, 1, 1, tzinfo=UTC
    )  # the same bytes
    written = BytesIO()
    write_mo(written, catalog)
    return written.getvalue()


_HEADER = 'msgid ""\nmsgstr ""\n"Language: {}\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n\n'


def catalogue_bytes(language: str, catalog: Catalog) -> bytes:
    return _HEADER.format(language).encode() + template_bytes(catalog)


def extract() -> None:
    TEMPLATE.write_bytes(template_bytes(extracted()))


def update() -> None:
    with TEMPLATE.open("rb") as file:
        template = read_po(file)
    for language in LANGUAGES:
        path = catalogue(language)
        made = catalogue_bytes(language, translated(language, template))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made)


def compile_all() -> None:
    for language in LANGUAGES:
        path = catalogue(language)
        path.with_suffix(".mo").write_bytes(compiled(language))


def catalogue_of(language: str) -> Catalog:
    """The catalogue of a language, as it is kept."""
    with catalogue(language).open("rb") as file:
        return read_po(file, locale=language)


def compiled(language: str) -> bytes:
    """What is read at run time, from the catalogue."""
    return compiled_bytes(catalogue_of(language))


COMMANDS = {"extract": extract, "update": update, "compile": compile_all}


def main() -> None:
    for name in sys.argv[1:] or COMMANDS:
        if name not in COMMANDS:
            sys.exit(f"{name}: not one of {', '.join(COMMANDS)}")
        COMMANDS[name]()


if __name__ == "__main__":
    main()
