"""The sections of the page, in their order."""

from collections.abc import Callable
from typing import NamedTuple

from litesmith.pages.drawing.markup import Html
from litesmith.pages.records.tune_record import Record
from litesmith.pages.sections.about import data, environment, path, reproduce, threads
from litesmith.pages.sections.accelerators import accelerators
from litesmith.pages.sections.inside_models import layer_errors, op_times
from litesmith.pages.sections.trial_table import trade_offs, trials
from litesmith.pages.sections.tune_verdict import verdict


class Section(NamedTuple):
    """A part of the page; its function gives None where there is nothing to show."""

    name: str
    title: str
    show: Callable[[Record], Html | None]


SECTIONS = (
    Section("verdict", "Verdict", verdict),
    Section("trade-offs", "What each model costs", trade_offs),
    Section("trials", "Every model that was tried", trials),
    Section("accelerators", "Accelerators", accelerators),
    Section("ops", "Where the time goes", op_times),
    Section("layers", "Where the error comes from", layer_errors),
    Section("path", "How it was decided", path),
    Section("threads", "Threads", threads),
    Section("data", "Data", data),
    Section("environment", "Environment", environment),
    Section("reproduce", "How to reproduce it", reproduce),
)
