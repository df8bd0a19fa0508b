"""The result of a gate: as a page, for a pull request (Markdown) and for CI (JUnit XML)."""

from pathlib import Path
from xml.etree import ElementTree

from litesmith._version import VERSION
from litesmith.evidence.folder import GATE
from litesmith.evidence.gate_record import CheckRow, GateSummary, UsedShare
from litesmith.evidence.tune_record import NextStep
from litesmith.lang.language import say
from litesmith.pages.drawing.bars import Bar, BarChart, BarRow, bar_chart
from litesmith.pages.drawing.markdown import (
    Markdown,
    code,
    escape_markdown,
    fold,
    paragraphs,
    table,
)
from litesmith.pages.drawing.markup import Html, bullets, join_html, table_html, tag
from litesmith.pages.drawing.page import Page, list_parts
from litesmith.pages.drawing.verdict_box import Verdict, next_html, verdict_html
from litesmith.pages.records.glance import Glance, machine_of
from litesmith.pages.records.salvage_folder import read_summary
from litesmith.pages.sections.about import machine, pairs, show_losses
from litesmith.phrases import phrase
from litesmith.regression.gate_checks import Check
from litesmith.regression.gate_rules import FINE, OFF, UNCLEAR, UNKNOWN, WORSE
from litesmith.regression.gate_run import Gated
from litesmith.units import plain

HEAD = ("", "baseline", "now", "change", "allowed", "verdict")

_SIGNS = {FINE: "✓", WORSE: "✕", UNCLEAR: "≈", UNKNOWN: "–", OFF: "–"}

# The ends of the bars, in shares of the allowance; values beyond them are stated in words.
_LEAST, _MOST = -1.0, 3.0

_VERDICTS = {
    FINE: (
        "proven",
        Verdict("✓", phrase("Within what is allowed"), ""),
    ),
    WORSE: (
        "missed",
        Verdict("✕", phrase("Worse than allowed"), ""),
    ),
    UNCLEAR: (
        "likely",
        Verdict(
            "≈",
            phrase("Not certain"),
            phrase("An estimate is beyond what is allowed, but chance may explain it."),
        ),
    ),
}
_NO_VERDICT = ("none", Verdict("–", phrase("No verdict"), ""))


def cells(check: Check | CheckRow) -> tuple[str, ...]:
    """A check as a row under HEAD."""
    return check.title, check.then, check.now, check.change, check.allowed, check.verdict


def gate_summary(found: Gated, command: str = "") -> GateSummary:
    """The result of a gate, for its folder."""
    return GateSummary(
        schema=1,
        version=VERSION,
        command=command,
        model=found.model,
        digest=found.digest,
        baseline=found.baseline,
        target=found.target,
        verdict=found.verdict,
        sentence=found.sentence,
        strict=found.strict,
        checks=tuple(map(_check_row, found.checks)),
        notes=found.notes,
        environment=dict(found.host),
    )


def _check_row(check: Check) -> CheckRow:
    return CheckRow(
        quantity=check.quantity,
        title=check.title,
        verdict=check.verdict,
        allowed=check.allowed,
        then=check.then,
        now=check.now,
        change=check.change,
        why=check.why,
        command=check.command,
        share=None if check.used is None else UsedShare(*check.used),
    )


def gate_page(folder: Path) -> Page:
    """The page of a folder that `gate -o` wrote."""
    record, losses = read_summary(GateSummary, folder / GATE)
    parts = list_parts(
        ("verdict", phrase("Verdict"), _verdict(record)),
        ("checks", phrase("Every check"), _checks(record)),
        ("about", phrase("How it was measured"), _about(record)),
        ("losses", phrase("What could not be read"), show_losses(losses)),
    )
    outcome = gate_verdict(record)[1].title
    return Page(Path(record.model).name, outcome, record.version, parts)


def gate_verdict(record: GateSummary) -> tuple[str, Verdict]:
    """The verdict, and how it is drawn."""
    return _VERDICTS.get(record.verdict, _NO_VERDICT)


def _verdict(record: GateSummary) -> Html:
    kind, shown = gate_verdict(record)
    open_ones = [check for check in record.checks if check.verdict in (WORSE, UNCLEAR)]
    steps = [
        NextStep(check.command, phrase("looks into {what}", check.title))
        for check in open_ones
        if check.command
    ]
    return verdict_html(kind, shown, record.sentence, None, next_html(steps))


def _checks(record: GateSummary) -> Html | None:
    if not record.checks:
        return None
    titles = tuple(phrase(title) if title else phrase("quantity") for title in HEAD)
    rows = [_html_row(check, titles) for check in record.checks]
    hint = phrase(
        "How much of its allowance each change uses: past the dotted line a quantity is "
        "worse than allowed, left of zero it got better. Thin lines are 95 % intervals; "
        "bars too long for the chart end at its edge."
    )
    chart = bar_chart(gate_chart(record))
    return join_html(
        tag("p", hint, class_="hint") if chart else None,
        chart,
        tag("div", table_html(titles, rows, "targets cards", scope="col"), class_="scroll"),
    )


