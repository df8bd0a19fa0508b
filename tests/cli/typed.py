"""Commands in this process, by their arguments."""

from litesmith.cli.call import call
from litesmith.cli.commands import COMMANDS


def run_command(name: str, /, **typed: object) -> int:
    """Runs a command as if this had been typed; its exit status."""
    return call(name, COMMANDS[name], typed)
