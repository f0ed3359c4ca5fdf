"""What is asked for: from stead.toml, from options, and where the head node is."""

import pathlib
from typing import Any

import pytest

from slurmstead.client import api, head, settings, submitting
from slurmstead.client.head import Head
from slurmstead.client.records import Job
from slurmstead.client.settings import Settings
from slurmstead.errors import UsageError


def test_options_win_over_the_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "stead.toml").write_text('head = "a@b"\ncpus = 4\nmem = 500\ntime = 90\n[env]\nX = 1\n')
    file, where = settings.read(tmp_path)

    assert where == {"head": "a@b"}
    assert file == Settings(cpus=4, mem="500", time="90", env={"X": "1"})
    assert settings.merge(file, {"cpus": 8, "mem": None, "args": ()}) == Settings(
        cpus=8, mem="500", time="90", env={"X": "1"}
    )


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("cpu = 4\n", "unknown key 'cpu'", "Did you mean cpus?"),
        ('constrain = "arm64"\n', "unknown key 'constrain'", "Did you mean constraint?"),
        ("qqq = 4\n", "unknown key 'qqq'", "Known keys are after, args"),
        ('cpus = "4"\n', "expected cpus to be a number, seen '4'", ""),
        ('nice = "10"\n', "expected nice to be a number, seen '10'", ""),
        ("cpus = true\n", "expected cpus to be a number, seen True", ""),
        ('args = "x"\n', "expected args to be a list of strings", ""),
        ("cpus = \n", "is not TOML", "toml.io"),
        ('ssh_config = "config"\n', "a configuration of ssh can run commands", "client.toml, or use --ssh-config"),
    ],
)
def test_a_wrong_file_is_refused_with_what_to_do(tmp_path: pathlib.Path, text: str, said: str, hint: str) -> None:
    (tmp_path / "stead.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        settings.read(tmp_path)

    assert said in str(caught.value)
    assert hint in caught.value.hint


def test_settings_that_cannot_be_read_are_named(own_home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "stead.toml").mkdir()
    with pytest.raises(UsageError, match="stead.toml cannot be read: Is a directory"):
        settings.read(tmp_path)

    path = own_home / ".config" / "slurmstead" / "client.toml"
    path.parent.mkdir(parents=True)
    path.write_text("head = 3\n")
    with pytest.raises(UsageError, match="client.toml: expected head to be a string, seen 3"):
        head.choose({}, {})


def test_what_python_says_is_what_the_file_says(tmp_path: pathlib.Path) -> None:
    job = Job("r1", ("7",), "/r1")
    found = api.asked(tmp_path, 5, {"mem": 500, "time": 90, "nodes": 2, "env": {"N": 1}, "after": [job, "8"]})

    assert found == Settings(args=("5",), mem="500", time="90", nodes="2", env={"N": "1"}, after=("r1", "8"))
    assert api.asked(tmp_path, "a b", {"after": job}) == Settings(args=("a b",), after=("r1",))
    assert api.asked(tmp_path, 7, {"after": 12}) == Settings(args=("7",), after=("12",))
    assert api.asked(tmp_path, ["a", 1], {"after": "12"}) == Settings(args=("a", "1"), after=("12",))


@pytest.mark.parametrize(
    "given",
    [
        {"cpus": "4"},
        {"entry": pathlib.Path("main.py")},
        {"after": "12"},
        {"mem": "8 GB"},
        {"time": "soon"},
        {"nodes": "two"},
        {"cpus": 0},
        {"nice": -1},
        {"container": "python"},
        {"array": "9-0"},
        {"python": "python3"},
        {"args": ["a\0b"]},
        {"name": "\0"},
        {"env": {"A": "\0"}},
        {"env": {"A=B": "1"}},
        {"env": {"": "1"}},
        {"index": "https://me:secret@packages.example/simple"},
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        settings.merge(Settings(), given)


def test_items_that_no_program_can_be_given_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="contains a NUL"):
        submitting.order_of(tmp_path, Settings(), ["a", "b\0"])


def test_data_is_in_the_folder(tmp_path: pathlib.Path) -> None:
    for path in ("main.py", "big/x", "big/y", "hidden"):
        (tmp_path / "p" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / path).write_text("")
    (tmp_path / "p" / ".gitignore").write_text("hidden\n")
    (tmp_path / "p" / "stead.toml").write_text('data = ["./big/", "main.py"]\n')

    asked = api.asked(tmp_path / "p", (), {})
    assert submitting.order_of(tmp_path / "p", asked).request()["data"] == ["big", "main.py"]
    for wrong in ("../p/big", "/etc", ".", "", "bi", "none", "hidden"):
        order = submitting.order_of(tmp_path / "p", Settings(data=("big", wrong)))
        with pytest.raises(UsageError, match=f"data: {wrong!r} is not among the files"):
            order.request()


def test_an_unknown_option_of_python_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        settings.merge(Settings(), {"memory": "8G"})

    assert "Did you mean mem?" in caught.value.hint


PLACES = ["given", "project", "environment", "own"]


@pytest.mark.parametrize("count", range(1, 5))
def test_the_nearest_place_says_which_head_node(
    own_home: pathlib.Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    said = PLACES[-count:]
    path = own_home / ".config" / "slurmstead" / "client.toml"
    path.parent.mkdir(parents=True)
    path.write_text('head = "own"\nssh_config = "~/lab"\n')
    if "environment" in said:
        monkeypatch.setenv("STEAD_HEAD", "environment")

    found = head.choose(
        {"head": "given" if "given" in said else None}, {"head": "project"} if "project" in said else {}
    )

    assert found == Head(said[0], str(own_home / "lab"))


def test_a_run_that_a_job_submits_is_not_in_the_run_of_the_job(
    own_home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEAD_DIRECTORY", "/share/runs/parent")
    assert head.choose({"head": "local"}, {}).directory == "/share/runs/parent"

    monkeypatch.setenv("STEAD_RUN", "parent")
    assert head.choose({"head": "local"}, {}).directory is None
    assert head.choose({"head": "local", "directory": "/work"}, {}).directory == "/work"


def test_no_head_node_is_an_error_that_says_where_to_write_it(own_home: pathlib.Path) -> None:
    with pytest.raises(UsageError) as caught:
        head.choose({}, {})

    assert str(own_home / ".config/slurmstead/client.toml") in caught.value.hint


@pytest.mark.parametrize(
    "given", ["-oProxyCommand=touch x", "alice@-oProxyCommand=touch x", "alice@node3:2222", "ssh://node3", "alice@"]
)
def test_a_host_is_neither_an_option_nor_an_address_with_a_port(given: str) -> None:
    with pytest.raises(UsageError, match="is not a host"):
        head.choose({"head": given}, {})


@pytest.mark.parametrize("key", ["head", "ssh_config", "directory"])
def test_an_empty_option_is_not_the_configured_value(key: str) -> None:
    with pytest.raises(UsageError, match=f"--{key.replace('_', '-')} is empty"):
        head.choose({"head": "given", key: ""}, {})


@pytest.mark.parametrize(
    ("given", "in_rsync"),
    [("alice@node3", "alice@node3"), ("alice@fd00::7", "alice@[fd00::7]"), ("fe80::1%eth0", "[fe80::1%eth0]")],
)
def test_an_address_with_colons_is_no_path_for_rsync(given: str, in_rsync: str) -> None:
    assert head.choose({"head": given}, {}).in_rsync == in_rsync
