"""Jobs in images on a whole cluster: switched on, an image built, a job of an ordinary user, and switched off again.

STEAD_LAB=NAME pytest tests/lab/sandbox
"""

from __future__ import annotations

import json
import pathlib
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from slurmstead.cluster import images
from slurmstead.paths import PLAYBOOKS

MADE = (
    "cd /etc; ls slurmstead/sandbox.json /usr/local/libexec/slurmstead/sandbox slurm/oci.conf"
    " systemd/system/run-slurmstead*oci.mount systemd/system/slurmd.service.d/slurmstead-sandbox.conf 2>&- || true"
)
FUSE = "test -e /dev/fuse || { mknod /dev/fuse c 10 229 && chmod 0666 /dev/fuse; }"
"""Containers have no udev, which makes it on machines."""


def configure(lab: Any, *arguments: str, **variables: Any) -> Any:
    """Switch images on or off."""
    run = lab.ansible("--tags", "os,packages,sandbox,slurm", "--extra-vars", json.dumps(variables), *arguments)
    assert run.code == 0, run.output[-5000:]
    return run


def change(lab: Any, **variables: str) -> Any:
    """Do what `stead image` does."""
    words = ["--extra-vars", json.dumps({"sandbox_enabled": True, **variables})]
    return lab.ansible(*words, str(PLAYBOOKS / "change-images.yml"))


@pytest.fixture(scope="module")
def enabled(lab: Any) -> Iterator[Any]:
    """What the first run did."""
    run = configure(lab, sandbox_enabled=True)
    for worker in lab.workers:
        lab.root(worker, FUSE)
    lab.wait_until_idle(120)
    yield run
    configure(lab, sandbox_enabled=False)


@pytest.fixture(scope="module")
def image(lab: Any, enabled: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image with a package of Debian and, from a wheel, one of Python."""
    assert enabled
    directory: pathlib.Path = tmp_path_factory.mktemp("wheels")
    info = "tiny-1.dist-info"
    with zipfile.ZipFile(directory / "tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "SAID = 'from a wheel'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    (directory / "needs.txt").write_text("tiny==1\n")
    parts = images.Parts(requirements=directory / "needs.txt", wheels=directory)
    with images.given(parts) as given:
        run = change(lab, image_state="present", image_name="tried", image_packages="bc", image_given=given)
    assert run.code == 0, run.output[-5000:]
    yield "/share/images/tried"
    assert change(lab, image_state="absent", image_name="tried").code == 0


def test_it_restarts_no_slurmd(enabled: Any) -> None:
    assert "sandbox : Install the runtime of images" in {name for tasks in enabled.changed.values() for name in tasks}
    assert not [name for tasks in enabled.changed.values() for name in tasks if name.startswith("slurmd : ")]


def test_slurmd_needs_the_mount_that_follows_no_links(lab: Any, enabled: Any) -> None:
    assert enabled
    for worker in lab.workers:
        assert "nosymfollow" in lab.root(worker, "findmnt --noheadings --output=OPTIONS /run/slurmstead-oci")
        assert "x2doci.mount" in lab.root(worker, "systemctl show --property=Requires slurmd.service")


def test_a_second_run_changes_nothing(lab: Any, enabled: Any) -> None:
    assert enabled
    assert configure(lab, sandbox_enabled=True).changed == {}


def test_a_user_runs_a_job_in_an_image(lab: Any, image: str) -> None:
    script = (
        "id -un; test ! -e /share/images && echo changed >/usr/mark && cat /usr/mark; ls /sys/class/net; echo 6*7 | bc;"
        "/opt/venv/bin/python -c 'import tiny; print(tiny.SAID)'; find / -xdev -perm /6000 | wc -l"
    )
    said = lab.without_login(lab.control, "alice", f'srun --container={image} sh -c "{script}"')

    assert said.splitlines() == ["alice", "changed", "lo", "42", "from a wheel", "0"]


def test_an_image_in_use_is_not_removed(lab: Any, image: str) -> None:
    words = f"sbatch --parsable -o /dev/null --container={image} --wrap='sleep 600'"
    job = lab.without_login(lab.control, "alice", words)
    try:
        run = change(lab, image_state="absent", image_name="tried")

        assert run.code != 0
        assert f"the image tried is or may be used by job {job}" in run.output
        assert lab.root(lab.server, f"test -d {image}/rootfs && echo kept") == "kept"
    finally:
        lab.root(lab.control, f"scancel {job}")
        lab.wait_until_idle(120)


def test_a_partition_demands_an_image(lab: Any, enabled: Any) -> None:
    assert enabled
    configure(lab, sandbox_enabled=True, sandbox_partitions=["main"])
    said = lab.without_login(lab.control, "alice", "srun id 2>&1 || true")
    configure(lab, sandbox_enabled=True)

    assert "partition main: jobs run in images only. Add --container=/share/images/NAME." in said
    assert lab.without_login(lab.control, "alice", "srun id -un") == "alice"


def test_without_its_variable_it_is_gone_and_the_images_are_not(lab: Any, enabled: Any) -> None:
    assert enabled
    try:
        configure(lab)

        assert {lab.root(name, MADE) for name in lab.names} == {""}
        assert lab.root(lab.server, "test -d /srv/share/images && echo kept") == "kept"
        assert configure(lab).changed == {}
    finally:
        configure(lab, sandbox_enabled=True)
