"""Compiled gettext files: messages and their translations."""

import struct


def read_mo(content: bytes) -> dict[str, str]:
    """Every message of a compiled catalogue with its translation.

    The standard library looks messages up and has no way to list them, which templates need.
    """
    order = "<" if content[:4] == b"\xde\x12\x04\x95" else ">"
    count, messages, translations = struct.unpack_from(f"{order}3I", content, 8)

    def text(table: int, place: int) -> str:
        length, start = struct.unpack_from(f"{order}2I", content, table + 8 * place)
        return content[start : start + length].decode()

    found = {text(messages, place): text(translations, place) for place in range(count)}
    return {message: said for message, said in found.items() if message}
