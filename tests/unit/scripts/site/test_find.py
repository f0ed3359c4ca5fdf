"""Which site a command is for, and that no verb works on a cluster that nobody named."""

import os
import pathlib

import pytest
import typer

from slurmstead.cli.main import app
from slurmstead.errors import ExitCode, InventoryError
from slurmstead.site import find

NEED_NO_SITE = {
    *("bench scale", "demo", "faults", "init", "test"),
    *("lab up", "lab down", "lab freeze", "lab thaw", "lab status", "lab ssh"),
    *("submit", "jobs", "logs", "fetch", "cancel", "rerun"),
}
"""Verbs of the lab, of the tests, and those that ask a head node."""


def verbs() -> dict[str, list[str]]:
    """Return the words that each verb of the command line cannot be without."""
    found: dict[str, list[str]] = {}

    def walk(command: object, words: tuple[str, ...]) -> None:
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                walk(inner, (*words, name))
        else:
            required = [one for one in command.params if one.required]
            found[" ".join(words)] = [word for one in required for word in (*option(one), str(one.name))]

    def option(parameter: object) -> list[str]:
        return parameter.opts[:1] if parameter.param_type_name == "option" else []

    walk(typer.main.get_command(app), ())
    return found


VERBS = verbs()


def test_the_verbs_that_need_no_site_are_verbs():
    assert NEED_NO_SITE <= set(VERBS)


@pytest.mark.parametrize("verb", sorted(set(VERBS) - NEED_NO_SITE))
def test_a_verb_without_a_site_refuses_and_names_the_ways(project, stead, capsys, monkeypatch, verb):
    monkeypatch.chdir(project.path)
    assert stead(*verb.split(), *VERBS[verb]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"no site: neither {project.path} nor a directory above it is one" in said
    assert "-i DIR" in said
    assert "STEAD_SITE" in said
    assert "stead init DIR" in said


@pytest.fixture
def three(ann, stead) -> pathlib.Path:
    """Return the directory of three sites, each with a worker of its own."""
    for name in ("option", "variable", "here"):
        assert stead("init", name, "--control", "head=192.0.2.1", "--worker", f"{name}=192.0.2.2") == ExitCode.OK
    return ann


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "variable", "inside", "chosen"),
    [
        (["-i", "option"], "variable", "here", "option"),
        (["-i", "option/hosts.yml"], None, None, "option"),
        ([], "variable", "here", "variable"),
        ([], None, "here", "here"),
        ([], None, "here/group_vars", "here"),
        ([], "", "here", "here"),
    ],
)
def test_the_nearest_word_counts(three, stead, capsys, monkeypatch, words, variable, inside, chosen):
    if words:
        words = ["-i", str(three / words[1])]
    if variable is not None:
        monkeypatch.setenv("STEAD_SITE", variable and str(three / variable))
    if inside:
        monkeypatch.chdir(three / inside)

    assert stead("reboot", "nobody", *words) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"nobody is not a worker in {three / chosen}/hosts.yml" in said
    assert f"The workers are {chosen}." in said
    # A site that no option names is said, before anything happens to it.
    assert (f"Site: {three / chosen}\n" in said) == (not words)


def test_a_variable_that_names_nothing_is_not_passed_over(site, stead, capsys, monkeypatch):
    monkeypatch.chdir(site)
    monkeypatch.setenv("STEAD_SITE", "/nowhere")
    assert stead("up") == ExitCode.USAGE
    assert "STEAD_SITE is '/nowhere', which does not exist" in capsys.readouterr().err


def test_a_directory_with_a_hosts_yml_is_no_site(ann, stead, capsys):
    (ann / "hosts.yml").write_text("all: {hosts: {strange: }}\n")
    assert stead("up") == ExitCode.USAGE
    assert "no site" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["-i", "."]], ids=["found", "named"])
def test_a_site_that_lost_its_hosts_is_said_to_have(site, stead, capsys, monkeypatch, words):
    monkeypatch.chdir(site)
    (site / "hosts.yml").unlink()
    assert stead("up", *words) == ExitCode.USAGE
    assert "has no hosts.yml" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["up"], ["restore", "x.tar", "--force"], ["lab", "down"]], ids=" ".join)
def test_an_empty_path_is_not_the_current_directory(site, stead, capsys, monkeypatch, verb):
    monkeypatch.chdir(site)
    assert stead(*verb, "-i", "") == ExitCode.USAGE
    assert "-i is empty" in capsys.readouterr().err


@pytest.mark.parametrize("name", [".", find.MARKER, find.HOSTS])
def test_a_site_that_another_user_put_above_us_is_not_used(site, monkeypatch, name):
    monkeypatch.chdir(site)
    real = pathlib.Path.lstat

    def lstat(path):
        seen = real(path)
        return os.stat_result((*seen[:4], 12345, *seen[5:])) if path == site / name else seen

    monkeypatch.setattr(pathlib.Path, "lstat", lstat)
    with pytest.raises(InventoryError, match=r"belongs to another user \(uid 12345\)") as refused:
        find.find()
    assert refused.value.hint == f"If you trust it: -i {site}"


@pytest.mark.parametrize("name", [find.MARKER, find.HOSTS])
def test_a_link_to_a_file_of_root_makes_no_site(site, monkeypatch, name):
    (site / name).unlink()
    (site / name).symlink_to("/etc/passwd")
    monkeypatch.chdir(site)
    with pytest.raises(InventoryError, match=f"{name} is a symbolic link"):
        find.find()
    assert find.inventory(site) == site / find.HOSTS


def test_a_site_is_found_through_a_link_to_it(site, monkeypatch):
    (site.parent / "link").symlink_to(site)
    monkeypatch.chdir(site.parent / "link" / "group_vars")
    assert find.find() == site


def test_a_directory_that_was_removed_has_no_site(ann, monkeypatch):
    (ann / "gone").mkdir()
    monkeypatch.chdir(ann / "gone")
    (ann / "gone").rmdir()
    with pytest.raises(InventoryError, match="was removed"):
        find.find()
