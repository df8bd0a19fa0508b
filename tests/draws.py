"""How many examples hypothesis draws: a quarter by default, all of them with `-m full`, a
twentieth on an emulated CPU."""

from hypothesis import HealthCheck, settings

from tests.slowness import SLOWNESS

_FEWEST = 5
_SHARE = 4 if SLOWNESS == 1 else 20  # one of so many is drawn
_whole = False


def draw_all() -> None:
    """Called before the tests are imported."""
    global _whole
    _whole = True


def draws(count: int, *suppressed: HealthCheck) -> settings:
    """The settings of a test that draws so many; a busy machine is no fault of it."""
    drawn = count if _whole else min(count, max(_FEWEST, count // _SHARE))
    checks = (*suppressed, HealthCheck.too_slow)
    return settings(max_examples=drawn, deadline=None, suppress_health_check=checks)
