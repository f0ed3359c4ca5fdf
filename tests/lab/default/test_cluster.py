"""Each machine is what the inventory says it is."""

from __future__ import annotations

from typing import Any

import pytest

Facts = dict[str, Any]


def runs(facts: Facts, unit: str) -> bool:
    """Whether a unit runs now and after the next boot."""
    known = facts["units"][unit]
    return (known["ActiveState"], known["UnitFileState"]) == ("active", "enabled")


def test_no_unit_has_failed(facts: Facts) -> None:
    assert facts["failed"] == []


@pytest.mark.parametrize("unit", ["ssh", "chrony", "munge", "share.automount"])
def test_what_every_machine_needs_runs(facts: Facts, unit: str) -> None:
    assert runs(facts, unit)


def test_each_daemon_runs_where_it_belongs_and_nowhere_else(lab: Any, node: str, facts: Facts) -> None:
    expected = {"slurmctld": node == lab.control, "slurmd": node in lab.workers, "nfs-server": node == lab.server}

    assert {unit: runs(facts, unit) for unit in expected} == expected


def test_the_machine_has_the_name_of_the_inventory(node: str, facts: Facts) -> None:
    assert (facts["name"], facts["hostname"]) == (node, node)


def test_every_name_leads_to_the_address_of_the_inventory(lab: Any, facts: Facts) -> None:
    entries = [line.split() for line in facts["hosts"].splitlines() if line and not line.startswith("#")]
    pairs = [(name, address) for address, *names in entries for name in names if name in lab.names]

    assert sorted(pairs) == sorted((name, lab.address(name)) for name in lab.names)
    assert "127.0.1.1" not in facts["hosts"], "Slurm's daemons would tell each other to come to loopback"


def test_the_time_comes_from_control(lab: Any, node: str, facts: Facts) -> None:
    # chronyc -c: mode, state, address, stratum, poll, reach (octal), ...
    sources = {source[2]: int(source[5], 8) for source in facts["time_sources"]}

    if node == lab.control:
        assert not set(sources) & {lab.address(name) for name in lab.names}
    else:
        assert list(sources) == [lab.address(lab.control)]
        assert sources[lab.address(lab.control)] > 0, "control has not answered"


@pytest.mark.kernel  # Containers have no NFS server.
def test_no_user_can_take_the_place_of_the_nfs_server(lab: Any) -> None:
    refused = "python3 -c 'import socket; socket.create_server((\"\", {}))' 2>&1 | grep --count PermissionError || true"
    taken, free = (lab.host(lab.server).check_output(refused.format(port)) for port in (2049, 2050))

    assert (taken, free) == ("1", "0")


@pytest.mark.kernel  # Containers have no NFS server.
def test_the_share_is_served_by_two_threads_for_each_client(lab: Any) -> None:
    assert int(lab.root(lab.server, "cat /proc/fs/nfsd/threads")) == 16 >= 2 * len(lab.names)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("passwordauthentication", "no"),
        ("kbdinteractiveauthentication", "no"),
        ("permitrootlogin", "without-password"),
        ("pubkeyauthentication", "yes"),
        ("authorizedkeysfile", ".ssh/authorized_keys /etc/ssh/authorized_keys.d/%u"),
    ],
)
def test_only_keys_log_in(facts: Facts, option: str, value: str) -> None:
    assert facts["sshd"][option] == value


def test_the_key_is_the_same_everywhere_and_only_munge_reads_it(lab: Any, facts: Facts) -> None:
    key = facts["key"]

    assert (key["mode"], key["directory"]) == ("0400 munge:munge", "0700 munge:munge")
    assert key["sha256"] == lab.facts[lab.control]["key"]["sha256"]


def test_the_share_is_mounted_on_first_use(lab: Any, node: str, facts: Facts) -> None:
    automount, mount = facts["share"]

    assert automount["type"] == "autofs"
    if node == lab.server:
        assert (mount["source"], mount["type"]) == (facts["store"][-1]["source"], facts["store"][-1]["type"])
    else:
        assert (mount["source"], mount["type"]) == (f"{lab.address(lab.server)}:/srv/share", "nfs4")
        assert {"rw", "hard"} <= set(mount["options"])


