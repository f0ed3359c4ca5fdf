"""Two machines behind a router, with the real apt-cacher-ng and apt: each package is downloaded once."""

from __future__ import annotations

import pathlib
import re
import shlex
from collections.abc import Iterator

import jinja2
import pytest

from ansible.module_utils.slurmstead.network import table
from tests.native.network import PACKAGES, Network
from tests.native.test_network import INSIDE, TCP, write

pytestmark = pytest.mark.slow

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "roles/package_cache/templates"
SERVER = "10.77.0.1"
ARCHIVE = """
import functools, http.server
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        open("/run/asked", "a").write(self.client_address[0] + " " + self.path + "\\n")
        super().do_GET()
http.server.ThreadingHTTPServer(("0.0.0.0", 80), functools.partial(Handler, directory="/srv/archive")).serve_forever()
"""
CACHE = ("apt-cacher-ng", "-c", "/etc/apt-cacher-ng", "ForeGround=1")


def render(name: str) -> str:
    """The text that the role makes of a template."""
    environment = jinja2.Environment(keep_trailing_newline=True)
    environment.filters["comment"] = lambda text, kind="#": ("// " if kind == "c" else "# ") + text
    text = environment.from_string((TEMPLATES / f"{name}.j2").read_text())
    return text.render(ansible_managed="managed", package_cache_server=SERVER)


def wait(net: Network, on: str, address: str, port: int) -> None:
    """Wait until a server listens that says nothing by itself."""
    probe = f"for i in $(seq 300); do (: < /dev/tcp/{address}/{port}) 2>/dev/null && exit; sleep 0.2; done; exit 1"
    net.run("bash", "-c", probe, on=on)


@pytest.fixture(scope="module")
def net(release: str) -> Iterator[Network]:
    """The router `control` with the cache between an archive outside, and `node1` and `node2`."""
    with Network(release, tuple(sorted((*PACKAGES, "apt", "apt-cacher-ng", "systemd")))) as net:
        for name in ("control", "outside", "node1", "node2"):
            net.machine(name)
        net.cable("control", "out0", "outside", "eth0")
        net.run("ip", "address", "add", "192.168.1.7/24", "dev", "out0", on="control")
        net.run("ip", "address", "add", "192.168.1.1/24", "dev", "eth0", on="outside")
        net.plug("control", "in0", [f"{SERVER}/24"])
        for number in (1, 2):
            net.plug(f"node{number}", "eth0", [f"10.77.0.1{number}/24"])
            net.run("ip", "route", "add", "default", "via", SERVER, on=f"node{number}")
        net.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward", on="control")
        net.run("nft", "--file", "-", on="control", text=table.text(INSIDE))
        net.run("mkdir", "-p", "/srv/archive/debian/pool", "/usr/local/libexec/slurmstead")
        write(net, "/etc/apt-cacher-ng/zz_slurmstead.conf", render("acng.conf"))
        write(net, "/usr/local/libexec/slurmstead/apt-proxy", render("apt-proxy.sh"))
        write(net, "/etc/apt/apt.conf.d/53slurmstead-cache", render("apt.conf"))
        net.ask("python3", "-c", ARCHIVE, on="outside", stays=True)
        wait(net, "outside", "127.0.0.1", 80)
        yield net


def download(net: Network, on: str, name: str) -> list[str]:
    """Let apt of a machine download a package; return who asked the archive for it."""
    write(net, f"/srv/archive/debian/pool/{name}", name * 1000)
    net.run("sh", "-c", ": > /run/asked")
    url = f"http://192.168.1.1/debian/pool/{name}"
    net.run("/usr/lib/apt/apt-helper", "download-file", url, f"/run/{on}.deb", on=on)
    assert net.run("cat", f"/run/{on}.deb") == name * 1000
    net.run("rm", f"/run/{on}.deb")
    return [line.split()[0] for line in net.run("cat", "/run/asked").splitlines() if line.endswith(name)]


def test_without_the_cache_apt_downloads_as_before(net: Network) -> None:
    assert download(net, "node1", "first_1_all.deb") == ["192.168.1.7"]


def test_a_package_is_downloaded_once(net: Network) -> None:
    net.ask(*CACHE, on="control", stays=True)
    wait(net, "node1", SERVER, 3142)

    assert download(net, "node1", "second_1_all.deb") == ["192.168.1.7"]
    assert download(net, "node2", "second_1_all.deb") == []
    assert download(net, "control", "second_1_all.deb") == []


def test_the_outside_does_not_reach_the_cache(net: Network) -> None:
    assert net.ask("python3", "-c", TCP, "192.168.1.7", "3142", on="outside")[0] != 0
    net.run("bash", "-c", f": < /dev/tcp/{SERVER}/3142", on="node2")


def test_the_cache_has_no_page_that_deletes(net: Network) -> None:
    ask = f"import urllib.request as u; print(u.urlopen('http://{SERVER}:3142/acng-report.html').read().decode())"

    assert "Delete" not in net.ask("python3", "-c", ask, on="node1")[1]


def test_the_cache_loses_what_no_machine_asks_for(net: Network) -> None:
    for name in ("used_1_all.deb", "unused_1_all.deb"):
        download(net, "node1", name)
    net.run("sh", "-c", "find /var/cache/apt-cacher-ng -type f -exec touch --date='100 days ago' {} +")
    assert download(net, "node2", "used_1_all.deb") == []
    # The test cannot set the third time, that of the last change of the file's attributes.
    write(net, "/etc/tmpfiles.d/slurmstead-cache.conf", render("tmpfiles.conf").replace("90d", "am:90d"))
    net.run("systemd-tmpfiles", "--clean", "slurmstead-cache.conf")

    assert download(net, "node2", "used_1_all.deb") == []
    assert download(net, "node2", "unused_1_all.deb") == ["192.168.1.7"]


def test_the_unit_does_not_start_before_its_address_is_there(net: Network) -> None:
    start = re.search(r"^ExecStartPre=(.*)", render("apt-cacher-ng.service"), re.MULTILINE)
    assert start
    command = shlex.split(start[1])

    assert net.ask(*command, on="control")[0] == 0
    assert net.ask(*command, on="node1")[0] != 0
