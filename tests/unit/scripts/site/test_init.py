"""`stead init` makes a complete site, or refuses with every mistake and writes nothing."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import yaml

from slurmstead.errors import ExitCode
from slurmstead.paths import ROOT

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUS1U0Gem7W8bORJv7qYZ3aa49ZquCEoOWoAJGi4CqP ann@home"
MACHINES = ("--control", "node3=192.0.2.3", "--worker", "node1=192.0.2.1")


def git(directory: pathlib.Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", directory, *arguments], check=True, capture_output=True, text=True).stdout


def test_a_site_holds_its_machines_and_the_person_who_made_it(site):
    hosts = yaml.safe_load((site / "hosts.yml").read_text())

    addresses = {name: variables["os_address"] for name, variables in hosts["all"]["hosts"].items()}
    assert addresses == {"node1": "192.0.2.1", "node2": "192.0.2.2", "node3": "192.0.2.3"}
    groups = {name: list(hosts[name]["hosts"]) for name in ("control", "nfs_server", "workers")}
    assert groups == {"control": ["node3"], "nfs_server": ["node3"], "workers": ["node1", "node2"]}
    assert hosts["all"]["vars"]["slurm_cluster_name"] == "cluster"
    assert hosts["all"]["vars"]["bootstrap_authorized_keys"] == [KEY]
    assert [(user["name"], user["uid"]) for user in hosts["all"]["vars"]["accounts_users"]] == [("ann", 2001)]
    assert {path.name for path in site.iterdir()} == {
        *(".git", ".gitignore", ".slurmstead", "README.md"),
        *("files", "group_vars", "hardware", "hosts.yml"),
    }
    assert len((site / "README.md").read_text().splitlines()) <= 12


def test_names_that_yaml_takes_for_something_else_are_names(ann, stead):
    machines = ("--control", "no=192.0.2.3", "--worker", "null=192.0.2.1")

    assert stead("init", "Off", *machines, "--user", "yes", "--user", "bob") == ExitCode.OK
    hosts = yaml.safe_load((ann / "Off" / "hosts.yml").read_text())
    assert hosts["all"]["hosts"]["no"]["os_address"] == "192.0.2.3"
    assert list(hosts["workers"]["hosts"]) == ["null"]
    assert hosts["all"]["vars"]["slurm_cluster_name"] == "off"
    assert [(user["name"], user["uid"]) for user in hosts["all"]["vars"]["accounts_users"]] == [
        ("yes", 2001),
        ("bob", 2002),
    ]


def test_the_control_node_can_be_a_worker_too(ann, stead):
    assert stead("init", "c", *MACHINES, "--worker", "node3=192.0.2.3") == ExitCode.OK
    assert set(yaml.safe_load((ann / "c/hosts.yml").read_text())["workers"]["hosts"]) == {"node1", "node3"}


@pytest.mark.parametrize("template", ["home", "lab", "course"])
def test_a_template_sets_shares(ann, stead, template):
    assert stead("init", "c", *MACHINES, "--template", template) == ExitCode.OK
    found = yaml.safe_load((ann / "c/group_vars/all.yml").read_text())
    assert found["shares_template"] == template
    specs = yaml.safe_load((ROOT / "roles/shares/meta/argument_specs.yml").read_text())
    assert template in specs["argument_specs"]["main"]["options"]["shares_template"]["choices"]


@pytest.mark.parametrize(
    ("machines", "quiet"),
    [
        ((*MACHINES, "--worker", "node2=192.0.2.2"), ["node2"]),
        ((*MACHINES, "--worker", "node3=192.0.2.3"), ["node1"]),
        (MACHINES, []),
        ((), ["node2"]),
    ],
    ids=["last", "control", "one", "example"],
)
def test_a_course_has_notebooks_images_and_a_quiet_node(ann, stead, machines, quiet):
    assert stead("init", "c", *machines, "--template", "course") == ExitCode.OK
    variables = yaml.safe_load((ann / "c/group_vars/all.yml").read_text())
    hosts = yaml.safe_load((ann / "c/hosts.yml").read_text())["all"]["hosts"]

    assert variables["jupyterhub_enabled"] is variables["sandbox_enabled"] is variables["login_only_with_jobs"] is True
    assert variables["sandbox_partitions"] == ["quiet"]
    assert [name for name, found in hosts.items() if found.get("slurm_quiet")] == quiet


def test_an_unknown_template_is_refused(ann, stead, capsys):
    assert stead("init", "c", *MACHINES, "--template", "school") == ExitCode.USAGE
    said = capsys.readouterr().err
    assert [word in said for word in ("--template", "'school'", "'home'", "'lab'", "'course'")] == [True] * 5
    assert not (ann / "c").exists()


def test_all_mistakes_are_said_at_once_and_nothing_is_written(ann, stead, capsys):
    options = [word for text in ("node3=300", "node4") for word in ("--control", text)]
    workers = ("node3=192.0.2.3", "no.de=192.0.2.3", "x=192.0.2.4", "x=192.0.2.4")
    options += [word for text in workers for word in ("--worker", text)]

    assert stead("init", "a,b", *options, "--user", "root", "--key", "nokey.pub") == ExitCode.USAGE
    said = capsys.readouterr().err
    for part in (
        "contains a comma",
        "nokey.pub: cannot be read",
        "--control: 2 machines are given",
        "host node3: has the addresses 192.0.2.3 and 300",
        "--worker x=192.0.2.4: is given 2 times",
        "host no.de: has a dot",
        'address (node3): is "300", which is not an IPv4 address',
        'address (node4): is "", which is not an IPv4 address',
        "--user: root belongs to the system",
    ):
        assert part in said
    assert list(ann.iterdir()) == []


def test_two_machines_cannot_have_one_address(ann, stead, capsys):
    assert stead("init", "c", *MACHINES, "--worker", "node2=192.0.2.1") == ExitCode.USAGE
    assert "address (node[1-2]): is 192.0.2.1 on 2 hosts" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--control", "--worker"])
def test_machines_of_one_kind_alone_are_no_cluster(ann, stead, capsys, option):
    missing = {"--control": "--worker", "--worker": "--control"}[option]
    assert stead("init", "c", option, "node1=192.0.2.1") == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "1 mistake" in said
    assert f"{missing}: no machine is given" in said


def test_a_person_without_a_key_is_told_to_make_one(ann, stead, capsys):
    shutil.rmtree(ann.parent / "home/.ssh")
    assert stead("init", "c") == ExitCode.USAGE
    assert (
        "there is no public ssh key. Create one with ssh-keygen, or name a file with --key." in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("directory", "said"),
    [
        (ROOT / "inventory" / "mine", "is in the clone of Slurmstead"),
        ("link/mine", "is in the clone of Slurmstead"),
        ("full", "is not an empty directory"),
        ("full/file", "is not an empty directory"),
        (".", "is the current directory"),
        ("none/mine", "does not exist"),
    ],
)
def test_a_place_that_cannot_be_a_site_is_refused(ann, stead, capsys, monkeypatch, directory, said):
    (ann / "full").mkdir()
    (ann / "full/file").write_text("")
    (ann / "link").symlink_to(ROOT / "inventory")
    (ann / "empty").mkdir()
    if directory == ".":
        monkeypatch.chdir(ann / "empty")
    before = sorted(ann.rglob("*"))

    assert stead("init", directory, *MACHINES) == ExitCode.USAGE
    assert said in capsys.readouterr().err
    assert sorted(ann.rglob("*")) == before
    assert not (ROOT / "inventory" / "mine").exists()


def test_an_empty_directory_becomes_a_site(ann, stead):
    (ann / "c").mkdir()
    assert stead("init", "c", *MACHINES) == ExitCode.OK
    assert (ann / "c/hosts.yml").is_file()


@pytest.mark.slow
def test_a_full_disk_leaves_nothing(ann):
    command = ["prlimit", "--fsize=200", sys.executable, "-m", "slurmstead", "init", "c", *MACHINES]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "c cannot be created: File too large" in done.stderr
    assert list(ann.iterdir()) == []


def test_git_has_the_whole_site_in_one_commit(site):
    assert git(site, "log", "--format=%an %s") == "Ann site: Describe the cluster\n"
    assert git(site, "status", "--porcelain") == ""
    assert "hardware/.gitkeep" in git(site, "ls-files")


def test_a_git_that_does_not_know_its_user_keeps_the_files_uncommitted(ann, stead, capsys):
    (ann.parent / "home/.gitconfig").unlink()
    assert stead("init", "c", *MACHINES) == ExitCode.OK
    assert "under git, not committed: git may not know your name" in capsys.readouterr().out
    assert "A  hosts.yml" in git(ann / "c", "status", "--porcelain")


def test_a_site_within_a_repository_has_none_of_its_own(ann, stead, capsys):
    git(ann, "init", "--quiet")
    assert stead("init", "c", *MACHINES) == ExitCode.OK
    assert f"not committed: it is in the git repository {ann}" in capsys.readouterr().out
    assert not (ann / "c/.git").exists()


@pytest.mark.parametrize("program", [None, "#!/bin/sh\nmkdir -p .git; exit 1\n"], ids=["missing", "failing"])
def test_a_site_needs_no_git(ann, stead, capsys, monkeypatch, program):
    (ann.parent / "bin").mkdir()
    if program:
        (ann.parent / "bin/git").write_text(program)
        (ann.parent / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", str(ann.parent / "bin"))

    assert stead("init", "c", *MACHINES) == ExitCode.OK
    assert "not under git" in capsys.readouterr().out
    assert (ann / "c/hosts.yml").is_file()
    assert not (ann / "c/.git").exists()
