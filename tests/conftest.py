"""What every test shares: nothing is written to the user's own folders."""

import os
from collections.abc import Iterator

import pytest

from litesmith.measure.cache import VARIABLE


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The cache of this run, for the commands that tests start as well."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(tmp_path_factory.mktemp("cache"))
    yield
    del os.environ[VARIABLE]
    if before is not None:
        os.environ[VARIABLE] = before
