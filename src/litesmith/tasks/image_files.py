"""Opens image files of the supported formats, and lists the exceptions of damaged files.

Pillow goes by the content and not by the name, and hands some formats (EPS) to other programs.
"""

import struct
import zlib
from pathlib import Path
from typing import IO

from PIL import Image

# The formats behind the endings of images; files with other contents are refused.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")

# The exceptions that Pillow raises for damaged files of one format or another.
UNREADABLE = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    LookupError,
    TypeError,
    MemoryError,
    OverflowError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


def open_image(source: Path | IO[bytes]) -> Image.Image:
    """Opens an image of one of the supported formats; raises one of UNREADABLE for anything
    else.
    """
    return Image.open(source, formats=FORMATS)
