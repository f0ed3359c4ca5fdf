"""A package is missing, and cannot be had at once: the mirror does not answer, or another package manager is at work.

STEAD_LAB=NAME pytest tests/lab/faults/test_packages.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.lab.faults.fault import Fault, survive

PACKAGE = "python3-venv"
"""One that workers need, and no other package and no daemon."""

REMOVE = f"DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=120 remove {PACKAGE} && apt-get clean"

SETTINGS = "/etc/apt/apt.conf.d/99slurmstead-test"
# Nobody listens on port 9 of loopback.
UNREACHABLE = f"""
{REMOVE}
printf 'Acquire::%s::Proxy "http://127.0.0.1:9";\\n' http https > {SETTINGS}
"""

LOCKED_SECONDS = 180
LOCK = f"""
{REMOVE}
cat > /var/tmp/slurmstead-lock << 'END'
import fcntl, time
with open("/var/lib/dpkg/lock-frontend", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    open("/run/slurmstead-locked", "w").close()
    time.sleep({LOCKED_SECONDS})
END
systemd-run --quiet --collect --unit=slurmstead-lock python3 /var/tmp/slurmstead-lock
until test -e /run/slurmstead-locked; do sleep 1; done
"""
UNLOCK = "systemctl stop slurmstead-lock; rm -f /var/tmp/slurmstead-lock /run/slurmstead-locked"

INSTALL = "packages : Install missing packages"


def _installed(name: str) -> Callable[[Any], None]:
    def look(lab: Any) -> None:
        said = lab.root(name, f"dpkg-query --show --showformat='${{db:Status-Status}}' {PACKAGE}")
        assert said == "installed", f"{PACKAGE} on {name}: {said}"

    return look


def test_a_mirror_that_does_not_answer_is_named(lab: Any) -> None:
    name = lab.workers[0]
    told = rf"(?s)fatal: \[{name}\](?:(?!fatal: ).)*?(Failed\s+to\s+fetch|Failed\s+to\s+update\s+apt\s+cache)"
    fault = Fault("mirror unreachable", name, UNREACHABLE, f"rm -f {SETTINGS}", told, after=_installed(name))

    assert survive(lab, [fault]) == {}


def test_a_run_waits_for_another_package_manager(lab: Any) -> None:
    name = lab.workers[1]
    fault = Fault("apt lock held", name, LOCK, told=f"{name}: {INSTALL}", after=_installed(name), clean=UNLOCK)

    assert survive(lab, [fault]) == {}
