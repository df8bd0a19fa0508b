"""Prints memory on a microcontroller: the account, the plan over time, the written files."""

from rich.text import Text

from litesmith.cli.text import printing as show
from litesmith.front.export import Exported
from litesmith.micro.arena import ArenaAccount
from litesmith.micro.memory_report import MicroBench, MicroMemory, buffer_name, draw_plan
from litesmith.phrases import phrase
from litesmith.units import bytes_text, percent_text, plain

_MOST_TICKS, _MOST_OPS = 60, 12


def print_micro(done: MicroBench) -> None:
    for one in done.models:
        print_memory(one)


def print_memory(one: MicroMemory) -> None:
    """Prints one model: the arena by kind, the buffers at the peak, the picture, flash, the
    verdict.
    """
    show.line(plain(one.name), "bold")
    _print_account(one)
    _print_peak(one)
    lines = draw_plan(one)
    show.heading("plan over time")
    for drawn in lines[:_MOST_TICKS]:
        show.console.print(Text(drawn))
    if len(lines) > _MOST_TICKS:
        show.line(phrase("and {more} more ops; --json has them", len(lines) - _MOST_TICKS))
    _print_ops(one)
    _print_flash(one)
    show.line(one.verdict, "bold")


def _print_account(one: MicroMemory) -> None:
    rows = show.table("arena", "32 bits", "this machine", right=(1, 2))
    device, host = one.device, one.host
    rows.add_row(phrase("planned tensors and scratch"), *_pair(device, host, "planned_bytes"))
    rows.add_row(phrase("of it scratch, at most"), *_pair(device, host, "scratch_bytes"))
    kinds = device.by_kind()
    for kind, count in kinds.items():
        rows.add_row(kind, bytes_text(count), bytes_text(host.by_kind().get(kind, 0)))
    rows.add_row(phrase("total"), *_pair(device, host, "total"))
    if one.told is not None:
        rows.add_row(phrase("the interpreter's own figure"), "", bytes_text(one.told.total))
    rows.add_row(phrase("needed, preparing included"), *_pair(device, host, "needed"))
    show.console.print(rows)
    if device.unknown:
        show.line(
            phrase("kernels whose memory is not known: {names}", ", ".join(device.unknown)),
            "yellow",
        )


def _pair(device: ArenaAccount, host: ArenaAccount, name: str) -> tuple[str, str]:
    return bytes_text(getattr(device, name)), bytes_text(getattr(host, name))


def _print_peak(one: MicroMemory) -> None:
    held = ", ".join(f"{buffer_name(b)} {bytes_text(b.bytes)}" for b in one.peak_buffers()[:4])
    show.line(
        phrase(
            "peak: {bytes} live at {place}: {held}",
            bytes_text(one.live.get(one.peak, 0)),
            one.peak_place,
            held,
        )
    )


def _print_ops(one: MicroMemory) -> None:
    """Prints the ops with most permanent memory."""
    by_op = sorted(one.device.by_op().items(), key=lambda pair: -pair[1])[:_MOST_OPS]
    show.heading("memory that ops keep throughout")
    rows = show.table("op", "kind", "kept", "share", right=(0, 2, 3))
    for (graph, place), count in by_op:
        op = one.model.graphs[graph].ops[place]
        share = percent_text(count / max(1, one.device.lasting_bytes))
        number = str(place) if len(one.model.graphs) == 1 else f"{graph}:{place}"
        rows.add_row(number, Text(plain(op.label)), bytes_text(count), share)
    show.console.print(rows)


def _print_flash(one: MicroMemory) -> None:
    found = one.flash
    show.line(
        phrase(
            "flash, estimated: {total}: model {model}, interpreter {core}, kernels {kernels}",
            bytes_text(found.total),
            bytes_text(found.model),
            bytes_text(found.interpreter),
            bytes_text(sum(found.kernels.values())),
        )
    )


def print_exported(done: Exported) -> None:
    for path in done.files:
        show.line(plain(str(path)))
    if done.plan.is_reordered:
        show.line(phrase("ops are in another order, which needs less memory"))
    if done.plan.overlap != "none":
        show.line(
            phrase("outputs are written over inputs: right with TFLM's reference kernels alone"),
            "yellow",
        )
    show.line(done.sentence, "bold")
