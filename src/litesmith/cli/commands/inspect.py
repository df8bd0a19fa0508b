"""The command inspect."""

from typing import Annotated

import litesmith
from litesmith.cli.options.declare import option
from litesmith.cli.options.shared_options import Json, ModelFile
from litesmith.cli.text.deliver import deliver


def inspect(
    model: ModelFile,
    ops: Annotated[bool, option("--ops", help="List every op.")] = False,
    as_json: Json = False,
) -> None:
    """What is in a model: ops, weights, MACs, sizes, quantization, and what stands out."""
    from litesmith.cli.text.inspect_text import print_inspection

    deliver(litesmith.inspect(model, ops=ops), print_inspection, as_json)
