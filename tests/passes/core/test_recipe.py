"""Recipe texts: what they mean, and what is said of those that mean nothing."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.passes.core.recipe import _setting as read_setting
from litesmith.passes.core.recipe import _setting_text, _Tokens, parse, text_of
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.passes.tidy.fold import Fold
from litesmith.passes.tidy.fuse import Fuse
from litesmith.passes.tidy.upgrade import Upgrade


def test_empty_is_nothing() -> None:
    assert parse("") == parse("  ") == ()


def test_settings_become_fields() -> None:
    assert parse("fold(float16=true,shapes=false)|fuse( pad = false )") == (
        Fold(float16=True),
        Fuse(pad=False),
    )
    assert parse('upgrade(io="int8")') == (Upgrade(io="int8"),)


def test_text_leaves_defaults_out() -> None:
    assert text_of((Fold(), Fuse(bias=False))) == "fold | fuse(bias=false)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("polish", "no step 'polish'; there are arrange, borders"),
        ("fold(speed=2)", "fold has no setting 'speed'; it has float16, shapes"),
        ("cleanup(x=1)", "cleanup has no setting 'x'; it has none"),
        ("fold(float16=1)", r"fold\(float16=1\): a bool is needed"),
        ("fold(float16=maybe)", r"fold\(float16=maybe\): a bool is needed"),
        ("fold(float16=true", r"',' expected, the end found"),
        ("fold(float16)", r"'=' expected, '\)' found"),
        ("cleanup fold", r"'\|' expected, 'fold' found"),
        ("cleanup |", "a name or a value expected, the end found"),
        ("| cleanup", r"no step '\|'"),
        ('upgrade(io="int8)', "a quote is open"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse(text)


settings_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


@given(settings_values)
def test_any_setting_round_trips(value: object) -> None:
    text = _setting_text(value)  # type: ignore[arg-type]
    back = read_setting(_Tokens(text))
    assert back == value
    assert type(back) is type(value)


@given(st.lists(st.integers(-3, 12) | st.booleans() | st.sampled_from(["3-5", "a"])).map(tuple))
def test_numbers_in_a_row_are_written_by_their_ends(value: tuple[object, ...]) -> None:
    back = read_setting(_Tokens(_setting_text(value)))  # type: ignore[arg-type]
    assert back == value and list(map(type, back)) == list(map(type, value))  # type: ignore[arg-type]


def test_many_numbers_make_a_short_text() -> None:
    step = Quantize(keep=("MEAN", *range(3, 90), 92, 93, 95))
    text = "quantize(keep=[MEAN, 3-89, 92, 93, 95])"
    assert text_of((step,)) == text and parse(text) == (step,)


@pytest.mark.parametrize("name", ["9-3", "1-2-3", "-1-3", "0-99999999999", "1-a"])
def test_what_is_no_row_of_numbers_is_a_name(name: str) -> None:
    assert parse(f"quantize(keep=[{name}])") == (Quantize(keep=(name,)),)
    assert parse(text_of((Quantize(keep=(name,)),))) == (Quantize(keep=(name,)),)


@given(st.text(max_size=40))
def test_any_text_is_a_recipe_or_one_clear_line(text: str) -> None:
    try:
        recipe = parse(text)
    except BadInput as error:
        assert str(error).startswith("recipe")
    else:
        assert parse(text_of(recipe)) == recipe


def test_a_step_needs_no_more_than_a_frozen_dataclass() -> None:
    @dataclass(frozen=True)
    class Nothing:
        def apply(self, model, context):
            from litesmith.passes.core.step import Change

            return Change(model)

    from litesmith.passes.core.recipe import apply
    from tests.zoo import convnet

    model = convnet()
    assert apply(model, (Nothing(),)).model is model
