"""Every template renders the text in golden/.

After a change that is meant: `UPDATE_GOLDEN=1 pytest tests/unit/test_golden.py`, then read `git diff`.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = pathlib.Path(__file__).parent / "golden"
FOUND = {
    "__jupyterhub_environment": {"path": "/opt/slurmstead-jupyterhub/0123456789abcdef"},
    "__jupyterhub_secrets": {"digest": "fedcba9876543210"},
}
"""What tasks have found before a template is rendered."""
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))

HOSTS = ("node1", "node3")
"""A worker, and the node that is control and NFS server."""
TEMPLATES = sorted(ROOT.glob("roles/*/templates/*.j2"))


def label(template: pathlib.Path) -> str:
    """Return `role/file` of a template."""
    return f"{template.parts[-3]}/{template.stem}"


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The text that each template makes on each host, by label, then by host."""
    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Once for all processes of pytest-xdist, which share a parent directory.
        directory = directory.parent
    result = directory / "golden.json"
    with (directory / "golden.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            result.write_text(json.dumps(render(tmp_path_factory.mktemp("golden"))))
    texts: dict[str, dict[str, str]] = json.loads(result.read_text())
    return texts


def render(directory: pathlib.Path) -> dict[str, dict[str, str]]:
    """Let Ansible make the texts as in a run, in one task."""
    # The defaults of all roles as the lowest of all variables, which they are.
    defaults = [yaml.safe_load(path.read_text()) or {} for path in sorted(ROOT.glob("roles/*/defaults/main.yml"))]
    variables = {name: value for role in defaults for name, value in role.items()}
    (directory / "defaults.yml").write_text(yaml.safe_dump({"all": {"vars": variables}}))
    copy = {
        "content": "{{ query('ansible.builtin.template', *templates) | to_json }}",
        "dest": f"{directory}/{{{{ inventory_hostname }}}}.json",
        "mode": "0600",
    }
    play = {
        "hosts": ",".join(HOSTS),
        "connection": "local",
        "vars": {
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            "templates": [str(path) for path in TEMPLATES],
            **FOUND,
        },
        "vars_files": [
            str(path) for path in (ROOT / "playbooks/vars/cluster.yml", *sorted(ROOT.glob("roles/*/vars/main.yml")))
        ],
        "tasks": [{"name": "Render", "ansible.builtin.copy": copy}],
    }
    (directory / "render.yml").write_text(yaml.safe_dump([play]))
    inventories = [f"--inventory={directory}/defaults.yml", f"--inventory={GOLDEN}/inventory"]
    done = subprocess.run(
        ["ansible-playbook", *inventories, str(directory / "render.yml")],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_LOCAL_TEMP": str(directory / "local"),
            "ANSIBLE_REMOTE_TEMP": str(directory / "remote"),
            "LC_ALL": "C.UTF-8",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    texts = {host: json.loads((directory / f"{host}.json").read_text()) for host in HOSTS}
    return {label(template): {host: texts[host][index] for host in HOSTS} for index, template in enumerate(TEMPLATES)}


def golden_files(name: str, texts: dict[str, str]) -> dict[str, str]:
    """Return text by file name: one file where all hosts have the same, else one for each, with `@host` at its end."""
    if len(set(texts.values())) == 1:
        return {name: texts[HOSTS[0]]}
    return {f"{name}@{host}": text for host, text in texts.items()}


def stored(name: str) -> dict[str, pathlib.Path]:
    """Return the golden files of a template by their names."""
    directory, _, file = name.rpartition("/")
    paths = [path for path in (GOLDEN / directory).glob("*") if path.name.partition("@")[0] == file]
    return {f"{directory}/{path.name}": path for path in paths}


@pytest.mark.parametrize("name", [label(template) for template in TEMPLATES])
def test_a_template_makes_its_golden_text(rendered: dict[str, dict[str, str]], name: str) -> None:
    expected = golden_files(name, rendered[name])
    if UPDATE:
        for path in stored(name).values():
            path.unlink()
        for file, text in expected.items():
            (GOLDEN / file).parent.mkdir(exist_ok=True)
            (GOLDEN / file).write_text(text)

    assert {file: path.read_text() for file, path in stored(name).items()} == expected


@pytest.mark.parametrize("name", [label(template) for template in TEMPLATES])
def test_a_text_is_whole_lines_without_gaps(rendered: dict[str, dict[str, str]], name: str) -> None:
    for host, text in rendered[name].items():
        assert text.endswith("\n"), f"the last line on {host} has no end"
        assert "\n\n\n" not in text, f"two empty lines in a row on {host}"
        assert not [line for line in text.splitlines() if line != line.rstrip()], (
            f"spaces at the end of a line on {host}"
        )


def test_no_golden_file_has_lost_its_template() -> None:
    labels = {label(template) for template in TEMPLATES}
    found = {
        str(path.relative_to(GOLDEN)).partition("@")[0] for path in GOLDEN.glob("*/*") if path.parts[-2] != "inventory"
    }

    assert found <= labels
