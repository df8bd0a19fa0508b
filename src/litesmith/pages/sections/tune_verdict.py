"""The top of the page: what to ship, what it gains, and how to run it."""

from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tune_record import TunedModel
from litesmith.pages.drawing.markup import Html, code_facts, join_html, tag
from litesmith.pages.drawing.verdict_box import (
    Tile,
    Verdict,
    asked_html,
    changed_verdict,
    next_html,
    run_line,
    tiles_html,
    verdict_html,
)
from litesmith.pages.records.record_words import (
    difference_words,
    faster_words,
    score_words,
    size_words,
    smaller_words,
    split_interval,
    time_words,
)
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.phrases import join, phrase
from litesmith.run.core.placement import ESTIMATED
from litesmith.search.trial.target_place import describe_left
from litesmith.units import score_text

VERDICTS = {
    "proven": Verdict(
        "✓",
        phrase("Proven"),
        phrase(
            "On samples that the search did not use, the whole interval of the difference is "
            "inside the budget."
        ),
    ),
    "likely": Verdict(
        "≈",
        phrase("Likely"),
        phrase(
            "On samples that the search did not use, the estimate is inside the budget; its "
            "interval reaches beyond. More samples would decide."
        ),
    ),
    "unclear": Verdict(
        "≈",
        phrase("Unclear: the machine was busy"),
        phrase(
            "Other programs kept the processor busy, so the times do not tell whether the "
            "file is faster. Close them and run the same command again: it measures the "
            "times anew."
        ),
    ),
    "keep": Verdict(
        "=",
        phrase("Keep yours"),
        phrase("Nothing that was tried is better than the model as it came, beyond the noise."),
    ),
    "missed": Verdict(
        "✕", phrase("Missed"), phrase("Nothing that was tried is within what was asked.")
    ),
}
_NO_VERDICT = {
    "running": Verdict("…", phrase("Still running"), phrase("This is what there is so far.")),
    "stopped": Verdict(
        "…", phrase("Stopped"), phrase("The search was stopped; this is what there is so far.")
    ),
}
_UNKNOWN = Verdict("–", phrase("No verdict"), phrase("The search ended without one."))


def verdict_of(record: TuneFolder) -> Verdict:
    summary = record.summary
    if record.changed:
        return changed_verdict(record.changed)
    return VERDICTS.get(summary.verdict or "") or _NO_VERDICT.get(summary.state, _UNKNOWN)


def tiles(record: TuneFolder) -> tuple[Tile, ...]:
    """The gains of the best model, or of the nearest miss, over the float one."""
    best, first = record.summary.chosen, record.summary.first
    if best is None:
        return ()
    found = (
        _speed_tile(best.latency),
        _score_tile(best.accuracy, _scored_on(best)),
        _size_tile(phrase("File"), first and first.bytes, best.bytes),
        _size_tile(phrase("Download (gzip)"), first and first.gzip_bytes, best.gzip_bytes),
        _size_tile(phrase("Peak memory"), first and first.peak_bytes, best.peak_bytes),
        _size_tile(phrase("Arena"), first and first.ram_bytes, best.ram_bytes),
        _size_tile(phrase("Flash"), first and first.flash_bytes, best.flash_bytes),
    )
    return tuple(tile for tile in found if tile is not None)


def _scored_on(best: TunedModel) -> str:
    """The kernels that computed the scores, where these are not the target's; all CPU targets share
    their kernels.
    """
    kinds = {target.partition(":")[0] for target in (best.scored_on, best.target) if target}
    return best.scored_on if best.scored_on and len(kinds) > 1 else ""


