"""A disk that is broken: the system refuses to write to files, with EIO."""

import ctypes
import errno
import platform
import struct
import sys

# The numbers of write, writev and pwrite64.
_CALLS = {"x86_64": (1, 20, 18), "aarch64": (64, 66, 68)}
_LOAD, _IF_EQUAL, _IF_NOT_LESS, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_FIRST_FILE = 3  # after the standard streams
_NO_NEW_PRIVILEGES, _GET_SECCOMP, _SECCOMP, _FILTER = 38, 21, 22, 2

# qemu-user has no filters of system calls, and says so when it is asked for the present one.
CAN_BREAK = (
    sys.platform == "linux"
    and platform.machine() in _CALLS
    and ctypes.CDLL(None).prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0
)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refuse_writes() -> None:
    """From now on this process, and those that it starts, can write to the standard streams only;
    nothing undoes it."""
    calls = _CALLS[platform.machine()]
    ways = [(_IF_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    lines = [
        (_LOAD, 0, 0, 0),  # the number of the call
        *ways,
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, 16),  # its first argument
        (_IF_NOT_LESS, 1, 0, _FIRST_FILE),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE | errno.EIO),
    ]
    program = _Program(len(lines), b"".join(struct.pack("HBBI", *line) for line in lines))
    control = ctypes.CDLL(None, use_errno=True).prctl
    for order in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SECCOMP, _FILTER, ctypes.byref(program))):
        if control(*order):
            raise OSError(ctypes.get_errno(), "no filter of system calls")
