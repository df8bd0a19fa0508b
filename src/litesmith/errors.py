"""The four errors a user can meet. Each message names the thing, the rule and the way out."""


class LitesmithError(Exception):
    """Anything Litesmith refuses to do; the message is one line made for a person."""


class BadModel(LitesmithError):
    """The file is not a model that the runtime could accept."""


class BadInput(LitesmithError):
    """A path, an option or a recipe that cannot be used as given."""


class CannotApply(LitesmithError):
    """A step does not fit this model."""


class CannotRun(LitesmithError):
    """A model cannot run on the asked target."""
