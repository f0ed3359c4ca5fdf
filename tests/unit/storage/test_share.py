"""The share that the machines have, and when another one in the inventory is refused."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from ansible.module_utils.slurmstead.storage import disks, share, units

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
ADDRESSES = {"node1": "192.168.1.101", "node2": "192.168.1.102", "node3": "192.168.1.103"}
WANTED = {"host": "node3", "address": ADDRESSES["node3"], "source": "/srv/share", "path": "/share", "local": False}
NOTHING: dict[str, Any] = {"clients": [], "exported": "", "data": False, "copy_of": "", "readonly": False}


class Machine:
    """Files of a machine below a directory of the test."""

    def __init__(self, place: pathlib.Path) -> None:
        self.place = place
        self.mounts("")

    def mounts(self, *lines: str) -> None:
        (self.place / "proc/self").mkdir(parents=True, exist_ok=True)
        (self.place / "proc/self/mountinfo").write_text("".join(f"{line}\n" for line in lines if line))

    def client(self, text: str, *, enabled: bool = True) -> None:
        """Write the mount unit as the role nfs_client does."""
        wants = self.place / "units/multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (self.place / "units/share.mount").write_text(text)
        if enabled:
            (wants / "share.automount").symlink_to(self.place / "units/share.automount")

    def exports(self, directory: pathlib.Path) -> None:
        text = (GOLDEN / "nfs_server/exports").read_text().replace("/srv/share ", f"{directory} ")
        (self.place / "exports").write_text(text)


@pytest.fixture
def machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(units, "UNITS", tmp_path / "units")
    monkeypatch.setattr(disks, "PROC", tmp_path / "proc")
    monkeypatch.setattr(share, "EXPORTS", tmp_path / "exports")
    return Machine(tmp_path)


def golden(node: str) -> str:
    return (GOLDEN / f"nfs_client/share.mount@{node}").read_text()


def test_a_machine_without_units_has_no_share(machine: Machine) -> None:
    assert share.found("/srv/share", "/share") == NOTHING


def test_the_unit_of_the_role_says_what_is_mounted(machine: Machine) -> None:
    machine.client(golden("node1"))

    (client,) = share.found("/other", "/other")["clients"]
    assert client["source"] == "/srv/share"
    assert client["path"] == "/share"
    assert client["server"] in golden("node1")


def test_on_the_server_the_unit_names_no_server(machine: Machine) -> None:
    machine.client(golden("node3"))

    assert share.found("/srv/share", "/share")["clients"] == [{"server": "", "source": "/srv/share", "path": "/share"}]


def test_a_unit_that_a_removed_node_still_has_does_not_count(machine: Machine) -> None:
    machine.client(golden("node1"), enabled=False)

    assert share.found("/srv/share", "/share")["clients"] == []


def test_a_disabled_unit_that_is_mounted_counts(machine: Machine) -> None:
    machine.client(golden("node1"), enabled=False)
    machine.mounts("30 22 0:45 / /share rw shared:1 - nfs4 192.168.1.103:/srv/share rw")

    assert len(share.found("/srv/share", "/other")["clients"]) >= 1


def test_what_nfs_has_mounted_there_without_a_unit_counts(machine: Machine) -> None:
    machine.mounts("30 22 0:45 / /share rw shared:1 - nfs4 nas:/home rw")

    assert share.found("/srv/share", "/share")["clients"] == [{"server": "nas", "source": "/home", "path": "/share"}]


@pytest.mark.parametrize(("content", "data"), [((), False), (("lost+found",), False), (("home",), True)])
def test_an_exported_directory_has_data_or_not(
    machine: Machine, tmp_path: pathlib.Path, content: tuple[str, ...], data: bool
) -> None:
    for name in content:
        (tmp_path / "store" / name).mkdir(parents=True)
    machine.exports(tmp_path / "store")

    state = share.found("/srv/share", "/share")
    assert (state["exported"], state["data"]) == (str(tmp_path / "store"), data)


def test_a_move_that_was_interrupted_before_the_original_was_read_only_is_seen(machine: Machine) -> None:
    machine.mounts("30 22 8:1 / /srv/share rw - ext4 /dev/sda1 rw", "31 22 8:1 / /share ro - ext4 /dev/sda1 rw")
    assert share.found("/srv/share", "/share")["readonly"]

    machine.mounts("30 22 8:1 / /srv/share rw - ext4 /dev/sda1 rw", "31 22 8:1 / /share rw - ext4 /dev/sda1 rw")
    assert not share.found("/srv/share", "/share")["readonly"]

    drop_in = machine.place / "units/srv-share.mount.d/slurmstead-old.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Mount]\nOptions=ro\n")
    assert share.found("/srv/share", "/share")["readonly"]


def test_a_mount_that_was_made_read_only_is_told_from_a_file_system_with_errors(machine: Machine) -> None:
    machine.mounts("30 22 8:1 / /srv/share ro shared:1 - ext4 /dev/sda1 rw")
    assert share.found("/srv/share", "/share")["readonly"]

    machine.mounts("30 22 8:1 / /srv/share rw shared:1 - ext4 /dev/sda1 ro")
    assert not share.found("/srv/share", "/share")["readonly"]


def client(server: str = "192.168.1.103", source: str = "/srv/share", path: str = "/share") -> dict[str, Any]:
    return {**NOTHING, "clients": [{"server": server, "source": source, "path": path}]}


def server(source: str = "/srv/share", **state: Any) -> dict[str, Any]:
    return {**client("", source), "exported": source, "data": True, **state}


def cluster(**machines: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"node1": client(), "node2": client(), "node3": server(), **machines}


def problems(machines: dict[str, dict[str, Any]], **wanted: Any) -> list[str]:
    return share.problems(machines, {**WANTED, **wanted}, ADDRESSES)


def test_new_machines_may_get_any_share() -> None:
    assert problems({name: NOTHING for name in ADDRESSES}) == []


def test_the_share_that_is_there_is_no_problem() -> None:
    assert problems(cluster()) == []


CHANGES = {
    "another server": (
        {"host": "node1", "address": ADDRESSES["node1"]},
        ["group nfs_server: now node3, in the inventory node1"],
    ),
    "another directory": (
        {"source": "/data"},
        ["nfs_server_path and nfs_client_source: now /srv/share, in the inventory /data"],
    ),
    "another mount point": ({"path": "/data"}, ["nfs_client_path: now /share, in the inventory /data"]),
    "everything": (
        {"host": "node1", "address": ADDRESSES["node1"], "source": "/a", "path": "/b"},
        ["now node3, in the inventory node1", "now /srv/share, in the inventory /a", "now /share, in the inventory /b"],
    ),
}


@pytest.mark.parametrize(("wanted", "said"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("reached", ["all", "node1", "node3"])
def test_another_share_is_one_refusal_with_the_old_and_the_new_value(
    wanted: dict[str, Any], said: list[str], reached: str
) -> None:
    machines = {name: state for name, state in cluster().items() if reached in ("all", name)}

    (problem,) = problems(machines, **wanted)
    assert [words for words in said if words not in problem] == []
    assert problem.count("in the inventory ") == len(said)
    assert "scripts/stead move-share" in problem


def test_data_that_no_machine_mounts_yet_are_not_left_behind() -> None:
    machines = {"node1": NOTHING, "node2": NOTHING, "node3": {**NOTHING, "exported": "/srv/share", "data": True}}

    assert "now node3, in the inventory node1 (on node3)" in problems(machines, host="node1")[0]


def test_an_empty_directory_that_no_machine_mounts_may_be_left() -> None:
    machines = {"node1": NOTHING, "node2": NOTHING, "node3": {**NOTHING, "exported": "/srv/share"}}

    assert problems(machines, host="node1") == []


def test_a_server_that_left_the_inventory_is_named_by_its_address() -> None:
    machines = {"node1": client("192.168.1.9"), "node2": client("192.168.1.9"), "node3": NOTHING}

    assert "group nfs_server: now 192.168.1.9, in the inventory node3 (on node1, node2)" in problems(machines)[0]


def test_a_server_may_get_another_address() -> None:
    assert problems(cluster(node1=client("10.0.0.3"), node2=client("10.0.0.3"))) == []


def test_a_machine_that_was_off_during_a_move_does_not_stop_the_run() -> None:
    moved = {"host": "node2", "address": ADDRESSES["node2"], "source": "/data"}
    machines = {"node1": client(), "node2": server("/data"), "node3": client(ADDRESSES["node2"], "/data")}

    assert problems(machines, **moved) == []


def test_two_machines_that_export_data_stop_the_run() -> None:
    assert "now node2, in the inventory node3" in problems(cluster(node2={**client(), **server("/data")}))[0]


def test_an_incomplete_copy_stops_the_run() -> None:
    machines = cluster(node3=server(copy_of="node1:/data"))

    assert problems(machines) == [
        "node3:/srv/share is an incomplete copy of the share node1:/data: `scripts/stead move-share` completes the "
        "move; the earlier values in the inventory undo it"
    ]


def test_a_share_that_is_read_only_for_a_move_stops_the_run() -> None:
    assert "node3:/srv/share is read-only since a move" in problems(cluster(node3=server(readonly=True)))[0]


def test_containers_that_share_a_directory_have_no_server() -> None:
    machines = {name: client("") for name in ADDRESSES}

    assert problems(machines, local=True) == []
    assert problems(machines, local=True, host="node1") == []
    assert "now /srv/share, in the inventory /srv/moved" in problems(machines, local=True, source="/srv/moved")[0]


MOVED = {"host": "node1", "address": ADDRESSES["node1"], "source": "/data"}


def plan(machines: dict[str, dict[str, Any]], leave: bool = False, **wanted: Any) -> dict[str, Any]:
    return share.plan(machines, {**WANTED, **wanted}, ADDRESSES, leave)


def test_the_share_in_its_place_is_not_moved() -> None:
    found = plan(cluster())

    assert not found["problems"]
    assert not found["moves"]
    assert not found["copies"]


def test_another_server_gets_a_copy_and_every_machine_leaves_the_original() -> None:
    found = plan(cluster(), **MOVED)

    assert found["copies"]
    assert (found["origin"], found["source"], found["paths"]) == ("node3", "/srv/share", ["/share"])
    assert found["leavers"] == ["node1", "node2", "node3"]


def test_another_mount_point_needs_no_copy() -> None:
    found = plan(cluster(), path="/data")

    assert found["moves"]
    assert not found["copies"]
    assert found["origin"] == ""


STEPS = {
    "a marked copy": ({"copy_of": "node3:/srv/share"}, {}, True),
    "unmounted everywhere": ({"copy_of": "node3:/srv/share", "clients": []}, {"clients": []}, True),
    "exported": ({"copy_of": "node3:/srv/share", "exported": "/data", "data": True}, {}, False),
    "all changed over": (
        {"copy_of": "node3:/srv/share", **server("/data"), "data": True},
        client(ADDRESSES["node1"], "/data"),
        False,
    ),
}
"""What the new server and the others have after an interruption, and whether files are still copied."""


@pytest.mark.parametrize(("new", "others", "copies"), STEPS.values(), ids=STEPS)
def test_the_machines_show_how_far_an_interrupted_move_got(
    new: dict[str, Any], others: dict[str, Any], copies: bool
) -> None:
    machines = {
        "node1": {**client(), **new, "copy_of": "node3:/srv/share"},
        "node2": {**client(), **others},
        "node3": {**server(readonly=True), **others},
    }

    found = plan(machines, **MOVED)
    assert not found["problems"]
    assert found["moves"]
    assert (found["origin"], found["source"], found["copies"]) == ("node3", "/srv/share", copies)


def test_after_a_move_nothing_is_left_to_do() -> None:
    there = client(ADDRESSES["node1"], "/data")

    found = plan({"node1": server("/data"), "node2": there, "node3": there}, **MOVED)
    assert not found["moves"]


def test_a_share_whose_server_is_not_in_the_inventory_is_not_copied() -> None:
    machines = {"node1": client("192.168.1.9"), "node2": client("192.168.1.9"), "node3": NOTHING}

    assert "192.168.1.9, which is not in the inventory" in plan(machines)["problems"][0]


def test_a_lost_share_is_left() -> None:
    machines = {"node1": client("192.168.1.9"), "node2": client("192.168.1.9"), "node3": NOTHING}

    found = plan(machines, leave=True)
    assert not found["problems"]
    assert (found["moves"], found["copies"], found["origin"]) == (True, False, "")


def test_two_shares_with_data_are_not_merged() -> None:
    found = plan(cluster(node2={**client(), **server("/data")}))

    assert "node3:/srv/share and node2:/data both contain a share" in found["problems"][0]


def test_a_copy_of_another_original_is_not_continued() -> None:
    found = plan(cluster(node1={**client(), "copy_of": "node2:/old"}), **MOVED)

    assert "more than one share: node2:/old and node3:/srv/share" in found["problems"][0]


@pytest.mark.parametrize("source", ["/srv/share/moved", "/srv"])
def test_a_share_is_not_copied_into_itself(source: str) -> None:
    assert "inside" in plan(cluster(), source=source)["problems"][0]


def test_containers_copy_on_one_machine() -> None:
    machines = {name: client("") for name in ADDRESSES}

    found = plan(machines, local=True, source="/srv/moved")
    assert (found["origin"], found["source"], found["copies"]) == ("node3", "/srv/share", True)
