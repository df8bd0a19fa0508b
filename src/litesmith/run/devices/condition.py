"""How a device is while it measures: its heat, its kinds of cores, its screen.

Linux and Android tell all but the screen in the same files. A device prints them by `LOOK`, a
script for its shell; what it cannot read or does not have is left out.
"""

from typing import NamedTuple

from litesmith.operating_system import CoreKinds, Heat, judge_heat, sort_cores

LOOK = """\
for z in /sys/class/thermal/thermal_zone*/temp; do
  echo "zone $(cat $z 2>/dev/null)"
done
for c in /sys/devices/system/cpu/cpu[0-9]*; do
  f=$c/cpufreq
  echo "core ${c##*/cpu} $(cat $c/cpu_capacity 2>/dev/null || echo -)" \\
    "$(cat $f/cpuinfo_max_freq 2>/dev/null || echo -)" \\
    "$(cat $f/scaling_max_freq 2>/dev/null || echo -)"
done
echo "screen $(dumpsys power 2>/dev/null | sed -n 's/^ *mWakefulness=//p' | head -n 1)"
"""
_AWAKE = "Awake"


class Condition(NamedTuple):
    """What the files of a device say at one moment."""

    heat: Heat
    cores: CoreKinds
    screen: str  # in Android's word, such as Asleep or Dozing; "" where it is on, or where none is


def read_condition(text: str) -> Condition:
    """Reads what `LOOK` prints."""
    rows = [line.split() for line in text.splitlines()]
    zones = [row[1] for row in rows if row[:1] == ["zone"] and len(row) == 2]
    cores = {
        int(row[1]): row[2:]
        for row in rows
        if row[:1] == ["core"] and len(row) == 5 and row[1].isdecimal()
    }
    screens = [row[1] for row in rows if row[:1] == ["screen"] and len(row) == 2]
    kinds = sort_cores(*({core: told[place] for core, told in cores.items()} for place in (0, 1)))
    heat = judge_heat(zones, ((now, most) for _, most, now in cores.values()))
    return Condition(heat, kinds, next((one for one in screens if one != _AWAKE), ""))
