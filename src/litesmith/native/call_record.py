"""The words of the record that `loops_between` is called with, by place. All are 64-bit."""

# Two functions of the runtime; the kernel and its two arguments; where it is noted which kernel of
# a model failed, and this one's number, from 1.
LOCK, UNLOCK, FUNCTION, USER, ROOM, FAILED, NUMBER = range(7)
