"""`stead up`: from a command line to the playbook."""

import pytest

from slurmstead.cli import cluster
from slurmstead.errors import ExitCode


@pytest.mark.slow
@pytest.mark.parametrize(("options", "kept"), [([], "False"), (["--keep-jobs"], "True")])
def test_up_is_told_whether_the_jobs_of_departed_users_go_on(project, stead, monkeypatch, options, kept):
    told = "{{ accounts_keep_jobs | default(false) | bool }}"
    playbook = project.playbook(
        f"- ansible.builtin.copy: {{content: '{told}', dest: {project.path}/told, mode: '0600'}}", name="site.yml"
    )
    monkeypatch.setattr(cluster, "SITE", playbook)

    assert stead("up", *options, "-i", project.inventory("here"), "--plain") == ExitCode.OK
    assert (project.path / "told").read_text() == kept


@pytest.mark.parametrize("verb", ["up", "drift", "upgrade"])
@pytest.mark.parametrize("empty", ["", " ", ",", "~["])
def test_an_empty_limit_is_not_everything(project, stead, capsys, verb, empty):
    assert stead(verb, "--limit", empty, "-i", project.inventory("here")) == ExitCode.USAGE
    assert f"--limit is {empty!r}, which has no name" in capsys.readouterr().err


def test_empty_tags_are_not_everything(project, stead, capsys):
    assert stead("up", "--tags", "", "-i", project.inventory("here")) == ExitCode.USAGE
    assert "To work on everything, leave --tags out." in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["up", "drift"])
@pytest.mark.parametrize(
    ("tags", "advice"),
    [("slurm,acounts", "Did you mean accounts?"), ("everything", "Choose from accounting, accounts, broker, ")],
)
def test_a_mistyped_tag_is_refused(project, stead, capsys, verb, tags, advice):
    assert stead(verb, "--tags", tags, "-i", project.inventory("here")) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"no task has the tag {tags.rpartition(',')[2]!r}" in said and advice in said


@pytest.mark.parametrize("tags", ["accounts, slurm", "all", "untagged,broker"])
def test_tags_of_playbooks_and_of_ansible_are_accepted(project, stead, monkeypatch, tags):
    runs = []
    monkeypatch.setattr(cluster, "_carry_out", lambda *_, **options: runs.append(options["tags"]))

    assert stead("up", "--tags", tags, "-i", project.inventory("here")) == ExitCode.OK
    assert runs == [tags]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"good: 1\na: b: c\n", "workers.yml:2: is not YAML (mapping values are not allowed in this context)"),
        (b"name: J\xfcrgen\n", "workers.yml: is not UTF-8, or has a control character"),
    ],
)
def test_a_file_of_variables_that_cannot_be_read_is_named(project, stead, capsys, content, words):
    inventory = project.inventory("here")
    project.write("group_vars/workers.yml", "").write_bytes(content)
    inventory.write_text(f"{inventory.read_text()}workers: {{hosts: {{here: }}}}\n")
    project.playbook("- ansible.builtin.ping:")

    assert stead("up", "-i", inventory, "--plain") == ExitCode.USAGE
    assert f"group_vars/{words}" in capsys.readouterr().err
