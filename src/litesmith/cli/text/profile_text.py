"""What `profile` prints for people."""

from collections import Counter
from pathlib import Path

import click
from rich.text import Text

from litesmith.cli.text import printing as show
from litesmith.pages.overlay import opening_command
from litesmith.phrases import phrase
from litesmith.profiling.op_times import OpTime, Profile
from litesmith.units import count_text, percent_text, plain, rate_text, time_text

PLATFORM_HELP = """\
The same run in the platform's own profilers. They see functions and threads
where `litesmith profile` sees ops: start with the op, then look inside it.

Linux: perf
  Record a long benchmark, so that loading the model is a small part of it:
    perf record -g -- litesmith bench MODEL --on cpu:1 --seconds 20
    perf report --no-children --sort symbol
  The hot functions are the micro-kernels of XNNPACK; where symbols are kept,
  their names tell the data type, the tile and the instructions (avx512, neon).
  Much time in memcpy or in page faults is outside the model: see
    litesmith bench MODEL --copies
  Where the kernel refuses: sudo sysctl kernel.perf_event_paranoid=1

Android: Perfetto and simpleperf
  Open the file of `litesmith profile MODEL --trace out.pftrace` in
  https://ui.perfetto.dev (the page reads it locally and sends it nowhere).
  On the device, record the scheduler and the clock while your app runs:
    adb shell perfetto -o /data/misc/perfetto-traces/t -t 10s sched freq
    adb pull /data/misc/perfetto-traces/t
  It shows on which cores, and how fast, the threads of the runtime ran.
  For functions, simpleperf of the NDK: python3 app_profiler.py -p YOUR.APP

macOS and iOS: Instruments
  The template Time Profiler, from a shell:
    xcrun xctrace record --template 'Time Profiler' --launch -- \\
      /full/path/to/litesmith bench MODEL --on cpu:1 --seconds 20
  Open the .trace file and filter by the library libLiteRt. On a phone, profile
  your own app from Xcode.

Everywhere: the same number of threads as in --on cpu:N; look at one first.
"""


def print_platform_help() -> None:
    click.echo(PLATFORM_HELP.rstrip())


def _print_written(result: Profile, trace: Path | None, overlay: Path | None) -> None:
    """Prints the files that were written, and how to open them."""
    if trace is not None:
        count = len(result.runs)
        show.heading("trace")
        show.line(
            phrase(
                "{trace}: {written}, {count} runs; open it in ui.perfetto.dev",
                trace,
                result.trace,
                count,
            )
        )
    if overlay is not None:
        show.heading(phrase("overlay: {overlay}", plain(str(overlay))))
        show.command(f"  {opening_command(Path(result.model), overlay)}")


def print_profile(
    result: Profile, top: int | None = None, trace: Path | None = None, overlay: Path | None = None
) -> None:
    """Prints every op in run order, the slowest ops, the kinds, and the written files; with `top`,
    only the slowest.
    """
    show.line(
        phrase(
            "{name} on {target}: {time} a run (median of {count})",
            plain(Path(result.model).name),
            result.target,
            time_text(result.run_us),
            len(result.plain_us),
        ),
        "bold",
    )
    show.line(
        phrase(
            "ops add up to {time}, {share} of it; profiling adds {share2}, between the ops",
            time_text(result.ops_us),
            percent_text(result.ops_us / result.run_us),
            percent_text(max(result.overhead, 0.0)),
        )
    )
    best = ", ".join(
        phrase("{rate} in {kind}", rate_text(rate), kind)
        for kind, rate in result.best_gmacs.items()
    )
    show.line(phrase("best GMAC/s of this CPU in a calibration: {best}", best))
    if result.note:
        show.line(phrase("note: {note}", result.note))
    if top is not None:
        _print_ops(phrase("top {top} by time", top), result.top(top))
        _print_written(result, trace, overlay)
        return
    for number in sorted({op.graph for op in result.ops}):
        own = [op for op in result.ops if op.graph == number]
        if number == result.entry:
            _print_ops(phrase("in run order"), own)
        else:
            _print_ops(phrase("in run order of graph {number}, called by an op", number), own)
    for other in result.unmatched:
        show.line(
            phrase("in the runtime, outside all ops: {tag} {time}", other.tag, time_text(other.us))
        )
    _print_ops(phrase("top {top} by time", _TOP), result.top(_TOP))
    _print_kinds(result)
    _print_written(result, trace, overlay)


_TOP = 10

HEAD = ("#", "op", "time", "share", "kernel", "GMAC/s", "best")
_RIGHT = (0, 2, 3, 5, 6)
_LEAST_NAME, _MOST_KIND = 8, 18


def _print_ops(title: str, ops: list[OpTime]) -> None:
    rows = show.table(*HEAD, "name", right=_RIGHT)
    cells = [_cells(op) for op in ops]
    taken = sum(max(map(len, column)) + 2 for column in zip(HEAD, *cells, strict=True))
    room = max(_LEAST_NAME, show.console.width - taken)
    for op, row in zip(ops, cells, strict=True):
        name = op.name.split(";")[0] if op.kernel or op.fused_into is None else _into(op)
        rows.add_row(*map(show.localize, row), Text(_last(name, room)))
    show.heading(title)
    show.console.print(rows)
    reasons = Counter((op.kind, op.why) for op in ops if op.why)
    for (kind, why), count in reasons.most_common():
        show.line(phrase("{count} {kind} without a time of their own: {why}", count, kind, why))


def _into(op: OpTime) -> str:
    return f"→ {op.fused_into}"


def _cells(op: OpTime) -> tuple[str, ...]:
    timed = op.us if op.kernel else None
    return (
        str(op.index),
        _last(op.kind, _MOST_KIND),
        "" if timed is None else time_text(timed) if timed >= 1 else "<1 µs",
        "" if timed is None else percent_text(op.share),
        op.kernel,
        "" if op.gmacs is None else rate_text(op.gmacs),
        "" if op.of_best is None else percent_text(op.of_best),
    )


def _last(name: str, room: int) -> str:
    """The end of a long name, which says more than its start."""
    return name if len(name) <= room else f"…{name[1 - room :]}"


def _print_kinds(result: Profile) -> None:
    rows = show.table("op", "count", "time", "share", "MACs", "GMAC/s", right=(1, 2, 3, 4, 5))
    for kind, count, us, macs in result.by_kind():
        rows.add_row(
            Text(kind),
            str(count),
            time_text(us) if us else "",
            percent_text(us / result.ops_us) if us else "",
            count_text(macs) if macs else "",
            rate_text(macs / us / 1e3) if macs and us else "",
        )
    show.heading("by kind")
    show.console.print(rows)
