# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A machine's topology according to hwloc: slurmd counts sockets, cores and threads with it, not with /sys.

slurmd depends on the library but not on its tools, so this calls the library directly.
"""

from __future__ import annotations

import ctypes
from typing import Any
from xml.etree import ElementTree

LIBRARY = "libhwloc.so.15"
"""hwloc 2; all supported releases have it."""

WHOLE_SYSTEM = 1
"""HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED: also CPUs that this process may not use."""
KEEP_NONE = 1
"""HWLOC_TYPE_FILTER_KEEP_NONE"""
LEFT_OUT = (4, 5, 7, 8)
"""HWLOC_OBJ_L1CACHE, L2, L4 and L5, which slurmd leaves out; without them hwloc drops groups that add nothing."""

COUNTED = {
    "packages": "Package",
    "groups": "Group",
    "l3_caches": "L3Cache",
    "numa_nodes": "NUMANode",
    "cores": "Core",
    "pus": "PU",
}
"""Key of the result, by hwloc's type."""


def export(library: str = LIBRARY) -> str | None:
    """Return this machine's topology as XML, loaded as slurmd loads it; None without the library or if it fails.

    Source: xcpuinfo_hwloc_topo_load in Slurm's src/slurmd/common/xcpuinfo.c.
    """
    try:
        hwloc = ctypes.CDLL(library)
    except OSError:
        return None
    topology, text, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    hwloc.hwloc_topology_set_flags.argtypes = [ctypes.c_void_p, ctypes.c_ulong]
    hwloc.hwloc_topology_set_type_filter.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    hwloc.hwloc_topology_load.argtypes = [ctypes.c_void_p]
    hwloc.hwloc_topology_export_xmlbuffer.argtypes = [
        *(ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int)),
        ctypes.c_ulong,
    ]
    hwloc.hwloc_free_xmlbuffer.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    hwloc.hwloc_topology_destroy.argtypes = [ctypes.c_void_p]
    if hwloc.hwloc_topology_init(ctypes.byref(topology)):
        return None
    try:
        hwloc.hwloc_topology_set_flags(topology, WHOLE_SYSTEM)
        for kind in LEFT_OUT:
            hwloc.hwloc_topology_set_type_filter(topology, kind, KEEP_NONE)
        if hwloc.hwloc_topology_load(topology):
            return None
        if hwloc.hwloc_topology_export_xmlbuffer(topology, ctypes.byref(text), ctypes.byref(size), 0):
            return None
        # The size counts the null byte at the end.
        xml = ctypes.string_at(text, size.value).rstrip(b"\0").decode(errors="replace")
        hwloc.hwloc_free_xmlbuffer(topology, text)
        return xml
    finally:
        hwloc.hwloc_topology_destroy(topology)


def counts(xml: str) -> dict[str, Any] | None:
    """Return the number of objects of each kind, and the candidates for sockets; None if it is not XML.

    `numa_parent` is the type of the object that holds the first NUMA node: a socket with
    `SlurmdParameters=numa_node_as_socket`. `l3_cores` is the number of cores below an L3 cache: all of them can be in
    sockets with `l3cache_as_socket` only if it is `cores`.
    """
    try:
        root = ElementTree.fromstring(xml.strip())
    except ElementTree.ParseError:
        return None
    objects = [element for element in root.iter("object")]
    found: dict[str, Any] = {
        name: sum(element.get("type") == kind for element in objects) for name, kind in COUNTED.items()
    }
    caches = [element for element in objects if element.get("type") == "L3Cache"]
    found["l3_cores"] = sum(child.get("type") == "Core" for cache in caches for child in cache.iter("object"))
    found["numa_parent"] = _parent_of_first(root, "NUMANode")
    return found


def _parent_of_first(root: ElementTree.Element, kind: str) -> str | None:
    """Return the type of the object that holds the object of a type with the lowest number (`os_index`)."""
    pairs = [
        (int(child.get("os_index") or 0), str(parent.get("type")))
        for parent in root.iter("object")
        for child in parent.findall("object")
        if child.get("type") == kind
    ]
    # For equal numbers, min() returns the first in document order.
    return min(pairs, key=lambda pair: pair[0])[1] if pairs else None


def look(library: str = LIBRARY) -> dict[str, Any] | None:
    """Return `counts` of this machine; None if hwloc fails."""
    xml = export(library)
    return counts(xml) if xml else None
