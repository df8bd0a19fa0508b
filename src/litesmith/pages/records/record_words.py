"""Records in words: every number with its interval."""

from collections.abc import Sequence

from litesmith.evidence.records import Score, Speed
from litesmith.phrases import Quantity, join, phrase
from litesmith.run.core.placement import ESTIMATED
from litesmith.timing import statistics
from litesmith.units import (
    bytes_text,
    factor_text,
    gain_text,
    number_text,
    score_text,
    time_interval_text,
    time_text,
    total_text,
)


def size_words(count: float | None) -> str:
    return "" if count is None else bytes_text(int(count))


def time_words(us: float | None) -> str:
    return "" if us is None else time_text(us)


def split_time(us: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """`11.3 ms` and `(11.2–11.4)`; the second is "" where it is not known."""
    if us is None or low is None or high is None:
        return time_words(us), ""
    words, _, ends = time_interval_text(us, low, high).partition(" (")
    return Quantity(words), f"({ends}"


def duration_words(seconds: float | None) -> str:
    """`42 s` or `5 min 12 s`."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return Quantity(f"{number_text(round(seconds, 1))} s")
    return Quantity(f"{minutes} min {rest} s" if rest else f"{minutes} min")


def score_words(score: Score | None) -> str:
    """`68.85 % [66.10, 71.42]`"""
    if score is None or score.value is None:
        return ""
    return score_text(score.value, score.unit, score.low, score.high)


def difference_words(score: Score | None) -> str:
    """`−0.30 pt [−1.10, +0.50]`, the paired difference from the float model."""
    paired = score.against if score else None
    if score is None or paired is None or paired.difference is None:
        return ""
    low, high = paired.difference_low, paired.difference_high
    if low is None or high is None:
        return gain_text(paired.difference, score.unit, 0.0, 0.0).split(" [")[0]
    return gain_text(paired.difference, score.unit, low, high)


def count_words(score: Score | None) -> str:
    return total_text(score.n) if score is not None and score.n else ""


def speed_words(speed: Speed | None) -> str:
    """A speed in words, as in `2.38 × faster [2.33, 2.44]`; an estimate is called one."""
    if speed is not None and speed.how == ESTIMATED:
        return phrase("estimated")
    words, interval = ("", "") if speed is None else faster_words(speed)
    return words if words == statistics.SAME else join(filter(None, (words, interval)), " ")


def faster_words(speed: Speed) -> tuple[str, str]:
    """`2.38 × faster` and `[2.33, 2.44]`; a difference inside the noise is not stated, nor is that
    of the float model from itself.
    """
    if speed.ratio is None or (speed.ratio == 1 and not speed.verdict):
        return "", ""
    ends = (speed.low, speed.high, speed.verdict)
    return statistics.speed_words(speed.ratio, *ends), statistics.speed_interval(*ends)


def smaller_words(before: float, after: float) -> str:
    """`3.95 × smaller`"""
    if round(before) == round(after):
        return phrase("same size")
    if after < before:
        return factor_text(before / after, phrase("smaller"))
    return factor_text(after / before, phrase("larger"))


def names_words(names: Sequence[str]) -> str:
    """A short list of names, as in `gpu, ethos-u55-64/128`: neighbours of one family are joined."""
    groups: list[str] = []
    for name in names:
        family, dash, member = name.rpartition("-")
        if groups and dash and member.isdecimal() and groups[-1].startswith(f"{family}-"):
            groups[-1] += f"/{member}"
        else:
            groups.append(name)
    return ", ".join(groups)


def split_interval(words: str) -> tuple[str, str]:
    """`68.85 %` and `[66.10, 71.42]`; the second is "" where there is none."""
    value, bracket, rest = words.partition(" [")
    return Quantity(value), Quantity(bracket.strip() + rest)