def gate_chart(record: GateSummary) -> BarChart:
    """The share of its allowance that each quantity uses."""
    rows = tuple(
        BarRow(check.title, (_bar(check, check.share),)) for check in record.checks if check.share
    )
    axis = phrase("share of what is allowed, %")
    return BarChart("", axis, rows, size=0.01, limit=(1.0, phrase("allowed")))


_KINDS = {FINE: "own", WORSE: "bad"}


def _bar(check: CheckRow, share: UsedShare) -> Bar:
    value, low, high = (
        min(max(end, _LEAST), _MOST) for end in (share.used, share.used_low, share.used_high)
    )
    facts = (
        phrase("{then} → {now}", check.then, check.now),
        check.change,
        phrase("allowed: {allowed}", check.allowed),
    )
    return Bar(value, _sign_words(check), _KINDS.get(check.verdict, ""), low, high, facts)


def _sign_words(check: CheckRow) -> str:
    sign = _SIGNS.get(check.verdict, "")
    return phrase("{sign} {status}", sign, phrase(check.verdict)) if sign else check.verdict


def _html_row(check: CheckRow, titles: tuple[str, ...]) -> Html:
    name, *words, _ = cells(check)
    classes = {FINE: "fits", WORSE: "misses"}
    return tag(
        "tr",
        tag("th", name, scope="row"),
        *(
            tag("td", one, class_="number", data_label=title)
            for title, one in zip(titles[1:], words, strict=False)
        ),
        tag(
            "td",
            tag("p", _sign_words(check)),
            tag("p", check.why, class_="hint") if check.why else None,
            class_="why",
        ),
        class_=classes.get(check.verdict),
    )


def _about(record: GateSummary) -> Html:
    facts = [
        (phrase("baseline"), record.baseline),
        (phrase("target"), record.target),
        (phrase("SHA-256 of the model"), record.digest),
    ]
    return join_html(
        tag("p", _HOW, class_="hint"),
        bullets(record.notes),
        tag("pre", tag("code", record.command)) if record.command else None,
        pairs([*facts, *machine(record.environment)]),
    )


_HOW = phrase(
    "accuracy: paired on the same samples; latency: in turns with the baseline's own "
    "graph, so that a slower machine is no regression"
)


def gate_folder_markdown(folder: Path, stem: str) -> Markdown:
    """The report for a pull request, without pictures."""
    record, _ = read_summary(GateSummary, folder / GATE)
    return Markdown(_markdown(record))


def gate_markdown(found: Gated) -> str:
    """A heading, a table, and the reason for each check that is not fine."""
    return _markdown(gate_summary(found))


def _markdown(record: GateSummary) -> str:
    sign = _SIGNS.get(record.verdict, "–")
    return paragraphs(
        f"### {sign} {escape_markdown(record.sentence)}",
        table(HEAD, [_markdown_row(check) for check in record.checks]),
        "\n".join(_reason(check) for check in record.checks if check.why),
        _footer(record),
    )


def _markdown_row(check: CheckRow) -> list[str]:
    *words, verdict = map(escape_markdown, map(plain, cells(check)))
    is_worse, sign = check.verdict == WORSE, _SIGNS.get(check.verdict, "–")
    return [*words, f"{sign} {f'**{verdict}**' if is_worse else verdict}"]


def _reason(check: CheckRow) -> str:
    reason = f"- **{escape_markdown(plain(check.title))}**: {escape_markdown(plain(check.why))}"
    is_open = check.verdict in (WORSE, UNCLEAR)
    look = say(phrase("Look into it:"))
    return f"{reason}. {look} {code(plain(check.command))}" if is_open else reason


def _footer(record: GateSummary) -> str:
    host = record.environment
    machine = f"{host.get('cpu')}, {host.get('system')}, {host.get('runtime')}"
    lines = [
        phrase("model {model}, sha256 {digest}", record.model, record.digest),
        phrase("on {target} of {machine}", record.target, machine),
        _HOW,
        *record.notes,
    ]
    return fold(
        "How it was measured", "\n".join(f"- {escape_markdown(plain(line))}" for line in lines)
    )


def gate_junit(found: Gated) -> str:
    """A test case for each check: failed where it is worse, skipped where it is uncertain."""
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
            message = f"{check.verdict}: {check.why}"
            inner = ElementTree.SubElement(case, "failure" if check in failed else "skipped")
            inner.set("message", _xml(message))
            inner.text = _xml("\n".join((message, check.command)))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def is_failure(check: Check, strict: bool) -> bool:
    """True where a check failed; with `strict`, also where it is uncertain."""
    return check.verdict == WORSE or (strict and check.verdict in (UNCLEAR, UNKNOWN))


def _xml(words: str) -> str:
    """Removes the control characters that XML cannot hold, even escaped."""
    return "\n".join(plain(line) for line in words.split("\n"))


def gate_glance(folder: Path) -> Glance:
    """A gate beside other runs."""
    record, _ = read_summary(GateSummary, folder / GATE)
    kind, shown = gate_verdict(record)
    return Glance(
        command="gate",
        model=Path(record.model).name,
        kind=kind,
        verdict=shown.title,
        headline=record.sentence,
        target=record.target,
        score=next((one.change for one in record.checks if one.quantity == "accuracy"), ""),
        version=record.version,
        machine=machine_of(record.environment),
    )
