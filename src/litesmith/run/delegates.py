"""What each kind of target needs of the machine, one row a kind."""

import ctypes
import sys
from collections.abc import Callable
from ctypes import byref, c_uint32, c_void_p

from litesmith.errors import CannotRun
from litesmith.run.target import Target


def _always() -> str:
    return ""


def _vulkan() -> str:
    """Why no GPU can be used; "" where one can. Asked here, because the runtime's answer to a
    missing GPU is a place in its source."""
    if sys.platform == "darwin":
        return ""
    name = "vulkan-1.dll" if sys.platform == "win32" else "libvulkan.so.1"
    try:
        vulkan = ctypes.CDLL(name)
    except OSError:
        return f"there is no Vulkan loader ({name}); install libvulkan1 and the GPU's driver"
    instance, count = c_void_p(), c_uint32()
    # VkInstanceCreateInfo with everything empty but its type, which is 1.
    info = (ctypes.c_uint64 * 8)(1)
    if vulkan.vkCreateInstance(byref(info), None, byref(instance)) != 0:
        return "Vulkan finds no driver; install the GPU's Vulkan driver"
    vulkan.vkEnumeratePhysicalDevices(instance, byref(count), None)
    vulkan.vkDestroyInstance(instance, None)
    return "" if count.value else "Vulkan finds no GPU; install its driver or use cpu"


# kind -> why it cannot be used here; "" where it can
PROBES: dict[str, Callable[[], str]] = {"cpu": _always, "gpu": _vulkan, "numpy": _always}


def refuse_unusable(target: Target) -> None:
    """Raises where this machine does not have what the target needs."""
    why = PROBES[target.kind]()
    if why:
        raise CannotRun(f"target {target}: {why}")
