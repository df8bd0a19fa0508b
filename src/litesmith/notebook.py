"""Results as a notebook shows them."""

from importlib import import_module


def html_of(result: object) -> str:
    """A result as HTML. What draws lies far above the results, so that it is imported only here,
    once a notebook asks."""
    return import_module("litesmith.pages.result_html").html(result)
