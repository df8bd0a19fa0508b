"""The one function that runs a whole program.

An op is a record of 64-bit words (`layout`) that begins with the address of a compiled function,
its kernel; one call computes one unit of the op. Units of an op may run in any order and on any
thread: they write places of their own, or the same values. Kernels are the functions `*_unit` of
the modules `loops_*`.
"""

from litesmith.kernels.programs import record_layout as at
from litesmith.native.tiles import call_unit, int64_at, put_int64, rest_a_little, take, word


def run_program(code: int, ops: int, buffers: int, scratch: int, counters: int) -> None:
    """Every op in turn. With counters, other threads may run this at the same time.

    An op has two counters, 64 bytes apart: units that were taken, and units that are done. Who
    finds none left waits until all are done; a thread that comes late finds finished ops.
    """
    for number in range(ops):
        op = code + number * at.RECORD_BYTES
        units, kernel = word(op, at.UNITS), word(op, at.KERNEL)
        if counters == 0:
            for unit in range(units):
                call_unit(kernel, op, buffers, scratch, unit)
        else:
            taken, done = counters + 128 * number, counters + 128 * number + 64
            unit = take(taken, 1)
            while unit < units:
                call_unit(kernel, op, buffers, scratch, unit)
                take(done, 1)
                unit = take(taken, 1)
            rounds = 0
            while take(done, 0) < units:
                rounds += 1
                rest_a_little(rounds)


def run_part(record: int, room: int) -> int:
    """A program as a kernel that the runtime calls: on one thread, on memory at the addresses that
    lie at `room`. Its record has the first four arguments of `run_program`, then how many inputs
    and outputs there are, then the buffer number of each. 0: it never fails.
    """
    code, ops, buffers = int64_at(record), int64_at(record + 8), int64_at(record + 16)
    scratch = int64_at(record + 24)
    for port in range(int64_at(record + 32)):
        number = int64_at(record + 40 + 8 * port)
        put_int64(buffers + 8 * number, int64_at(room + 8 * port))
    for place in range(ops):
        op = code + place * at.RECORD_BYTES
        kernel = word(op, at.KERNEL)
        for unit in range(word(op, at.UNITS)):
            call_unit(kernel, op, buffers, scratch, unit)
    return 0
