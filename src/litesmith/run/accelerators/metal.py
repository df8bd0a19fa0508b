"""The GPU that Metal shows, as a program of its own: a driver that crashes does so in there.

It is run by its path, with the places of Metal and of Objective-C's runtime, and imports nothing of
ours.
"""

import ctypes
import json
import sys
from ctypes import c_char_p, c_void_p

PLACES = "/System/Library/Frameworks/Metal.framework/Metal", "/usr/lib/libobjc.A.dylib"


def device(metal_place: str, objc_place: str) -> str | None:
    """The name of the GPU; None where Metal has none. May crash."""
    metal, objc = ctypes.CDLL(metal_place), ctypes.CDLL(objc_place)
    metal.MTLCreateSystemDefaultDevice.restype = c_void_p
    found = metal.MTLCreateSystemDefaultDevice()
    if not found:
        return None
    objc.sel_registerName.restype, objc.sel_registerName.argtypes = c_void_p, [c_char_p]
    # A function of no fixed arguments: each call has its own type, which Apple's ABI needs.
    ask = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p)(("objc_msgSend", objc))
    text = ctypes.CFUNCTYPE(c_char_p, c_void_p, c_void_p)(("objc_msgSend", objc))
    name = ask(found, objc.sel_registerName(b"name"))
    return text(name, objc.sel_registerName(b"UTF8String")).decode(errors="replace")


if __name__ == "__main__":
    try:
        print(json.dumps({"device": device(*sys.argv[1:3])}))
    except OSError:
        print(json.dumps({"missing": sys.argv[1]}))
