"""The option `--lang`, which every command has and no command sees."""

from collections.abc import Sequence

from litesmith.errors import BadInput
from litesmith.lang import language

_OPTION = "--lang"


def take_language(words: Sequence[str]) -> list[str]:
    """Speaks the language that is asked for, or the usual one; gives all other words.

    What follows `--` is left as it is.
    """
    own, rest = _before_dashes(words)
    asked: str | None = None
    left: list[str] = []
    while own:
        word = own.pop(0)
        name, equals, value = word.partition("=")
        if name != _OPTION:
            left.append(word)
        elif equals or own:
            asked = value if equals else own.pop(0)
        else:
            raise BadInput(
                "{option}: which language? there are {languages}",
                _OPTION,
                ", ".join(language.LANGUAGES),
            )
    language.use(language.usual_language() if asked is None else asked)
    return left + rest


def _before_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    place = list(words).index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place:])
