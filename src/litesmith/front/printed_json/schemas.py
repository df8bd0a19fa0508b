"""JSON schemas: of what commands print, and of the files that they leave."""

from litesmith.errors import BadInput
from litesmith.evidence.bench_record import BenchSummary, LatencyRow, TargetRow
from litesmith.evidence.choose_record import ChooseSummary
from litesmith.evidence.gate_record import GateSummary
from litesmith.evidence.json_schema import Schema, make_schema
from litesmith.evidence.retrain_record import RetrainResult, RetrainSummary
from litesmith.evidence.tune_record import TuneSummary
from litesmith.front.printed_json.bench_json import (
    BenchAllJson,
    BenchAllModelsJson,
    BenchJson,
    BenchMicroJson,
)
from litesmith.front.printed_json.change_json import ApplyJson, ExportJson, QuantizeJson, ShrinkJson
from litesmith.front.printed_json.find_json import (
    CatalogueJson,
    ChooseJson,
    ConvertJson,
    NetworkJson,
    RetrainJson,
)
from litesmith.front.printed_json.keep_json import GateJson, UpdatedJson
from litesmith.front.printed_json.look_json import (
    CompareJson,
    DiffJson,
    EvaluateJson,
    InspectJson,
    ProfileJson,
    TargetsJson,
    ViewJson,
)
from litesmith.front.printed_json.start_json import (
    FittingJson,
    InaccuracyJson,
    SlownessJson,
    TuneJson,
)
from litesmith.regression.baseline import Baseline
from litesmith.search.tuning.replay import RecipeFile

# Objects that also have the keys of a record.
_WITH_RECORDS: dict[str, type] = {
    "TimedFacts": LatencyRow,
    "ReachedFacts": TargetRow,
    "RetrainJson": RetrainResult,
}

# command -> what it prints
PRINTED: dict[str, tuple[type, ...]] = {
    "apply": (ApplyJson,),
    "bench": (BenchJson, BenchAllJson, BenchAllModelsJson, BenchMicroJson),
    "catalogue": (CatalogueJson, NetworkJson),
    "choose": (ChooseJson,),
    "cluster": (ShrinkJson,),
    "compare": (CompareJson,),
    "convert": (ConvertJson,),
    "diff": (DiffJson,),
    "doctor": (SlownessJson, InaccuracyJson, FittingJson),
    "eval": (EvaluateJson,),
    "export": (ExportJson,),
    "gate": (GateJson, UpdatedJson),
    "inspect": (InspectJson,),
    "profile": (ProfileJson,),
    "prune": (ShrinkJson,),
    "qat": (ShrinkJson,),
    "quantize": (QuantizeJson,),
    "retrain": (RetrainJson,),
    "targets": (TargetsJson,),
    "tune": (TuneJson,),
    "view": (ViewJson,),
}

# file -> what it holds
RECORDS: dict[str, type] = {
    "baseline": Baseline,
    "bench-folder": BenchSummary,
    "choose-folder": ChooseSummary,
    "gate-folder": GateSummary,
    "recipe": RecipeFile,
    "retrain-folder": RetrainSummary,
    "tune-folder": TuneSummary,
}

_TITLES = {
    "baseline": "baseline of gate",
    "bench-folder": "bench.json of bench --on all -o",
    "choose-folder": "choose.json of choose",
    "gate-folder": "gate.json of gate -o",
    "recipe": "recipe.json of tune",
    "retrain-folder": "retrain.json of retrain",
    "tune-folder": "tune.json of tune",
}


def schema_of_printed(command: str) -> Schema:
    """The JSON schema of what a command prints with `--json`."""
    if command not in PRINTED:
        raise BadInput("{command!r} prints no JSON; there are {known}", command, ", ".join(PRINTED))
    first, *others = PRINTED[command]
    kind: object = first
    for other in others:
        kind = kind | other
    return make_schema(kind, f"litesmith {command} --json", beside=_WITH_RECORDS)


def schema_of_record(name: str) -> Schema:
    """The JSON schema of a file that commands leave."""
    return make_schema(RECORDS[name], _TITLES[name], is_file=True)
