"""Operators that have no form in LiteRT, each with the reason and the way out."""

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.ir.types import Tensor
from litesmith.phrases import phrase

_SEQUENCE = phrase(
    "LiteRT has tensors only, no sequences of them; export the model with tensors, joined or "
    "stacked where a list was"
)
_TEXT = phrase("LiteRT's kernels do not compute with texts; do this step before the model")
_COUNT = phrase(
    "how many different values there are is known only while it runs; do this step behind the model"
)
_BOXES = phrase("LiteRT has no pool over boxes that move; export with RoiAlign instead")
_IMAGE = phrase("LiteRT reads no image files; decode them before the model")
_COUNTED = phrase("LiteRT has no op that counts runs of tokens; count them before the model")
_TRAINING = phrase("it is a step of training; export the model for inference")


def refused(why: str) -> Rule:
    def rule(lower: Lowering, node: Node) -> Tensor:
        raise Unsupported(why)

    return rule


_REASONS = {
    _SEQUENCE: (
        "ConcatFromSequence Optional SequenceAt SequenceConstruct SequenceEmpty SequenceErase "
        "SequenceInsert SequenceLength SequenceMap SplitToSequence"
    ),
    _TEXT: "RegexFullMatch StringConcat StringNormalizer StringSplit",
    _COUNT: "Unique",
    _BOXES: "MaxRoiPool",
    _IMAGE: "ImageDecoder",
    _COUNTED: "TfIdfVectorizer",
    _TRAINING: "Adagrad Adam Gradient Momentum",
}

RULES: dict[str, Rule] = {
    kind: refused(why) for why, kinds in _REASONS.items() for kind in kinds.split()
}
