"""The words of the record that `loops_between` is called with, by place. All are 64-bit."""

from litesmith.native.compile import Function

BETWEEN = Function("native.loops_between", "run_between", 5, tells=True)

# Two functions of the runtime; the kernel and its two arguments; where it is noted which kernel of
# a model failed, and this one's number, from 1.
LOCK, UNLOCK, FUNCTION, USER, ROOM, FAILED, NUMBER = range(7)
