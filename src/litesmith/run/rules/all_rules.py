"""The rules: the ops that accelerators take whose compiler cannot run here, one row per
accelerator."""

from litesmith.run.rules.coreml import CORE_ML
from litesmith.run.rules.edgetpu import EDGE_TPU
from litesmith.run.rules.ethos_u import ETHOS_U
from litesmith.run.rules.gpu import GPU
from litesmith.run.rules.hexagon import HEXAGON
from litesmith.run.rules.micro import MICRO
from litesmith.run.rules.nnapi import NNAPI
from litesmith.run.rules.openvino import OPENVINO
from litesmith.run.rules.rule_row import Rules as Rules
from litesmith.run.rules.rule_row import place_by_rules as place_by_rules

RULES: dict[str, Rules] = {
    "coreml": CORE_ML,
    "edgetpu": EDGE_TPU,
    "ethos": ETHOS_U,
    "gpu": GPU,
    "hexagon": HEXAGON,
    "micro": MICRO,
    "nnapi": NNAPI,
    "openvino": OPENVINO,
}
