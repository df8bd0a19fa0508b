"""The sections of the page, in their order."""

from collections.abc import Callable
from typing import NamedTuple

from litesmith.pages.drawing.markup import Html
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.pages.sections.about import data, environment, losses, path, reproduce, threads
from litesmith.pages.sections.accelerators import accelerators
from litesmith.pages.sections.inside_models import layer_errors, op_times
from litesmith.pages.sections.trial_table import trade_offs, trials
from litesmith.pages.sections.tune_verdict import verdict
from litesmith.phrases import phrase


class Section(NamedTuple):
    """A part of the page; its function gives None where there is nothing to show."""

    name: str
    title: str
    show: Callable[[TuneFolder], Html | None]


SECTIONS = (
    Section("verdict", phrase("Verdict"), verdict),
    Section("trade-offs", phrase("What each model costs"), trade_offs),
    Section("trials", phrase("Every model that was tried"), trials),
    Section("accelerators", phrase("Accelerators"), accelerators),
    Section("ops", phrase("Where the time goes"), op_times),
    Section("layers", phrase("Where the error comes from"), layer_errors),
    Section("path", phrase("How it was decided"), path),
    Section("threads", phrase("Threads"), threads),
    Section("data", phrase("Data"), data),
    Section("environment", phrase("Environment"), environment),
    Section("reproduce", phrase("How to reproduce it"), reproduce),
    Section("losses", phrase("What could not be read"), losses),
)
