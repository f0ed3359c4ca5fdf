"""A blank server becomes a worker: control finds it, installs it over the network, and gives it jobs.

STEAD_LAB=NAME pytest tests/lab/install
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from tests import blank_pc, disk_images
from tests.lab.install.conftest import NAME, REACH, Rack
from tests.lab.install.server import MAC

pytestmark = pytest.mark.kernel

ASKING = 600
"""Seconds until a server that was switched on has asked for an address."""


def test_a_blank_server_becomes_a_worker(lab: Any, rack: Rack) -> None:
    server, started = rack.server, time.monotonic()
    before = blank_pc.write_data(server.disk)
    server.on = True
    lab.insist(lab.control, f"grep {MAC} /var/lib/misc/slurmstead.leases", ASKING)
    assert MAC in rack.stead("discover")
    rack.stead("discover", f"{MAC}={NAME}", "--yes")
    rack.write(f"host_vars/{NAME}.yml", {**REACH, **rack.bmc})
    rack.hosts.write_text(rack.hosts.read_text().replace('install_disk: ""', f"install_disk: {blank_pc.SERIAL}"))

    said = rack.stead("install", NAME, "--restart", code=4)
    server.process.wait(300)
    assert "expected a blank disk, found /dev/sda" in said and "signature ext4" in said
    assert disk_images.checksum(server.disk) == before
    print(f"refused {time.monotonic() - started:.0f} s after the server was switched on")

    server.erase()
    started = time.monotonic()
    said = rack.stead("install", NAME)
    lab.insist(lab.control, f"sinfo --noheader --nodes={NAME} --format=%T | grep -x idle", 60)
    print(f"idle {time.monotonic() - started:.0f} s after stead install began")
    assert lab.user(f"srun --nodelist={NAME} cat /etc/hostname").strip() == NAME

    learned = [line for line in said.splitlines() if line.startswith(("      os_serial:", "      os_host_key:"))]
    assert len(learned) == 2
    serial = f"install_disk: {blank_pc.SERIAL}\n"
    rack.hosts.write_text(rack.hosts.read_text().replace(serial, serial + "\n".join([*learned, ""])))
    with contextlib.closing(type(lab)(rack.hosts)) as grown:
        run = grown.ansible()
    assert run.code == 0, run.output[-5000:]
    # The other workers learn its name.
    assert not {NAME, lab.control} & run.changed.keys(), run.changed
