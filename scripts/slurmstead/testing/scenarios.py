"""The scenarios: each directory of tests/lab on a lab, with a Debian release."""

import dataclasses
import itertools
import pathlib
from collections.abc import Iterable

from slurmstead.errors import UsageError
from slurmstead.paths import LAB_INVENTORY, ROOT

LAB_TESTS = ROOT / "tests" / "lab"
NATIVE_TESTS = ROOT / "tests" / "native"

CHECKS = "checks"
NATIVE = "native"
"""The lines of the table that are not scenarios: the checks of the tree, and tests/native."""

FIRST = "default"
"""This scenario creates its lab with molecule; later scenarios use the same lab."""

RK1_INVENTORY = ROOT / "inventory" / "lab-rk1"

KERNEL = "kernel"
"""pytest's mark of tests that need a machine: its kernel (NFS, LVM, cgroups), clock, disks or memory, or a boot."""


@dataclasses.dataclass(frozen=True, order=True)
class Kind:
    """The properties of a lab; scenarios of one kind share a lab.

    `native`: containers instead of virtual machines; tests that are marked as KERNEL are left out.
    `freezes`: disks that QEMU can save, so the configured lab is frozen once and thawed when a scenario destroyed it.
    """

    release: str = "bookworm"
    inventory: pathlib.Path = LAB_INVENTORY
    native: bool = False
    freezes: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables that select this kind of lab."""
        bus = {"STEAD_LAB_BUS": "virtio"} if self.freezes else {}
        return {"STEAD_LAB_RELEASE": self.release, **bus}

    @property
    def name(self) -> str:
        """The name of this kind in the table."""
        return f"{self.release} native" if self.native else self.release


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A directory of tests/lab and the lab that it needs.

    `destroys`: the lab must be configured again, or replaced, before the next scenario. `bare`: its tests make the
    cluster, on new machines without its packages. `options` are pytest's.
    """

    name: str
    kind: Kind = Kind()
    destroys: bool = False
    bare: bool = False
    options: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name of its line in the table."""
        return f"{self.name} {self.kind.name}"


FROZEN = Kind(freezes=True)
TRIXIE = Kind("trixie")
NATIVE_LAB = Kind(native=True)
NATIVE_TRIXIE = Kind("trixie", native=True)

NEEDS_KERNEL = ("-m", KERNEL)
"""Options of a scenario whose other tests run on containers."""

SCENARIOS = (
    Scenario("default"),
    Scenario("health"),
    Scenario("disks"),
    Scenario("reboot", destroys=True),
    Scenario("smoke"),
    Scenario("doctor"),
    Scenario("drop_ins", NATIVE_LAB),
    Scenario("accounting", NATIVE_LAB),
    Scenario("firewall", NATIVE_LAB),
    Scenario("login", NATIVE_LAB),
    Scenario("discover", NATIVE_LAB),
    Scenario("power", NATIVE_LAB, destroys=True),
    Scenario("limit", NATIVE_LAB),
    Scenario("people", NATIVE_LAB),
    Scenario("sandbox", NATIVE_LAB),
    Scenario("gate", NATIVE_LAB),
    Scenario("submit", NATIVE_LAB),
    Scenario("backup", NATIVE_LAB),
    Scenario("secrets", NATIVE_LAB, options=("-o", "faulthandler_timeout=5400")),
    Scenario("operations", NATIVE_LAB, destroys=True),
    Scenario("share", NATIVE_LAB, destroys=True),
    Scenario("faults", NATIVE_LAB, destroys=True),
    Scenario("interrupted", NATIVE_LAB, destroys=True),
    Scenario("site", NATIVE_LAB, destroys=True, bare=True),
    # It installs all packages on machines that have none.
    Scenario("first_run", NATIVE_LAB, destroys=True, options=("-o", "faulthandler_timeout=5400")),
    # It installs JupyterHub and builds an image.
    Scenario("course", NATIVE_LAB, destroys=True, bare=True, options=("-o", "faulthandler_timeout=5400")),
    # It makes a cluster of an earlier commit first.
    Scenario("previous", NATIVE_LAB, destroys=True, options=("-o", "faulthandler_timeout=5400")),
    # scaling.py has the tables of docs/engines.md; its name does not begin with test_, so it is named here.
    Scenario("engines", NATIVE_LAB, options=("tests/lab/engines/scaling.py",)),
    Scenario("faults", FROZEN, destroys=True, options=NEEDS_KERNEL),
    Scenario("interrupted", FROZEN, destroys=True, options=NEEDS_KERNEL),
    # It builds the system of a new machine on an emulated control.
    Scenario("install", FROZEN, destroys=True, options=("-o", "faulthandler_timeout=5400")),
    Scenario("login", FROZEN, destroys=True, options=NEEDS_KERNEL),
    Scenario("operations", FROZEN, destroys=True, options=NEEDS_KERNEL),
    Scenario("power", FROZEN, destroys=True),
    Scenario("router", FROZEN, destroys=True),
    # The kernel's test alone: it moves the share from wherever it is.
    Scenario("share", FROZEN, destroys=True, options=NEEDS_KERNEL),
    Scenario("default", TRIXIE),
    Scenario("smoke", TRIXIE),
    Scenario("firewall", NATIVE_TRIXIE),
    Scenario("gate", NATIVE_TRIXIE),
    Scenario("operations", NATIVE_TRIXIE, destroys=True),
    Scenario("backup", NATIVE_TRIXIE),
    Scenario("site", NATIVE_TRIXIE, destroys=True, bare=True),
    Scenario("course", NATIVE_TRIXIE, destroys=True, bare=True, options=("-o", "faulthandler_timeout=5400")),
    Scenario("previous", NATIVE_TRIXIE, destroys=True, options=("-o", "faulthandler_timeout=5400")),
    Scenario("rk3588", Kind("trixie", RK1_INVENTORY)),
)
"""All scenarios, in the order in which they run on their lab."""


def choose(names: Iterable[str]) -> list[Scenario]:
    """Return the scenarios of these names on all their labs, and single lines of the table; all of them without a name.

    :raises UsageError: no scenario or line has that name
    """
    wanted = set(names) - {CHECKS, NATIVE}
    known = {scenario.name for scenario in SCENARIOS}
    unknown = wanted - known - {scenario.key for scenario in SCENARIOS}
    if unknown:
        raise UsageError(
            f"expected names of scenarios, found {', '.join(sorted(unknown))}",
            f"There are {', '.join([CHECKS, NATIVE, *sorted(known)])}.",
        )
    return [scenario for scenario in SCENARIOS if not names or {scenario.name, scenario.key} & wanted]


def by_kind(scenarios: Iterable[Scenario]) -> list[tuple[Kind, list[Scenario]]]:
    """Return the scenarios grouped by the lab that they share."""
    order = [scenario.kind for scenario in SCENARIOS]
    ordered = sorted(scenarios, key=lambda scenario: order.index(scenario.kind))
    return [(kind, list(group)) for kind, group in itertools.groupby(ordered, key=lambda scenario: scenario.kind)]
