"""A recipe that a search may try."""

from typing import NamedTuple


class Candidate(NamedTuple):
    """A recipe to try.

    name   unique, and the name of its file
    why    what is hoped for
    """

    name: str
    branch: str
    recipe: str
    why: str
