"""Every test asserts something, whatever happens in it; nothing of ours is replaced in one."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import LONGEST

ROOT = Path(__file__).parent


@cache
def trees() -> dict[str, ast.Module]:
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(ROOT.rglob("*.py"))
    }


def test_no_error_is_passed_over() -> None:
    """An `except` that leaves has looked at the error, or hands on what came of it."""
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and _leaves(node.body[-1]) and not _asserts(node)
    ]
    assert found == []


def test_every_test_asserts_something() -> None:
    found = [f"{path}: {test.name}" for path, test in _tests() if not _judges() & _named(test)]
    assert found == []


def test_no_test_ends_before_it_asserts() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, test in _tests()
        for node in _own_nodes(test)
        if isinstance(node, ast.Return) and node.lineno < _first_assertion(test)
    ]
    assert found == []


def test_the_longest_have_names_of_files() -> None:
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []


def test_nothing_of_ours_is_replaced() -> None:
    """A duration, a limit, a place is an argument. Only what is not ours may be played: a full
    disk, another platform, a terminal, an absent package."""
    found: list[str] = []
    for path, tree in trees().items():
        ours = {"litesmith", "tests", *_imported_of_ours(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("patch.setattr"):
                target = ast.unparse(node.args[0]).strip("'\"")
                found += [f"{path}: {target}"] * (target.partition(".")[0] in ours)
    assert found == []


def _leaves(last: ast.stmt) -> bool:
    if isinstance(last, ast.Return):
        return last.value is None or ast.unparse(last.value) == "None"
    return isinstance(last, ast.Pass | ast.Continue | ast.Break)


def _asserts(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Assert) for inner in ast.walk(node))


def _imported_of_ours(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            ours = node.module.partition(".")[0] in ("litesmith", "tests")
            yield from (alias.asname or alias.name for alias in node.names if ours)


def _tests() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield path, node


def _own_nodes(test: ast.FunctionDef) -> Iterator[ast.AST]:
    """What lies in a function and in no other inside it."""
    left: list[ast.AST] = [*test.body]
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)


def _first_assertion(test: ast.FunctionDef) -> int:
    """The line of it."""
    return min(
        node.lineno
        for node in ast.walk(test)
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and _judges() & _named(node))
    )


def _named(node: ast.AST) -> set[str]:
    """The functions that are called, and `assert` where there is one."""
    found = {"assert"} if _asserts(node) else set[str]()
    return found | {ast.unparse(c.func) for c in ast.walk(node) if isinstance(c, ast.Call)}


@cache
def _judges() -> set[str]:
    """What asserts, and the functions of the tests that call it."""
    functions: dict[str, set[str]] = {}
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("test_"):
                functions.setdefault(node.name, set()).update(_named(node))
    found = {"assert", "pytest.raises", "pytest.warns"}
    found |= {f"np.testing.assert_{what}" for what in ("allclose", "array_equal", "equal")}
    while more := {name for name, called in functions.items() if called & found} - found:
        found |= more
    return found