def _speed_tile(speed: Speed | None) -> Tile | None:
    if speed is None or (speed.p50_us is None and speed.ratio is None):
        return None
    if speed.how == ESTIMATED:
        where = phrase("by the compiler for {target}; nothing ran there", speed.target)
        return Tile(phrase("Latency, estimated"), time_words(speed.p50_us), "", where)
    gain, interval = faster_words(speed)
    times = join([time_words(us) for us in (speed.float_us, speed.p50_us) if us], " → ")
    on = phrase("{times} on {target}", times, speed.target) if speed.target else times
    return Tile(phrase("Latency"), gain or time_words(speed.p50_us), interval, on)


def _score_tile(score: Score | None, scored_on: str) -> Tile | None:
    if score is None:
        return None
    gain, interval = split_interval(difference_words(score) or score_words(score))
    after = score_text(score.known_value, score.unit)
    known = score.reference is not None and score.difference is not None
    before = phrase("{score} → ", score_text(score.reference or 0.0, score.unit)) if known else ""
    samples = phrase(", {samples}", score.held_out_text) if score.n else ""
    samples += phrase(" by the kernels of {scored_on}", scored_on) if scored_on else ""
    return Tile(phrase(score.title), gain, interval, join((before, after, samples), ""))


def _size_tile(title: str, before: int | None, after: int | None) -> Tile | None:
    if not after:
        return None
    if not before:
        return Tile(title, size_words(after), "", "")
    change = join((size_words(before), size_words(after)), " → ")
    return Tile(title, smaller_words(before, after), "", change)


# verdict -> the headline; numbers stand below it, once
_HEADLINES = {
    "proven": phrase("Ship {name}"),
    "likely": phrase("Ship {name}, or measure on more samples first"),
    "unclear": phrase("Measure {name} again before it is shipped"),
    "keep": phrase("Keep the model as it came"),
    "missed": phrase("Nothing to ship"),
}


def headline(record: TuneFolder) -> str:
    """What to do, in a few words without numbers."""
    summary = record.summary
    if record.changed:
        return ""
    words = _HEADLINES.get(summary.verdict or "")
    if words is None or ("{name}" in words and summary.best is None):
        return summary.sentence
    return phrase(words, record.shown) if "{name}" in words else words


def verdict(record: TuneFolder) -> Html:
    """The verdict with its reasons."""
    summary, words = record.summary, asked_words(record)
    left = describe_left(summary.best.placed) if summary.best else ""
    untried = phrase("Not tried for lack of time: {names}.", ", ".join(summary.untried))
    return verdict_html(
        "missed" if record.changed else summary.verdict if summary.verdict in VERDICTS else "none",
        verdict_of(record),
        headline(record),
        join_html(
            tag("p", left, class_="asked") if left else None,
            asked_html(words, summary.seconds) if words else None,
            tag("p", untried, class_="asked") if summary.untried else None,
        ),
        _nearest(record),
        tiles_html(tiles(record)),
        _ship(summary.best) if summary.best and not record.changed else None,
        next_html(summary.next),
    )


def asked_words(record: TuneFolder) -> str:
    """The user's request in one line."""
    request = record.summary.request
    parts = (
        phrase("least {minimize}", phrase(request.minimize)) if request.minimize else "",
        request.budget,
        *request.limits,
        phrase("on {targets}", ", ".join(request.targets)) if request.targets else "",
    )
    return join([phrase(part) for part in parts if part], "; ")


def _ship(best: TunedModel) -> Html:
    is_compiled = best.target.startswith("ethos-")
    verb = phrase("Compile it with") if is_compiled else phrase("Run it with")
    rows = (
        (phrase("Ship"), best.file),
        (verb, run_line(best.file, best.target)),
        (phrase("Made by"), best.recipe),
    )
    return code_facts(rows)


def _nearest(record: TuneFolder) -> Html | None:
    nearest = record.summary.nearest
    if record.summary.best is not None or nearest is None:
        return None
    return tag(
        "p",
        phrase("Nearest, but no better than yours: {name}", nearest.name)
        if record.summary.verdict == "keep"
        else phrase("Nearest, but not within what was asked: {name}", nearest.name),
        class_="nearest",
    )
