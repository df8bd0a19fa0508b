"""The four errors a user can meet. Each message names the thing, the rule and the way out."""

import errno
import os

from litesmith.phrases import Phrase, phrase


class LitesmithError(Exception):
    """Anything Litesmith refuses to do; the message, a phrase, is one line made for a person.

    >>> try:
    ...     litesmith.inspect("nowhere.tflite")
    ... except litesmith.LitesmithError as error:
    ...     print(error)
    nowhere.tflite: no such file
    """

    def __init__(self, template: str = "", /, *values: object) -> None:
        super().__init__(phrase(template, *values))


class BadModel(LitesmithError):
    """The file is not a model that the runtime could accept.

    >>> litesmith.load(b"not a model")
    Traceback (most recent call last):
    litesmith.errors.BadModel: ...
    """


class BadInput(LitesmithError):
    """A path, an option or a recipe that cannot be used as given.

    >>> litesmith.load("nowhere.tflite")
    Traceback (most recent call last):
    litesmith.errors.BadInput: nowhere.tflite: no such file
    """


class CannotApply(LitesmithError):
    """A step does not fit this model.

    >>> litesmith.apply("model.tflite", "upgrade")
    Traceback (most recent call last):
    litesmith.errors.CannotApply: ...
    """


class CannotRun(LitesmithError):
    """A model cannot run on the asked target.

    >>> try:
    ...     litesmith.Session("model.tflite", target="gpu").run()
    ... except litesmith.CannotRun as error:
    ...     reason = str(error)
    """


def os_reason(error: OSError) -> Phrase:
    """Why the operating system refused, in words that a language may have: `no such file`."""
    told = error.strerror or str(error)
    if getattr(error, "winerror", None) and error.errno not in (None, errno.EINVAL):
        told = os.strerror(error.errno)  # Windows has a sentence of its own for each
    return phrase(f"{told[:1].lower()}{told[1:]}")
