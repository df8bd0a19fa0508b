"""The command cache: what is kept for the next time."""

from typing import Annotated

from litesmith.calibration.observed_cache import VARIABLE, Kept, clear, folder, held
from litesmith.cli.options.declare import argument
from litesmith.cli.text import inspect_text as show
from litesmith.errors import BadInput
from litesmith.phrases import phrase
from litesmith.units import bytes_text, plain


def cache(
    action: Annotated[
        str, argument(metavar="[clear]", help="clear: remove it.", show_default=False)
    ] = "",
) -> None:
    """Show what is kept between runs and where, or clear it."""
    if action not in ("", "clear"):
        raise BadInput("cache {action}: there is only clear", action)
    place = folder()
    if place is None:
        show.line(
            phrase("nothing is kept: {variable} is empty, or there is no home folder", VARIABLE)
        )
    elif action:
        show.line(phrase("removed {what} from {place}", _text(clear()), plain(str(place))))
    else:
        show.line(f"{plain(str(place))}: {_text(held())}")


def _text(kept: Kept) -> str:
    return phrase("{files} files, {size}", kept.files, bytes_text(kept.nbytes))
