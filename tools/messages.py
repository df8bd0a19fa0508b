"""Keeps the package's messages for translators, as gettext catalogues in `locale/`.

    python tools/messages.py            updates the catalogues from the source, and compiles them
    python tools/messages.py compile    only compiles the files that the package reads

A message is the literal that a phrase, an error or a printing function is called with; Babel finds
it by the name of the called function. `locale/foreign.txt` lists messages of other programs that
users meet: those of the command line's parser and of the operating system.
"""

import ast
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from string import Formatter

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
SOURCE, LOCALE = ROOT / "src" / "litesmith", ROOT / "locale"
COMPILED = SOURCE / "lang" / "locale"
FOREIGN = LOCALE / "foreign.txt"
LANGUAGES = ("es", "pt", "zh")

# Functions whose first argument is a message.
FIRST = (
    "phrase",
    "BadInput",
    "BadModel",
    "CannotApply",
    "CannotRun",
    "NotWritten",
    "Unsupported",
    "fold",
    "heading",
    "line",
    "say",
)
# Functions whose arguments are all messages; and those whose first argument is a name instead.
ALL = ("add_row", "escape_markdown", "join_html", "paragraphs", "table", "Table")
AFTER_A_NAME = ("tag",)
# Keyword arguments that are messages in every call.
NAMED = ("help", "aria_label", "data_label", "data_tip", "title", "show_default")

_HEADER = 'msgid ""\nmsgstr ""\n"Language: {}\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n\n'

Found = tuple[int, None, str, list[str]]


def literals_of(
    file: BytesIO, keywords: object, comment_tags: object, options: object
) -> Iterator[Found]:
    """Finds the messages of a source file, in the form that Babel asks for: (line, no name,
    message, no comments)."""
    for node in ast.walk(ast.parse(file.read())):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            for value in _spoken(node, called):
                if isinstance(value, ast.Constant) and _is_said(value.value):
                    yield value.lineno, None, value.value, []


def _spoken(call: ast.Call, called: str) -> Iterator[ast.expr]:
    """The arguments of a call that people read; for a choice or a tuple, all of its parts."""
    count = 1 if called in FIRST else len(call.args) if called in (*ALL, *AFTER_A_NAME) else 0
    waiting = list(call.args[1 if called in AFTER_A_NAME else 0 : count])
    waiting += [given.value for given in call.keywords if given.arg in NAMED]
    for value in waiting:
        if isinstance(value, ast.IfExp):
            waiting += [value.body, value.orelse]
        if isinstance(value, ast.Tuple):
            waiting += value.elts
        yield value


def _is_said(text: object) -> bool:
    """True for a text that contains a word besides its values."""
    if not isinstance(text, str):
        return False
    try:
        outside = [literal for literal, *_ in Formatter().parse(text)]
    except ValueError:  # braces that are no fields, in a text without values
        outside = [text]
    return any(map(str.isalpha, "".join(outside)))


def extract() -> Catalog:
    """Every message of the source, and those of other programs."""
    catalog = Catalog(charset="utf-8", fuzzy=False)
    found = extract_from_dir(SOURCE, [("**.py", literals_of)], keywords={}, comment_tags=())
    for name, _, message, _, _ in found:
        catalog.add(message, locations=[(name, 0)])
    for line in FOREIGN.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            forms = tuple(line.split(" | "))
            message = forms if len(forms) > 1 else line
            catalog.add(message, locations=[(FOREIGN.name, 0)])
    return catalog


def read_catalogue(language: str) -> Catalog:
    """The catalogue of a language, as it is kept."""
    path = LOCALE / f"{language}.po"
    if not path.is_file():
        return Catalog(locale=language)
    with path.open("rb") as file:
        return read_po(file, locale=language)


def translations(language: str) -> Iterator[tuple[str, str]]:
    """Every message of a catalogue with its translation, "" without one; plurals one by one."""
    for one in read_catalogue(language):
        if one.id:
            yield from zip(_forms(one.id), _forms(one.string or ""), strict=False)


def ids(catalog: Catalog) -> Iterator[str]:
    """Every message of a catalogue; plurals one by one."""
    return (form for one in catalog if one.id for form in _forms(one.id))


def _forms(text: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def update(language: str, messages: Catalog) -> None:
    """Brings a catalogue up to the source: new messages are added without a translation, obsolete
    ones removed."""
    known = {one.id: one.string for one in read_catalogue(language) if one.id and not one.fuzzy}
    made = Catalog(locale=language, charset="utf-8")
    for message in messages:
        if message.id:
            made.add(message.id, known.get(message.id, ""), locations=message.locations)
    written = BytesIO(_HEADER.format(language).encode())
    written.seek(0, 2)
    write_po(written, made, sort_by_file=True, omit_header=True, include_lineno=False, width=100)
    (LOCALE / f"{language}.po").write_bytes(written.getvalue())


def compile_all() -> None:
    """Writes the files that the package reads at run time."""
    for language in LANGUAGES:
        place = COMPILED / language / "LC_MESSAGES" / "litesmith.mo"
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            write_mo(file, read_catalogue(language))


def main() -> None:
    if sys.argv[1:] != ["compile"]:
        messages = extract()
        for language in LANGUAGES:
            update(language, messages)
            left = sum(not translated for _, translated in translations(language))
            print(f"{language}: {left} of {len(messages)} messages have no translation yet")
    compile_all()


if __name__ == "__main__":
    main()
