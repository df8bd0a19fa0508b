"""The picture of the README: the top of the demo's report, as a browser shows it.

    python tools/picture.py [DEMO_FOLDER]

Without a folder the demo is run first. Needs Chromium. Give a page made on a quiet machine: the
picture shows its numbers.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

OUT = Path(__file__).resolve().parents[1] / "docs" / "assets" / "demo-report.png"
WIDTH, HEIGHT, SCALE = 1000, 530, 1.5
COLOURS = 32  # of a page of few colours: a quarter of the bytes

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def take(page: Path, out: Path, *, width: int = WIDTH, height: int = HEIGHT) -> None:
    """Writes a picture of a page, in a browser window of this size."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        size = (f"--window-size={width},{height}", f"--force-device-scale-factor={SCALE}")
        place = (
            f"--user-data-dir={folder}/profile",
            f"--screenshot={shot}",
            page.resolve().as_uri(),
        )
        command = ["chromium", *FLAGS, *size, *place]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        with Image.open(shot) as image:
            few = image.convert("RGB").quantize(COLOURS)
    out.parent.mkdir(parents=True, exist_ok=True)
    few.save(out, optimize=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else made)
        page = folder / "tuned" / "report.html"
        if not page.is_file():
            command = [sys.executable, "-m", "litesmith", "demo", "-o", str(folder)]
            subprocess.run(command, check=True)
        take(page, OUT)
    print(f"{OUT}: {OUT.stat().st_size / 1e3:.0f} KB")


if __name__ == "__main__":
    main()