def test_the_share_is_kept_on_a_disk_of_its_own(lab: Any) -> None:
    (store,) = lab.facts[lab.server]["store"]

    assert (store["source"], store["type"]) == ("/dev/mapper/share-share", "ext4")


def test_limits_are_those_of_control_groups_version_2(facts: Facts) -> None:
    assert facts["cgroup"][-1]["type"] == "cgroup2"


def test_control_has_the_only_copy_of_the_configuration(lab: Any, node: str, facts: Facts) -> None:
    assert (facts["modes"]["/etc/slurm/slurm.conf"] is not None) is (node == lab.control)


def test_a_worker_has_fetched_the_configuration(lab: Any, worker: str) -> None:
    assert lab.facts[worker]["modes"]["/run/slurm/conf/slurm.conf"] is not None


def test_slurmctld_keeps_its_state_for_itself(lab: Any) -> None:
    assert lab.facts[lab.control]["modes"]["/var/lib/slurm/slurmctld"] == "0700 slurm:slurm"


def test_scratch_is_a_volume_where_a_disk_is_declared_and_a_directory_elsewhere(lab: Any, worker: str) -> None:
    declared = bool(lab.variables[worker].get("scratch_disks"))

    mounted = [(mount["source"], mount["type"]) for mount in lab.facts[worker]["scratch"]]

    assert mounted == [("/dev/mapper/scratch-scratch", "ext4")] * declared
    assert lab.facts[worker]["modes"]["/scratch"] == "0711 root:root"


def test_slurmd_passes_no_narrow_limit_on_to_jobs(lab: Any, worker: str) -> None:
    limits = lab.facts[worker]["limits"]

    assert limits["Max locked memory"] == "unlimited"
    assert limits["Max stack size"] == "unlimited"
    assert int(limits["Max open files"]) >= 131072


def test_a_user_is_the_same_everywhere_and_has_no_password(lab: Any, node: str, facts: Facts) -> None:
    for user in lab.variables[node]["accounts_users"]:
        seen = facts["accounts"][user["name"]]
        expected = {"uid": user["uid"], "gid": user["uid"], "home": f"/share/home/{user['name']}", "locked": True}
        assert seen == expected


def test_upgrades_do_not_take_daemons_from_under_jobs(facts: Facts) -> None:
    excluded = {line for line in facts["apt"] if line.startswith("Unattended-Upgrade::Package-Blacklist::")}

    assert {
        f'Unattended-Upgrade::Package-Blacklist:: "^{name}";' for name in ("slurm", "munge", "libmunge")
    } <= excluded


ROTATE = """
import contextlib, json, os, pathlib, subprocess, sys, time
pid, log = sys.argv[1], sys.argv[2]
def open_files():
    for path in pathlib.Path("/proc", pid, "fd").iterdir():
        # The daemon closes files meanwhile.
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(path)
subprocess.run(["logrotate", "--force", "/etc/logrotate.d/slurmstead"], check=True, timeout=60)
deadline = time.monotonic() + 30
while True:
    files = list(open_files())
    if log in files or time.monotonic() > deadline:
        break
    time.sleep(0.2)
print(json.dumps(sorted(file for file in files if file.startswith("/var/log/slurm/"))))
"""


def test_a_daemon_writes_to_the_new_log_after_rotation(lab: Any, node: str) -> None:
    """Some packages' rules leave the daemon with the rotated file, others make it reread its configuration."""
    daemon = "slurmctld" if node == lab.control else "slurmd"
    pid, log = lab.pids()[node][daemon], f"/var/log/slurm/{daemon}.log"

    assert lab.python(node, ROTATE, pid, log) == [log]
    assert lab.pids()[node][daemon] == pid
