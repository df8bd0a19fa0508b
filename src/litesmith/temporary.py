"""Temporary files: where there is no room for one, one line says so and names the way out."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from litesmith.errors import BadInput, os_reason


def no_room(error: OSError) -> BadInput:
    """What is told where a temporary file cannot be."""
    return BadInput(
        "{place}, for temporary files: {why}; TMPDIR names another",
        tempfile.gettempdir(),
        os_reason(error),
    )


@contextmanager
def temporary_room() -> Generator[None]:
    """What is written to files without a name is, or one line says that there is no room."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise no_room(error) from None


@contextmanager
def temporary_folder(prefix: str = "litesmith-") -> Generator[Path]:
    """A folder that goes away. Windows keeps what is still mapped or looked at by a scanner; that
    is no reason for work that is done to fail."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def temporary_file(
    content: bytes | memoryview, name: str = "model.tflite", *, prefix: str = "litesmith-"
) -> Generator[Path]:
    """A file with this content that goes away, alone in its folder."""
    with temporary_folder(prefix) as folder:
        path = folder / name
        with temporary_room():
            path.write_bytes(content)
        yield path
