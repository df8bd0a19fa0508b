"""Switches with a value, as `benchmark_model` takes them."""

from collections.abc import Sequence

# Flags of TensorFlow's benchmark_model that take no value here, but are typed with one there.
_SWITCHES = ("--enable_op_profiling",)
_TRUE, _FALSE = ("true", "1"), ("false", "0")


def plain_switches(words: Sequence[str]) -> list[str]:
    """A command line whose switches have no value: `--switch=true` and `--switch true` are
    `--switch`, and with false they are nothing."""
    kept: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, _, value = word.partition("=")
        if name not in _SWITCHES:
            kept.append(word)
            continue
        if not value and left and left[0].lower() in _TRUE + _FALSE:
            value = left.pop(0)
        if value.lower() not in _FALSE:
            kept.append(name)
    return kept
