"""The rules: which ops accelerators take whose compiler cannot run here, one row each."""

from litesmith.run.rules_coreml import CORE_ML
from litesmith.run.rules_edgetpu import EDGE_TPU
from litesmith.run.rules_ethos import ETHOS_U
from litesmith.run.rules_gpu import GPU
from litesmith.run.rules_nnapi import NNAPI
from litesmith.run.rules_others import HEXAGON, OPENVINO
from litesmith.run.rules_row import Rules as Rules
from litesmith.run.rules_row import place_by_rules as place_by_rules

RULES: dict[str, Rules] = {
    "coreml": CORE_ML,
    "edgetpu": EDGE_TPU,
    "ethos": ETHOS_U,
    "gpu": GPU,
    "hexagon": HEXAGON,
    "nnapi": NNAPI,
    "openvino": OPENVINO,
}
