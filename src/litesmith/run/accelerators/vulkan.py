"""The GPUs that Vulkan shows, as a program of its own: a driver that crashes does so in there.

It is run by its path, with the name of the loader, and imports nothing of ours, so that it answers
in the time of a bare Python.
"""

import ctypes
import json
import sys
from ctypes import byref, c_char, c_uint8, c_uint32, c_void_p

_VULKAN_1_1 = (1 << 22) | (1 << 12)
_APPLICATION, _INSTANCE, _PROPERTIES, _DRIVER = 0, 1, 1_000_059_001, 1_000_196_000
_SOFTWARE = 4  # VK_PHYSICAL_DEVICE_TYPE_CPU


class _Application(ctypes.Structure):
    _fields_ = (
        ("kind", c_uint32),
        ("next", c_void_p),
        ("name", c_void_p),
        ("version", c_uint32),
        ("engine", c_void_p),
        ("engine_version", c_uint32),
        ("api", c_uint32),
    )


class _Instance(ctypes.Structure):
    _fields_ = (
        ("kind", c_uint32),
        ("next", c_void_p),
        ("flags", c_uint32),
        ("application", c_void_p),
        ("layers", c_uint32),
        ("layer_names", c_void_p),
        ("extensions", c_uint32),
        ("extension_names", c_void_p),
    )


class _Driver(ctypes.Structure):
    _fields_ = (
        ("kind", c_uint32),
        ("next", c_void_p),
        ("number", c_uint32),
        ("name", c_char * 256),
        ("info", c_char * 256),
        ("conformance", c_uint8 * 4),
    )


class _Properties(ctypes.Structure):
    """VkPhysicalDeviceProperties2; its limits, which nobody reads here, are room."""

    _fields_ = (
        ("kind", c_uint32),
        ("next", c_void_p),
        ("api", c_uint32),
        ("version", c_uint32),
        ("vendor", c_uint32),
        ("device", c_uint32),
        ("type", c_uint32),
        ("name", c_char * 256),
        ("room", c_uint8 * 1024),
    )


def devices(loader: str) -> list[dict[str, object]] | None:
    """Name and driver of each GPU; None where Vulkan has no driver at all. May crash."""
    vulkan = ctypes.CDLL(loader)
    application = _Application(_APPLICATION, None, None, 0, None, 0, _VULKAN_1_1)
    wanted = _Instance(_INSTANCE, None, 0, ctypes.addressof(application), 0, None, 0, None)
    instance, count = c_void_p(), c_uint32()
    if vulkan.vkCreateInstance(byref(wanted), None, byref(instance)) != 0:
        return None
    vulkan.vkEnumeratePhysicalDevices(instance, byref(count), None)
    handles = (c_void_p * count.value)()
    vulkan.vkEnumeratePhysicalDevices(instance, byref(count), handles)
    return [_device(vulkan, handle) for handle in handles]


def _device(vulkan: ctypes.CDLL, handle: int | None) -> dict[str, object]:
    driver = _Driver(_DRIVER)
    told = _Properties(_PROPERTIES, ctypes.addressof(driver))
    vulkan.vkGetPhysicalDeviceProperties2(c_void_p(handle), byref(told))
    return {
        "name": told.name.decode(errors="replace"),
        "driver": f"{driver.name.decode(errors='replace')} {driver.info.decode(errors='replace')}",
        "is_software": told.type == _SOFTWARE,
    }


if __name__ == "__main__":
    try:
        print(json.dumps({"devices": devices(sys.argv[1])}))
    except OSError:
        print(json.dumps({"missing": sys.argv[1]}))
