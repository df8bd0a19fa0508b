"""How many examples hypothesis draws: a quarter by default, all of them with `-m full`."""

from hypothesis import HealthCheck, settings

_FEWEST = 5
_whole = False


def draw_all() -> None:
    """Called before the tests are imported."""
    global _whole
    _whole = True


def draws(count: int, *suppressed: HealthCheck) -> settings:
    """The settings of a test that draws so many; a busy machine is no fault of it."""
    drawn = count if _whole else min(count, max(_FEWEST, count // 4))
    checks = (*suppressed, HealthCheck.too_slow)
    return settings(max_examples=drawn, deadline=None, suppress_health_check=checks)
