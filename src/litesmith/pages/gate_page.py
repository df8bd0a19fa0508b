"""What a gate found, for a pull request (Markdown) and for CI (JUnit XML)."""

from xml.etree import ElementTree

from litesmith.lang.language import say
from litesmith.pages.drawing.markdown import code, escape_markdown, fold, paragraphs, table
from litesmith.phrases import phrase
from litesmith.regression.gate_checks import Check
from litesmith.regression.gate_rules import FINE, OFF, UNCLEAR, UNKNOWN, WORSE
from litesmith.regression.gate_run import Gated
from litesmith.units import plain

HEAD = ("", "baseline", "now", "change", "allowed", "verdict")

_SIGNS = {FINE: "✓", WORSE: "✕", UNCLEAR: "≈", UNKNOWN: "–", OFF: "–"}


def cells(check: Check) -> tuple[str, ...]:
    """A check as a row under HEAD."""
    return check.title, check.then, check.now, check.change, check.allowed, check.verdict


def gate_markdown(found: Gated) -> str:
    """A heading, a table, and why for what is not fine."""
    return paragraphs(
        f"### {_SIGNS[found.verdict]} {escape_markdown(found.sentence)}",
        table(HEAD, [_markdown_row(check) for check in found.checks]),
        "\n".join(_reason(check) for check in found.checks if check.why),
        _footer(found),
    )


def _markdown_row(check: Check) -> list[str]:
    *words, verdict = map(escape_markdown, map(plain, cells(check)))
    is_worse = check.verdict == WORSE
    return [*words, f"{_SIGNS[check.verdict]} {f'**{verdict}**' if is_worse else verdict}"]


def _reason(check: Check) -> str:
    told = f"- **{escape_markdown(plain(check.title))}**: {escape_markdown(plain(check.why))}"
    is_open = check.verdict in (WORSE, UNCLEAR)
    look = say(phrase("Look into it:"))
    return f"{told}. {look} {code(plain(check.command))}" if is_open else told


def _footer(found: Gated) -> str:
    machine = f"{found.host.get('cpu')}, {found.host.get('system')}, {found.host.get('runtime')}"
    lines = [
        phrase("model {model}, sha256 {digest}", found.model, found.digest),
        phrase("on {target} of {machine}", found.target, machine),
        phrase(
            "accuracy: paired on the same samples; latency: in turns with the baseline's own "
            "graph, so that a slower machine is no regression"
        ),
        *found.notes,
    ]
    return fold(
        "How it was measured", "\n".join(f"- {escape_markdown(plain(line))}" for line in lines)
    )


def gate_junit(found: Gated) -> str:
    """A test case a check: a failure where it is worse, skipped where it is not known for sure."""
    failed = [check for check in found.checks if is_failure(check, found.strict)]
    skipped = [c for c in found.checks if c.verdict != FINE and c not in failed]
    suite = ElementTree.Element(
        "testsuite",
        name="litesmith gate",
        tests=str(len(found.checks)),
        failures=str(len(failed)),
        errors="0",
        skipped=str(len(skipped)),
    )
    for check in found.checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(found.model), name=_xml(check.title)
        )
        if check in failed or check in skipped:
            told = f"{check.verdict}: {check.why}"
            inner = ElementTree.SubElement(case, "failure" if check in failed else "skipped")
            inner.set("message", _xml(told))
            inner.text = _xml("\n".join((told, check.command)))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def is_failure(check: Check, strict: bool) -> bool:
    """Strictly, what is not known for sure fails too."""
    return check.verdict == WORSE or (strict and check.verdict in (UNCLEAR, UNKNOWN))


def _xml(words: str) -> str:
    """What XML can hold: control characters it cannot, not even escaped."""
    return "\n".join(plain(line) for line in words.split("\n"))
