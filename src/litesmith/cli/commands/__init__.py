"""Every command: what can be typed, what it is for, what prints its result.

change_commands.py  quantize, qat, prune, cluster, apply, export
find_commands.py    choose, retrain, catalogue, convert
keep_commands.py    gate, report, cache
look_commands.py    inspect, view, profile, bench, eval, compare, diff, targets
start_commands.py   demo, tune, doctor

The files are the groups that `litesmith --help` shows.

To add a command: a row here, a public function of the same name that does the work and takes the
same arguments, and a function in `cli/text` that prints what it gives.
"""

from litesmith.cli.commands.change_commands import APPLY, CLUSTER, EXPORT, PRUNE, QAT, QUANTIZE
from litesmith.cli.commands.find_commands import CATALOGUE, CHOOSE, CONVERT, RETRAIN
from litesmith.cli.commands.keep_commands import CACHE, GATE, REPORT
from litesmith.cli.commands.look_commands import (
    BENCH,
    COMPARE,
    DIFF,
    EVAL,
    INSPECT,
    PROFILE,
    TARGETS,
    VIEW,
)
from litesmith.cli.commands.start_commands import DEMO, DOCTOR, TUNE
from litesmith.cli.options.declare import Command

COMMANDS: dict[str, Command] = {
    "tune": TUNE,
    "choose": CHOOSE,
    "report": REPORT,
    "compare": COMPARE,
    "view": VIEW,
    "gate": GATE,
    "inspect": INSPECT,
    "bench": BENCH,
    "profile": PROFILE,
    "eval": EVAL,
    "doctor": DOCTOR,
    "targets": TARGETS,
    "catalogue": CATALOGUE,
    "apply": APPLY,
    "quantize": QUANTIZE,
    "prune": PRUNE,
    "cluster": CLUSTER,
    "qat": QAT,
    "retrain": RETRAIN,
    "convert": CONVERT,
    "export": EXPORT,
    "diff": DIFF,
    "demo": DEMO,
    "cache": CACHE,
}
