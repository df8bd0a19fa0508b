"""The pytest plugin of `recorded_suite.py`: it records each test when it begins and when it ends.

So a run can be stopped, or crash, in any test: the record says which tests have ended and which
one was running, and the next run goes on from there.
"""

import json
import os
from pathlib import Path

import pytest

# One line of JSON for each fact. The file stays open, since tests replace what opens files.
RECORD = os.open(os.environ["LITESMITH_RECORD"], os.O_WRONLY | os.O_APPEND)
DONE = Path(os.environ["LITESMITH_DONE"])  # the names of tests to leave out, one in a line


def _tell(**facts: object) -> None:
    os.write(RECORD, f"{json.dumps(facts)}\n".encode())


def _file(name: str) -> str:
    return name.partition("::")[0]


def _why(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a skip, or the message of a failure."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail)  # pyright: ignore[reportAttributeAccessIssue]
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr or "")[:2000]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if not report.passed and report.nodeid:
        _tell(test=report.nodeid, outcome=report.outcome, why=_why(report), seconds=0)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # This hook runs last, after `-m` has deselected tests: the rest are the tests of each file.
    names = [item.nodeid for item in items]
    for file in dict.fromkeys(map(_file, names)):
        _tell(file=file, tests=[name for name in names if _file(name) == file])
    done = set(DONE.read_text().splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_sessionfinish() -> None:
    """Records that no test was left out since the process died: its status may not tell."""
    _tell(session="ended")


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell(test=nodeid, outcome="began")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Records how the test itself ended, and a failure or a skip of its fixtures."""
    if report.when == "call" or not report.passed:
        seconds = round(report.duration, 1)
        _tell(test=report.nodeid, outcome=report.outcome, why=_why(report), seconds=seconds)
