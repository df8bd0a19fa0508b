"""The command cache."""

from typing import Annotated

import litesmith
from litesmith.cli.options.declare import argument


def cache(
    action: Annotated[str, argument(metavar="[clear]", help="clear: remove what is kept.")] = "",
) -> None:
    """Show what is kept between runs and where, or clear it."""
    from litesmith.cli.text.printing import line

    line(litesmith.cache(action).sentence)
