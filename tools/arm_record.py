"""A plugin of pytest that `tools/arm` runs with: each test is on record as soon as it ends.

A part can be stopped, or crash, at any test: what ended is known, what ran then too, and the next
run begins behind it.
"""

import json
import os
from pathlib import Path

import pytest

RECORD = Path(os.environ["LITESMITH_ARM_RECORD"])  # a line for each fact
DONE = Path(os.environ["LITESMITH_ARM_DONE"])  # names of tests that are not run again


def _tell(**facts: object) -> None:
    with RECORD.open("a") as file:
        file.write(json.dumps(facts) + "\n")


def _file(name: str) -> str:
    return name.partition("::")[0]


def _why(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a skip, the last line of a failure."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail)  # pyright: ignore[reportAttributeAccessIssue]
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr)[:2000]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if not report.passed and report.nodeid:
        _tell(test=report.nodeid, outcome=report.outcome, why=_why(report), seconds=0)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # By now `-m` and the rest have chosen: these are the tests that a file has here.
    names = [item.nodeid for item in items]
    for file in dict.fromkeys(map(_file, names)):
        _tell(file=file, tests=[name for name in names if _file(name) == file])
    done = set(DONE.read_text().splitlines()) if DONE.exists() else set[str]()
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell(test=nodeid, outcome="began")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """One line for what a test did, and one more where what follows it fails."""
    if report.when == "call" or not report.passed:
        seconds = round(report.duration, 1)
        _tell(test=report.nodeid, outcome=report.outcome, why=_why(report), seconds=seconds)
