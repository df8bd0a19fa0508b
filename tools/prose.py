"""Which strings of a source are sentences for people, and what templates they are made from.

An f-string is a template with a name for each value. Where a value is one of a few strings that
are no sentences by themselves (`{'s' if count != 1 else ''}`, `, partly float`), each of them gives
a template of its own, so that a translator sees whole sentences.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import NamedTuple

from litesmith.lang.book import PLAIN
from litesmith.lang.template import NUMBER_NAMES, trimmed

Form = tuple[str | tuple[str], ...]  # literal texts, and values as a tuple with their name

# So many templates of one expression are told apart; of more, values stay values.
_MOST_FORMS = 16

_WORD = re.compile(r"(?<!\w)[A-Za-z][A-Za-z'’-]*(?!\w)")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What is never read by a person: arguments of these, by the name of what is called.
_MUTE_CALLS = _words(
    "Annotated Option Argument compile fullmatch search sub match split partition "
    "rpartition startswith endswith replace removeprefix removesuffix strip rstrip lstrip "
    "encode decode getattr hasattr setattr isinstance import_module files joinpath "
    "with_name with_suffix einsum TypeVar NewType namedtuple dumps loads translate "
    "maketrans strftime Path glob rglob cast run Popen find_library AssertionError "
    "NotImplementedError _Stopped Literal command exec eval getenv tag_name field bytes_of "
    "open"
)
_MUTE_KEYWORDS = _words(
    "help metavar class_ id style href role metadata epilog name key kind mode encoding "
    "pattern viewBox transform points text_anchor dtype target"
)
# What is said by these is read, even a single word.
_SPEAKING_CALLS = _words(
    "heading line table add_row add_column say tag joined Part Section Tile Verdict Column "
    "Finding Label Skip Row picture folded pairs figures Graph Axis Metric"
)
_NUMBERS = {
    "bytes_text": "bytes",
    "count_text": "amount",
    "time_text": "time",
    "percent_text": "percent",
    "total_text": "total",
    "number_text": "number",
    "rate_text": "rate",
    "score_text": "score",
    "gain_text": "gain",
    "spread_text": "score",
    "error_text": "error",
    "energy_text": "energy",
    "size_words": "bytes",
    "time_words": "time",
    "duration_words": "duration",
    "len": "n",
    "sum": "n",
    "round": "n",
    "int": "n",
}
_THROUGH = _words("plain str quote repr sorted set list tuple escaped code cast map")


@dataclass(frozen=True)
class _Scope:
    """What the names of a function stand for, and what the functions of the module return.

    inlined  texts that stand in the templates of others, and are no messages by themselves
    known    the values of each function that was looked into
    """

    values: dict[str, list[ast.expr]]
    functions: dict[str, list[ast.expr]]
    constants: dict[str, str]
    inlined: set[ast.expr]
    known: dict[ast.AST, dict[str, list[ast.expr]]] = field(
        default_factory=dict[ast.AST, dict[str, list[ast.expr]]]
    )

    def of(self, node: ast.AST) -> "_Scope":
        """The scope inside a function."""
        if node not in self.known:
            self.known[node] = _assigned(node)
        return replace(self, values=self.known[node])


def messages_of(source: str, name: str) -> list[str]:
    """Every message of a file, once, in the order in which they stand there."""
    tree = ast.parse(source)
    scope = _Scope({}, _returns(tree), _constants(tree), set())
    layer = name.split("/")[0]
    for _ in _walk(tree, scope, speaking=False, layer=layer):
        pass  # what stands in other templates is known after all of them were seen
    found = dict.fromkeys(_walk(tree, scope, speaking=False, layer=layer))
    return [message for message in found if message]


def _returns(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """What each function of a module returns."""
    found: dict[str, list[ast.expr]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            own = [n for n in _inside(node) if isinstance(n, ast.Return)]
            found[node.name] = [n.value for n in own if n.value is not None]
    return found


def _constants(tree: ast.Module) -> dict[str, str]:
    """Sentences, and parts of them, that have a name in the module."""
    return {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and " " in node.value.value
    }


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """All that is in a function, without the functions in it."""
    waiting = _children(node)
    while waiting:
        child = waiting.pop()
        yield child
        waiting += _children(child)


def _children(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that are no functions, the last first."""
    apart = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, apart)][::-1]


