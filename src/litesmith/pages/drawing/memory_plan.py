"""A memory plan as a picture: ops to the right, bytes upwards, a box for each buffer."""

from html import escape

from litesmith.lang.language import say
from litesmith.micro.buffers import tick_labels
from litesmith.micro.memory_report import MicroMemory, buffer_name
from litesmith.phrases import phrase
from litesmith.units import bytes_text

_WIDTH, _HEIGHT, _LEFT, _TOP, _FOOT = 900, 360, 70, 40, 30
_COLOURS = ("#4878a8", "#6aa56a", "#c08a3e", "#8a6bb1", "#b35d5d", "#4f9c9c")
_STYLE = "text{font:12px sans-serif;fill:#555}rect{stroke:#fff;stroke-width:.5}"


def draw_memory(one: MicroMemory) -> str:
    """A separate SVG file; each box shows its name, size and lifetime."""
    plan, labels = one.device.plan, tick_labels(one.model)
    ticks = max(labels, default=0) + 1
    wide, high = (_WIDTH - _LEFT) / ticks, _HEIGHT / max(1, plan.bytes)
    boxes: list[str] = []
    for number, (buffer, at) in enumerate(zip(plan.buffers, plan.offsets, strict=True)):
        if buffer.first < 0:
            continue
        tip = f"{buffer_name(buffer)}: {bytes_text(buffer.bytes)}, {buffer.first}–{buffer.last}"
        colour = "#999" if buffer.is_scratch else _COLOURS[number % len(_COLOURS)]
        boxes.append(
            f'<rect x="{_LEFT + buffer.first * wide:.1f}" '
            f'y="{_TOP + _HEIGHT - (at + buffer.bytes) * high:.1f}" '
            f'width="{(buffer.last - buffer.first + 1) * wide:.1f}" '
            f'height="{buffer.bytes * high:.1f}" fill="{colour}"><title>{escape(tip)}</title>'
            "</rect>"
        )
    peak = phrase(
        "planned memory of {name}: {planned}; most is live at {place}",
        one.name,
        bytes_text(plan.bytes),
        one.peak_place,
    )
    line = _LEFT + (one.peak + 0.5) * wide
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {_WIDTH + 10} {_TOP + _HEIGHT + _FOOT}"><style>{_STYLE}</style>'
        f'<text x="{_LEFT}" y="20">{escape(say(peak))}</text>'
        f'<text x="4" y="{_TOP + 10}">{bytes_text(plan.bytes)}</text>'
        f'<text x="4" y="{_TOP + _HEIGHT}">0</text>'
        f"{''.join(boxes)}"
        f'<line x1="{line:.1f}" x2="{line:.1f}" y1="{_TOP}" y2="{_TOP + _HEIGHT}" '
        'stroke="#222" stroke-dasharray="4 3"/>'
        f'<text x="{_LEFT}" y="{_TOP + _HEIGHT + 20}">{escape(say(phrase("ops in order")))}</text>'
        "</svg>\n"
    )
