"""How many times as long as usual tests may take: LITESMITH_TEST_SLOWNESS, of an emulated CPU."""

import os

SLOWNESS = float(os.environ.get("LITESMITH_TEST_SLOWNESS", "1"))


def patient(seconds: float) -> float:
    """A limit on time as it is here."""
    return seconds * SLOWNESS