def _assigned(node: ast.AST) -> dict[str, list[ast.expr]]:
    """What is assigned to the names of a function; a name that is also changed otherwise is out."""
    found: dict[str, list[ast.expr]] = {}
    out: set[str] = set()
    for one in _inside(node):
        if isinstance(one, ast.Assign) and len(one.targets) == 1:
            target = one.targets[0]
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(one.value)
            else:
                out |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        elif isinstance(one, ast.AugAssign | ast.For | ast.comprehension):
            out |= {n.id for n in ast.walk(one.target) if isinstance(n, ast.Name)}
    if isinstance(node, ast.FunctionDef):
        out |= {arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)}
    return {name: values for name, values in found.items() if name not in out}


def _walk(node: ast.AST, scope: _Scope, *, speaking: bool, layer: str) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        scope = scope.of(node)
        for part in (*node.args.defaults, *node.body):
            yield from _walk(part, scope, speaking=False, layer=layer)
        return
    if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.Compare | ast.AnnAssign):
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _walk(node.value, scope, speaking=speaking, layer=layer)
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Call):
        yield from _walk_call(node, scope, speaking=speaking, layer=layer)
        return
    if isinstance(node, ast.Subscript):
        yield from _walk(node.value, scope, speaking=speaking, layer=layer)
        return
    if isinstance(node, ast.Dict):
        aloud = speaking or layer == "report"
        for value in (v for v in node.values):
            yield from _walk(value, scope, speaking=aloud, layer=layer)
        return
    if _is_text(node):
        yield from _text_messages(node, scope, speaking=speaking, layer=layer)
        return
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, scope, speaking=speaking, layer=layer)


def _walk_call(node: ast.Call, scope: _Scope, *, speaking: bool, layer: str) -> Iterator[str]:
    called = _called(node)
    if isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Constant) and called == "join":
            speaking = False
        else:
            yield from _walk(node.func.value, scope, speaking=speaking, layer=layer)
    is_copy = called == "replace" and isinstance(node.func, ast.Name)  # of a dataclass
    if (called in _MUTE_CALLS and not is_copy) or called in ("get", "pop", "setdefault"):
        for part in node.args[1:] if called == "get" else ():
            yield from _walk(part, scope, speaking=speaking, layer=layer)
        return
    aloud = called in _SPEAKING_CALLS
    for place, part in enumerate(node.args):
        if called in ("tag", "Part", "Section", "Column") and place == 0:
            continue
        yield from _walk(part, scope, speaking=aloud, layer=layer)
    for keyword in node.keywords:
        if keyword.arg not in _MUTE_KEYWORDS:
            aloud = keyword.arg in ("aria_label", "title", "what", "why", "fix")
            yield from _walk(keyword.value, scope, speaking=aloud, layer=layer)


def _called(node: ast.Call) -> str:
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _text_messages(node: ast.AST, scope: _Scope, *, speaking: bool, layer: str) -> Iterator[str]:
    assert isinstance(node, ast.expr)
    forms = _forms(node, scope, depth=0) or []
    said = [form for form in forms if node not in scope.inlined and _is_said(form, speaking)]
    for form in said:
        yield _message(form)
    for value in _values(node):
        yield from _walk(value, scope, speaking=bool(said), layer=layer)


def _values(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.JoinedStr):
        yield from (n.value for n in node.values if isinstance(n, ast.FormattedValue))
    elif isinstance(node, ast.BinOp):
        for side in (node.left, node.right):
            yield from _values(side) if _is_text(side) else (side,)


def _forms(node: ast.expr, scope: _Scope, depth: int) -> list[Form] | None:
    """Every template that an expression may give; None where it is no text that is known."""
    if depth > 6:
        return None
    if isinstance(node, ast.Constant):
        return [_constant_form(node.value)] if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return _product([_part_forms(part, scope, depth) for part in node.values], scope)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_side_forms(side, scope, depth) for side in (node.left, node.right)]
        return _product(sides, scope) if _is_text(node) else None
    choices = _choices(node, scope)
    if choices is None:
        return None
    found = [_forms(choice, scope, depth + 1) for choice in choices]
    return None if None in found else [form for forms in found if forms for form in forms]


def _constant_form(text: str) -> Form:
    """A text, in which `{name}` is filled in later."""
    parts = re.split(r"\{([a-z_]+)\}", text)
    return tuple((part,) if place % 2 else part for place, part in enumerate(parts))


