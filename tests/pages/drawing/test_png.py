"""Accents are drawn over the letters that the font has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.pages.drawing.png import accents, bare

PIL = pytest.importorskip("PIL", reason="pictures are drawn with Pillow")

LETTERS = "abc ñáéíóúüçãõâêôàÑÇ −×µ…"


@given(st.text(LETTERS))
def test_bare_words_are_ascii_and_every_accent_has_a_letter(words: str) -> None:
    shown = bare(words)
    assert shown.isascii() and len(shown) == len(words)
    assert [place for place, _ in accents(words)] == [
        place for place, letter in enumerate(words) if letter in "ñáéíóúüçãõâêôàÑÇ"
    ]


@pytest.mark.parametrize("letter", "ñáéíóúüçãõâêôàÑÇ")
def test_a_letter_with_an_accent_looks_other_than_without(letter: str) -> None:
    from PIL import Image, ImageDraw, ImageFont

    from litesmith.pages.drawing.png import draw_accents

    image = Image.new("L", (60, 60), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(40)
    draw.text((30, 45), bare(letter), "black", font, "ms")
    without = image.tobytes()
    draw_accents(draw, (30, 45), letter, font=font, anchor="ms", size=40, color="black")
    assert image.tobytes() != without
