"""The program of a quiet node, beside a tree of files and a systemctl that notes what it is told."""

from __future__ import annotations

import json
import pathlib

import pytest

from ansible.module_utils.slurmstead.quiet import kernel, program
from ansible.module_utils.slurmstead.quiet.kernel import Write
from ansible.module_utils.slurmstead.quiet.units import Timer

GOVERNOR = f"{kernel.CPU}/cpufreq/policy0/scaling_governor"
UPDATE = "/system.slice/apt-daily.service"
FREEZE = f"sys/fs/cgroup{UPDATE}/cgroup.freeze"
CRON = "sys/fs/cgroup/system.slice/cron.service/cgroup.freeze"
FILES = {
    GOVERNOR: "ondemand",
    f"{kernel.CPU}/cpufreq/policy0/scaling_available_governors": "ondemand performance",
    kernel.BOOST: "1",
    FREEZE: "0",
    CRON: "0",
    "etc/slurmstead/quiet.json": json.dumps({"services": ["cron.service", "atd.service"], "keep": ["certbot.timer"]}),
}

SYSTEMCTL = """#!/bin/sh
echo "$*" >>"$STEAD_NOTES"
case "$*" in
    show*--property=Unit*timer) cat "$STEAD_TIMERS" ;;
    show*) cat "$STEAD_SERVICES" ;;
esac
"""
TIMERS = """\
Id=apt-daily.timer
ActiveState=active
Transient=no
UnitFileState=enabled
Unit=apt-daily.service

Id=certbot.timer
ActiveState=active
Transient=no
UnitFileState=enabled
Unit=certbot.service

Id=run-r1.timer
ActiveState=active
Transient=yes
UnitFileState=transient
Unit=run-r1.service

Id=fstrim.timer
ActiveState=inactive
Transient=no
UnitFileState=disabled
Unit=fstrim.service
"""
SERVICES = f"""\
Id=apt-daily.service
ActiveState=activating
ControlGroup={UPDATE}

Id=atd.service
ActiveState=inactive
ControlGroup=

Id=cron.service
ActiveState=active
ControlGroup=/system.slice/cron.service
"""


class Node:
    """A node with this tree."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        (root / "run").mkdir()
        self.write(FILES)

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def told(self) -> list[str]:
        """Return what systemctl was told to change since the last call."""
        notes = self.root / "notes"
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.write_text("")
        return [line for line in lines if not line.startswith("show ")]

    def state(self) -> tuple[str, ...]:
        return (self.read(GOVERNOR), self.read(kernel.BOOST), self.read(FREEZE))


@pytest.fixture
def node(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node on which apt-daily.service runs."""
    node = Node(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/systemctl").write_text(SYSTEMCTL)
    (tmp_path / "bin/systemctl").chmod(0o755)
    for name, text in (("NOTES", ""), ("TIMERS", TIMERS), ("SERVICES", SERVICES)):
        path = tmp_path / name.lower()
        path.write_text(text)
        monkeypatch.setenv(f"STEAD_{name}", str(path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setattr(program, "ROOT", tmp_path)
    for name in ("SETTINGS", "STATE", "LOCK"):
        monkeypatch.setattr(program, name, tmp_path / getattr(program, name).relative_to("/"))
    return node


BEFORE, DURING = ("ondemand", "1", "0"), ("performance", "0", "1")


def test_a_job_is_alone_and_everything_is_as_before(node: Node) -> None:
    program.begin("7")
    assert node.state() == DURING
    assert node.told() == ["stop apt-daily.timer", "freeze cron.service"]

    program.end("7")
    assert node.state() == BEFORE
    assert node.told() == ["thaw cron.service", "start --no-block apt-daily.timer"]
    assert not program.STATE.exists()


def test_the_end_of_another_job_changes_nothing(node: Node) -> None:
    program.begin("7")
    node.told()

    program.end("8")

    assert (node.state(), node.told()) == (DURING, [])
    program.end()
    assert node.state() == BEFORE


def test_what_an_earlier_job_left_is_what_is_put_back(node: Node) -> None:
    program.begin("7")
    # It is quiet already, and its timers are stopped.
    (node.root / "timers").write_text(TIMERS.replace("ActiveState=active", "ActiveState=inactive", 1))
    node.told()

    program.begin("8")
    assert node.told() == ["freeze cron.service"]
    program.end("8")

    assert node.state() == BEFORE
    assert "start --no-block apt-daily.timer" in node.told()


def test_it_goes_on_where_it_was_interrupted(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object, writes: list[Write]) -> list[str]:
        if writes:
            raise KeyboardInterrupt
        return []

    with monkeypatch.context() as patch:
        patch.setattr(kernel, "apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            program.begin("7")
    node.write({kernel.BOOST: "0"})

    program.end("7")

    assert node.state() == BEFORE


def test_a_service_that_systemd_does_not_thaw_goes_on(node: Node) -> None:
    program.begin("7")
    node.write({CRON: "1", "bin/systemctl": "#!/bin/sh\necho still in progress >&2\nexit 1\n"})

    program.end("7")

    assert (node.read(CRON), node.state()) == ("0", BEFORE)


def test_the_end_is_repeated_after_systemd_took_too_long(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    program.begin("7")
    with monkeypatch.context() as patch:
        patch.setattr(program, "SYSTEMCTL_SECONDS", 0.1)
        node.write({"bin/systemctl": "#!/bin/sh\nexec sleep 60\n"})
        program.end("7")
    assert node.state() == BEFORE

    node.write({"bin/systemctl": SYSTEMCTL})
    node.told()
    program.end("7")

    assert node.told() == ["thaw cron.service", "start --no-block apt-daily.timer"]
    assert not program.STATE.exists()


def test_a_timer_that_was_disabled_meanwhile_stays_off(node: Node) -> None:
    program.begin("7")
    (node.root / "timers").write_text(TIMERS.replace("UnitFileState=enabled", "UnitFileState=disabled", 1))
    node.told()

    program.end("7")

    assert node.told() == ["thaw cron.service"]


def test_a_node_without_systemd_still_gets_its_settings(node: Node) -> None:
    (node.root / "bin/systemctl").write_text("#!/bin/sh\necho no systemd >&2\nexit 1\n")

    program.begin("7")

    assert node.state() == ("performance", "0", "0")
    program.end("7")
    assert node.state() == BEFORE


def test_a_file_that_is_broken_counts_as_none(node: Node) -> None:
    program.STATE.write_text("{")
    program.end("7")

    assert (node.state(), node.told()) == (BEFORE, [])


@pytest.mark.parametrize("words", [[], ["begin"], ["stop", "7"], ["begin", "7; reboot"]], ids=lambda words: str(words))
def test_a_wrong_call_is_refused(node: Node, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.setattr(program.sys, "argv", ["quiet", *words])

    with pytest.raises(SystemExit, match="usage: quiet begin JOB"):
        program.main()
    assert node.state() == BEFORE


def test_a_trial_of_the_health_check_changes_nothing(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for verb in ("begin", "end"):
        monkeypatch.setattr(program.sys, "argv", ["quiet", verb, "0"])
        program.main()

    assert (node.state(), node.told()) == (BEFORE, [])


def test_the_state_is_for_root_and_can_be_read_back(node: Node) -> None:
    state = program.State("7", (Write("a", "1", "0"),), (Timer("a.timer", "enabled", "a.service"),), ("b.service",))
    program.remember(state)

    assert program.recall() == state
    assert program.STATE.stat().st_mode & 0o777 == 0o600
