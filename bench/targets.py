"""What `litesmith targets` and `litesmith bench --on all` promise, on real models.

* `targets` in under 3 s; every row says whether the target is usable and why.
* `bench MODEL --on all`: every target is measured, estimated, predicted or refused with a reason;
  the table is all there is on stdout, stderr has at most remarks, the JSON form can be read.
* Vela puts vww int8 on the Ethos-U55 wholly, by its own count of ops too.
* OpenVINO is within 1e-3 of the CPU on float models; its time is from one interleaved run.
* The rules say of each op what Vela, OpenVINO and the GPU really do with it.
* OpenVINO computes every case of every op as LiteRT does, or is said to refuse it.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

from report import print_table, verdict_line
from stock import arguments, model_files

import litesmith
from litesmith.diagnosis.all_targets import COMPILED
from litesmith.run.accelerators.targets import BY_NAME, DELEGATES
from litesmith.run.core.placement import ESTIMATED, MEASURED, PREDICTED
from litesmith.units import ratio_text, time_text
from tests.run.accelerators.test_openvino import verdicts_on_one_op_models

Rows = list[tuple[str, ...]]

MOST_SECONDS, NEAR = 3.0, 1e-3
MODELS = ("vww_96_float", "vww_96_int8", "mobilenet_v1_1.0_224", "deeplabv3", "basic_pitch")
KNOWN = (MEASURED, ESTIMATED, PREDICTED, "refused")
WHOLE = ("vww_96_int8", "ethos-u55-128")


def said(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "litesmith", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def listed() -> tuple[Rows, list[str]]:
    """The best of three calls: the machine may have other work."""
    seconds: list[float] = []
    for _ in range(3):
        start = perf_counter()
        shown = said("targets", "--json")
        seconds.append(perf_counter() - start)
    targets = json.loads(shown.stdout)["targets"]
    missed = [
        f"targets: {row['name']} has no reason"
        for row in targets
        if not row["why"] or bool(row["how"]) is row["usable"]
    ]
    if min(seconds) > MOST_SECONDS:
        missed.append(f"targets: took {time_text(min(seconds) * 1e6)}")
    usable = sum(row["usable"] for row in targets)
    return [(f"{len(targets)} targets, {usable} usable", time_text(min(seconds) * 1e6))], missed


def remarks(text: str) -> list[str]:
    """The lines on stderr, except warnings about the machine, and progress."""
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return [line for line in lines if not line.startswith("litesmith: ")]


def benched(path: Path, seconds: float) -> tuple[Rows, list[str]]:
    """One model on all targets, as a table and as JSON."""
    words = ("bench", str(path), "--on", "all", "--seconds", str(seconds))
    table, shown = said(*words), said(*words, "--json")
    for done in (table, shown):
        if done.returncode:
            (*_, cause) = ("", *done.stderr.strip().splitlines())
            return [], [f"{path.stem}: exit status {done.returncode}: {cause}"]
    missed: list[str] = []
    targets: list[dict[str, Any]] = json.loads(shown.stdout)["targets"]
    missed += [f"{path.stem}: stderr: {line}" for line in remarks(table.stderr + shown.stderr)]
    missed += [
        f"{path.stem}: {row['target']} is missing in the table"
        for row in targets
        if row["target"] not in table.stdout
    ]
    missed += [f"{path.stem}: {line}" for row in targets for line in faults(path.stem, row)]
    return [line(path.stem, row) for row in targets if row["latency_us"] is not None], missed


def faults(model: str, row: dict[str, Any]) -> list[str]:
    """The problems with a row of `bench --on all`."""
    found: list[str] = []
    if row["how"] not in KNOWN or (row["how"] == "refused" and not row["why"]):
        found.append(f"{row['target']} is {row['how']!r}, why: {row['why']!r}")
    if not row["verdict"]:
        found.append(f"{row['target']} has no verdict")
    homes = row["placement"]["homes"] if row["placement"] else []
    if not all(home["why"] for home in homes):
        found.append(f"{row['target']} leaves an op without a reason")
    is_float = not model.endswith("int8")
    if row["target"].startswith("openvino") and is_float and not (row["difference"] or 0) <= NEAR:
        found.append(f"{row['target']} is off by {row['difference']:.1e}")
    if (model, row["target"]) == WHOLE and row["placement"]["how"] == MEASURED:
        facts = row["placement"]["facts"]
        if row["taken"] != row["ops"] or facts["cpu_operators"]:
            found.append(f"{row['target']} leaves ops on the CPU")
    return found


def line(model: str, row: dict[str, Any]) -> tuple[str, ...]:
    facts = row["placement"]["facts"] if row["placement"] else {}
    ratio = ratio_text(row["ratio"], row["low"], row["high"]) if row["ratio"] else ""
    own = facts.get("npu_operators")
    ops = "" if row["ops"] is None else f"{row['taken']}/{row['ops']}"
    own_count = "" if own is None else f"{own}/{own + facts['cpu_operators']}"
    off = "" if row["difference"] is None else f"{row['difference']:.1e}"
    time = time_text(row["latency_us"])
    return model, row["target"], row["how"], time, ratio, off, ops, own_count


def agreement(paths: list[Path]) -> tuple[Rows, list[str]]:
    """For each compiler, the ops on which the rules contradict it."""
    rows, missed = Rows(), list[str]()
    models = [(path.stem, litesmith.load(path)) for path in paths]
    for delegate in DELEGATES:
        if delegate.name not in COMPILED or delegate.place is None or delegate.predict is None:
            continue
        if not delegate.probe().usable:
            rows.append((delegate.name, f"not asked: {delegate.probe().why}", "", ""))
            continue
        ops = wrong = 0
        for name, model in models:
            pairs = zip(delegate.place(model).homes, delegate.predict(model).homes, strict=True)
            others = [real for real, ruled in pairs if real.taken != ruled.taken]
            ops, wrong = ops + len(model.main.ops), wrong + len(others)
            missed += [f"{name}, {delegate.name}: op {h.place}, {h.kind}: {h.why}" for h in others]
        rows.append((delegate.name, str(len(models)), str(ops), str(wrong)))
    return rows, missed


def one_op_models() -> tuple[Rows, list[str]]:
    """How OpenVINO treats over six hundred models of a single op."""
    found = BY_NAME["openvino"].probe()
    if not found.usable:
        return [("openvino", f"not asked: {found.why}")], []
    verdicts = verdicts_on_one_op_models(every=True)
    counts = Counter(verdicts.values())
    others = [f"openvino, {n}: {v}" for n, v in verdicts.items() if v not in ("right", "refused")]
    return [(verdict, str(count)) for verdict, count in counts.items()], others


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each model's run")
    options = parser.parse_args()
    files = model_files(options.models)
    rows, missed = listed()
    print_table(("litesmith targets", "time"), rows)
    rows = []
    for path in (p for p in files if p.stem in MODELS):
        found, wrong = benched(path, options.seconds)
        rows, missed = rows + found, missed + wrong
    head = ("model", "target", "how", "time", "ratio to the CPU", "off by", "ops", "Vela's ops")
    print_table(head, rows)
    found, wrong = agreement(files)
    print_table(("rules beside the compiler", "models", "ops", "disagree"), found)
    ones, off = one_op_models()
    print_table(("models of one op in OpenVINO", "count"), ones)
    return verdict_line([*missed, *wrong, *off])


if __name__ == "__main__":
    sys.exit(main())
