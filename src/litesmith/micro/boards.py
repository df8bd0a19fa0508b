"""Boards and chips of microcontrollers: RAM, flash and core, a row each.

RAM and flash are those of the maker's data sheet, in bytes; `ram` is the largest piece that one
array can have where RAM comes in banks. Firmware needs part of both: see `RESERVED`.
"""

from typing import NamedTuple

from litesmith.errors import BadInput
from litesmith.type_guards import is_whole
from litesmith.units import bytes_text, typed_bytes

_K = 1024


class Board(NamedTuple):
    """One board or chip."""

    name: str
    title: str
    chip: str
    core: str
    ram: int
    flash: int

    def __str__(self) -> str:
        return self.name


class Room(NamedTuple):
    """What a model may take: bytes of RAM for the arena, bytes of flash for model and kernels; None
    for no limit.
    """

    ram: int | None
    flash: int | None
    name: str = ""

    def __str__(self) -> str:
        given = (self.ram, "RAM"), (self.flash, "flash")
        sizes = ", ".join(f"{bytes_text(size)} {word}" for size, word in given if size is not None)
        return f"{self.name}: {sizes}" if self.name else sizes


def _row(name: str, title: str, chip: str, core: str, ram_k: int, flash_k: int) -> Board:
    return Board(name, title, chip, core, ram_k * _K, flash_k * _K)


BOARDS: tuple[Board, ...] = (
    _row("arduino-nano-33-ble", "Arduino Nano 33 BLE", "nRF52840", "Cortex-M4F", 256, 1024),
    _row("arduino-nicla-vision", "Arduino Nicla Vision", "STM32H747", "Cortex-M7", 512, 2048),
    _row("arduino-portenta-h7", "Arduino Portenta H7", "STM32H747", "Cortex-M7", 512, 2048),
    _row("disco-f746ng", "STM32F746G Discovery", "STM32F746", "Cortex-M7", 320, 1024),
    _row("esp32", "ESP32-DevKitC", "ESP32", "Xtensa LX6", 160, 4096),
    _row("esp32-c3", "ESP32-C3-DevKit", "ESP32-C3", "RISC-V", 400, 4096),
    _row("esp32-s3", "ESP32-S3-DevKitC", "ESP32-S3", "Xtensa LX7", 512, 8192),
    _row("frdm-k64f", "NXP FRDM-K64F", "MK64F12", "Cortex-M4F", 192, 1024),
    _row("himax-we-i", "Himax WE-I Plus", "HX6537-A", "ARC EM9D", 2048, 2048),
    _row("lpc55s69", "NXP LPCXpresso55S69", "LPC55S69", "Cortex-M33", 256, 640),
    _row("max78000", "MAX78000FTHR", "MAX78000", "Cortex-M4F", 128, 512),
    _row("nrf52832", "Nordic nRF52 DK", "nRF52832", "Cortex-M4F", 64, 512),
    _row("nrf52840", "Nordic nRF52840 DK", "nRF52840", "Cortex-M4F", 256, 1024),
    _row("nrf5340", "Nordic nRF5340 DK", "nRF5340", "Cortex-M33", 512, 1024),
    _row("nucleo-f446re", "STM32 Nucleo-F446RE", "STM32F446", "Cortex-M4F", 128, 512),
    _row("nucleo-h743zi", "STM32 Nucleo-H743ZI", "STM32H743", "Cortex-M7", 512, 2048),
    _row("nucleo-l432kc", "STM32 Nucleo-L432KC", "STM32L432", "Cortex-M4F", 64, 256),
    _row("nucleo-l4r5zi", "STM32 Nucleo-L4R5ZI", "STM32L4R5", "Cortex-M4F", 640, 2048),
    _row("raspberry-pi-pico", "Raspberry Pi Pico", "RP2040", "Cortex-M0+", 264, 2048),
    _row("raspberry-pi-pico-2", "Raspberry Pi Pico 2", "RP2350", "Cortex-M33", 520, 4096),
    _row("sparkfun-edge", "SparkFun Edge", "Apollo3", "Cortex-M4F", 384, 1024),
    _row("teensy-4.1", "Teensy 4.1", "i.MX RT1062", "Cortex-M7", 512, 8192),
)

BY_NAME = {board.name: board for board in BOARDS}


def find_board(name: str) -> Board:
    if name not in BY_NAME:
        raise BadInput("no board {name!r}; there are {known}", name, ", ".join(BY_NAME))
    return BY_NAME[name]


def find_room(fits: str | None, ram: int | str | None, flash: int | str | None) -> Room | None:
    """The room of a board, or the given sizes; None where no limit was given."""
    if fits is None and ram is None and flash is None:
        return None
    board = None if fits is None else find_board(fits)
    sizes = [_bytes("ram", ram), _bytes("flash", flash)]
    held = (board.ram, board.flash) if board is not None else (None, None)
    room = [own if size is None else size for size, own in zip(sizes, held, strict=True)]
    return Room(room[0], room[1], board.name if board is not None else "")


def _bytes(name: str, given: int | str | None) -> int | None:
    """Bytes as typed: a microcontroller's K is 1,024."""
    if given is None:
        return None
    count = _read_bytes(str(given).strip())
    if count is None or count < 1:
        raise BadInput("{name} {given!r}: give bytes, as in 256K or 1M", name, given)
    return count


def _read_bytes(text: str) -> int | None:
    if is_whole(text):
        return int(text)
    for ends, factor in (("K", _K), ("M", _K * _K)):
        stem = text.upper().removesuffix("IB").removesuffix("B").strip()
        number = stem.removesuffix(ends)
        if stem.endswith(ends) and is_whole(number.replace(".", "", 1)):
            return int(float(number) * factor)
    return typed_bytes(text)