def _choices(node: ast.expr, scope: _Scope) -> Sequence[ast.expr] | None:
    """The expressions of which one is taken."""
    if isinstance(node, ast.IfExp):
        return node.body, node.orelse
    if isinstance(node, ast.Name):
        return scope.values.get(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return scope.functions.get(node.func.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        of = node.func.value
        if isinstance(of, ast.Dict) and node.func.attr == "get" and len(node.args) == 2:
            return *of.values, node.args[1]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
        return node.value.values
    return None


class _Part(NamedTuple):
    """What may stand at one place of a template; `value` where that is inlined."""

    forms: list[Form]
    value: ast.expr | None = None


def _side_forms(node: ast.expr, scope: _Scope, depth: int) -> _Part:
    forms = _forms(node, scope, depth)
    return _Part(forms, node) if forms else _Part([((_name_of(node),),)])


def _part_forms(part: ast.expr, scope: _Scope, depth: int) -> _Part:
    if isinstance(part, ast.Constant):
        return _Part([(str(part.value),)])
    assert isinstance(part, ast.FormattedValue)
    spec = part.format_spec
    if isinstance(part.value, ast.Name) and part.value.id in scope.constants:
        return _Part([_constant_form(scope.constants[part.value.id])])
    if spec is None and part.conversion == -1:
        forms = _forms(part.value, scope, depth + 1)
        if forms is not None and any(_is_fragment(form) for form in forms):
            return _Part(forms, part.value)
    return _Part([((_name_of(part.value, is_number=_is_number_spec(spec)),),)])


def _is_number_spec(spec: ast.expr | None) -> bool:
    texts = [n.value for n in ast.walk(spec) if isinstance(n, ast.Constant)] if spec else []
    return any(re.search(r"[,dfge]$", str(text)) for text in texts)


# Words that only agree with others: which of them, a translator must see in the sentence.
_SMALL_WORDS = _words(
    "is are was were has have do does it they its their it's this these s es stays stay"
)


def _is_fragment(form: Form) -> bool:
    """True of a text that is no sentence or word by itself."""
    if not form or form == ("",):
        return True
    if len(form) == 1 and isinstance(form[0], str) and set(form[0].split()) <= _SMALL_WORDS:
        return True
    first, last = form[0], form[-1]
    starts = isinstance(first, str) and re.match(r"[\s,;:.)(]|s$|es$|'s", first)
    return bool(starts or (isinstance(last, str) and last[-1:].isspace()))


def _product(parts: Sequence[_Part], scope: _Scope) -> list[Form]:
    """Every combination; where there are too many, the places with most stay values."""
    kept = list(parts)
    while prod(len(part.forms) for part in kept) > _MOST_FORMS:
        most = max(range(len(kept)), key=lambda place: len(kept[place].forms))
        value = kept[most].value
        kept[most] = _Part([((_name_of(value) if value else "text",),)])
    for part in kept:
        if part.value is not None:
            _inline(part.value, scope, depth=0)
    made = product(*(part.forms for part in kept))
    return [tuple(one for form in forms for one in form) for forms in made]


def _inline(node: ast.expr, scope: _Scope, depth: int) -> None:
    scope.inlined.add(node)
    if depth < 6:
        for choice in _choices(node, scope) or ():
            _inline(choice, scope, depth + 1)


def _name_of(node: ast.expr, *, is_number: bool = False) -> str:
    if is_number or _is_sum(node):
        return "n"
    name = _raw_name(node).strip("_").lower() or "text"
    if isinstance(node, ast.Call) and _called(node) in _NUMBERS:
        return _NUMBERS[_called(node)]
    return f"{name}_text" if name in NUMBER_NAMES else name


def _is_sum(node: ast.expr) -> bool:
    """True of arithmetic with a count in it."""
    if not isinstance(node, ast.BinOp) or isinstance(node.op, ast.Mod):
        return False
    sides = (node.left, node.right)
    return any(
        (isinstance(side, ast.Constant) and isinstance(side.value, int | float))
        or (isinstance(side, ast.Call) and _called(side) == "len")
        for side in sides
    )


def _raw_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        return _call_name(node)
    if isinstance(node, ast.Subscript):
        key = node.slice
        if isinstance(key, ast.Constant) and str(key.value).isidentifier():
            return str(key.value)
        return _raw_name(node.value)
    if isinstance(node, ast.IfExp):
        return _raw_name(node.body) or _raw_name(node.orelse)
    if isinstance(node, ast.BoolOp):
        return _raw_name(node.values[0])
    if isinstance(node, ast.BinOp):
        return _raw_name(node.left) or _raw_name(node.right)
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
        return _raw_name(node.elt) or _raw_name(node.generators[0].iter)
    if isinstance(node, ast.UnaryOp | ast.Starred | ast.NamedExpr):
        return _raw_name(node.operand if isinstance(node, ast.UnaryOp) else node.value)
    return ""


def _call_name(node: ast.Call) -> str:
    called = _called(node)
    if called in _THROUGH or called == "join":
        inner = node.args[-1] if called == "map" and node.args else (node.args or [None])[0]
        return _raw_name(inner) if inner is not None else called
    if isinstance(node.func, ast.Attribute):
        own = called in ("get", "strip", "rstrip", "lower", "upper", "capitalize", "replace")
        if called == "get" and node.args and isinstance(node.args[0], ast.Constant):
            return str(node.args[0].value)
        return _raw_name(node.func.value) if own else called
    return called.removesuffix("_text").removesuffix("_words")


# Words for programs: styles, anchors, names of tables; commands of other programs; sources.
_MUTE_WORDS = _words(
    "bold dim red green cyan yellow white black start middle end ls rs ms left right center "
    "Python Litesmith LiteRT litesmith"
)
_MUTE_TEXT = re.compile(
    r"(litesmith|pip|python|git|test|adb|cat|chmod|mkdir|mv|rm|def|import|perfetto|kill)"
    r" [-a-z\0'\"]"
    r"|--[a-z-]+ \0+$|.*(</|<!|; echo|et al\.|\$\(|&&)"
    r"|.*\{[a-z-]+:|\w+Options$|[\w.-]+\.\w+$|bold |.*\bNone$"
)
_MOST_LETTERS = 600  # longer is a page of help


def _is_said(form: Form, speaking: bool) -> bool:
    """True of a text with words for people, not for programs."""
    text = " ".join("".join(p if isinstance(p, str) else "\0" for p in form).split())
    if len(text) > _MOST_LETTERS or text.startswith("litesmith: ") or text == "\0 to \0":
        return False
    words = [word for word in _WORD.findall(text) if len(word) > 1 and word not in _MUTE_WORDS]
    small = [word for word in words if word.islower() or word[1:].islower()]
    plain = sum(word.lower() in PLAIN for word in small)
    is_prose = plain > 0 or (text.endswith("?") and len(small) > 2)
    if _MUTE_TEXT.match(text) and plain < 2:
        return False
    if not small or (len(small) < 5 and _looks_coded(text)) or (" | " in text and not is_prose):
        return False
    if speaking:
        return True
    has_values = "\0" in text and (max(map(len, small)) > 2 or text.endswith("\0"))
    return " " in trimmed(text) and (has_values or (is_prose and len(small) > 1))


def _looks_coded(text: str) -> bool:
    return bool(re.search(r"[a-z]_[a-z]|==|\{|%[0-9.]*[sdl]|[a-z]\([a-z\0]|=\0", text))


def _message(form: Form) -> str:
    """The template as a translator sees it; values of one name are numbered."""
    parts = [
        part
        for place, part in enumerate(form)
        if part and (isinstance(part, str) or place == 0 or isinstance(form[place - 1], str))
    ]  # of values side by side nobody could tell where the first ends: they are one
    names = [part[0] for part in parts if not isinstance(part, str)]
    seen: dict[str, int] = {}
    shown: list[str] = []
    for part in parts:
        if isinstance(part, str):
            shown.append(part.replace("{", "{{").replace("}", "}}"))
            continue
        (name,) = part
        seen[name] = seen.get(name, 0) + 1
        number = str(seen[name]) if names.count(name) > 1 else ""
        shown.append(f"{{{name}{number}}}")
    return _purpose(trimmed(" ".join("".join(shown).split())))


def _purpose(text: str) -> str:
    """Of a command with its purpose behind it, the purpose: commands are not translated."""
    return text.partition(": ")[2] if re.match(r"litesmith [^:]*: ", text) else text
