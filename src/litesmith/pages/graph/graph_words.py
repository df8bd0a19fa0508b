"""Every word of the script that draws graphs, in the reader's language."""

from litesmith.graph_view.op_pairs import CHANGES
from litesmith.lang.language import say
from litesmith.phrases import phrase

# The script fills in the braces, in this order.
WORDS: dict[str, str] = {
    "alone": phrase("Error of the op alone"),
    "as": phrase("in {scheme}, as the others"),
    "barKey": phrase("A filled, B as a line, on one axis"),
    "became": phrase("Its counterpart"),
    "brightWorse": phrase("bright: more error"),
    "bytes": phrase("Bytes of constants"),
    "change": phrase("Change in time, B − A"),
    "command": phrase("Command"),
    "constant": phrase("constant"),
    "copied": phrase("Copied"),
    "copy": phrase("Copy"),
    "covered": phrase("covered by its codes"),
    "error": phrase("Error up to here"),
    "exact": phrase("exact"),
    "form": phrase("Type"),
    "fusedInto": phrase("fused into op {op} of B"),
    "homes": phrase("Accelerators, by their rules"),
    "inFloat": phrase("in float"),
    "inInt16": phrase("in int16"),
    "input": phrase("input"),
    "keep": phrase("Keep this op"),
    "keeps": phrase("Ops to keep: {count}"),
    "keptByRecipe": phrase("an integer kernel exists; the recipe kept it"),
    "kernel": phrase("Kernel"),
    "macs": phrase("MACs"),
    "match": phrase("match {number} of {count}"),
    "matches": phrase("{count} ops match"),
    "none": phrase("none"),
    "open": phrase("Open graph {name}"),
    "ops": phrase("{count} ops"),
    "opsTitle": phrase("Ops"),
    "options": phrase("Options"),
    "output": phrase("output"),
    "pick": phrase("Click an op to see its details."),
    "predicted": phrase("≈ predicted, not measured"),
    "quant": phrase("Quantization"),
    "range": phrase("{low} to {high}"),
    "ranges": phrase("Range of its values"),
    "reads": phrase("reads"),
    "recipe": phrase("Recipe"),
    "repeat": phrase("({number} of {count})"),
    "seen": phrase("seen on the data"),
    "taken": phrase("takes it"),
    "tensors": phrase("Shapes, types and scales"),
    "time": phrase("Time"),
    "type": phrase("Type"),
    "weights": phrase("Weights"),
    "writes": phrase("writes"),
}

KERNELS = {
    "xnnpack": "XNNPACK",
    "builtin": phrase("builtin kernel"),
    "custom": phrase("custom kernel"),
    "litesmith": "Litesmith",
}


def graph_words() -> dict[str, str]:
    return {name: say(words) for name, words in WORDS.items()}


def kind_words() -> dict[str, str]:
    """The data's word for a kernel or a change -> the reader's word."""
    changes = {str.__str__(change): say(change) for change in CHANGES}
    return changes | {name: say(words) for name, words in KERNELS.items()}
