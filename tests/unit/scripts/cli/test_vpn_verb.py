"""`stead vpn` writes vpn.yml, prints a private key once, and has control apply the file before it ends."""

import base64
import json
import re
import subprocess
import sys

import pytest
import yaml

from slurmstead.cluster import vpn
from slurmstead.errors import ExitCode
from slurmstead.runner.outcome import Result
from slurmstead.site import vpn as site

CONTROL = "A" * 42 + "E="
OTHER = "B" * 42 + "E="
APPLY = """
- name: Note what control gets
  config_files:
    files:
      - path: {applied}
        content: "{{{{ lookup('ansible.builtin.file', '{book}', rstrip=false) }}}}"
        owner: "{{{{ lookup('ansible.builtin.pipe', 'id -un') }}}}"
        group: "{{{{ lookup('ansible.builtin.pipe', 'id -gn') }}}}"
"""
SHOW = """
- name: Read
  vpn_state:
    enabled: true
    endpoint: home.example.org
    network: 10.79.0.0/29
    port: 51820
    public_key: {key}
"""


@pytest.fixture
def control(project, monkeypatch, tmp_path):
    """Return a function that makes a site whose control has the VPN, and returns the words for -i."""

    def make(apply=APPLY):
        (tmp_path / "vpn.pub").write_text(CONTROL)
        where = {"book": tmp_path / "files/vpn.yml", "applied": tmp_path / "applied.yml"}
        project.playbook(SHOW.format(key=tmp_path / "vpn.pub"), "show-vpn.yml")
        project.playbook(apply.format(**where), "reload-vpn.yml")
        for module in ("operations", "ask"):
            monkeypatch.setattr(f"slurmstead.cluster.{module}.PLAYBOOKS", project.path)
        inventory = project.inventory("here")
        inventory.write_text(inventory.read_text() + "control: {hosts: {here: }}\n")
        return ("-i", inventory, "--plain")

    return make


@pytest.fixture
def book(tmp_path):
    """Return the path of the peers."""
    return tmp_path / "files/vpn.yml"


def everything(directory):
    """Return the bytes of all files below a directory."""
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


@pytest.mark.slow
def test_a_laptop_comes_and_goes(control, book, stead, capsys, tmp_path):
    words = control()

    assert stead("vpn", "add", "laptop", *words) == ExitCode.OK
    said = capsys.readouterr()
    private = re.search(r"^PrivateKey = (\S{44})$", said.out, re.MULTILINE)[1]
    (peer,) = yaml.safe_load(book.read_text())["peers"]
    assert said.out == site.configuration(private, "10.79.0.2", CONTROL, "home.example.org:51820", "10.79.0.0/29")
    assert (peer["name"], peer["address"]) == ("laptop", "10.79.0.2")
    assert (tmp_path / "applied.yml").read_text() == book.read_text()
    assert private not in said.err
    assert private.encode() not in everything(tmp_path)

    assert stead("vpn", "remove", "laptop", *words) == ExitCode.OK
    assert yaml.safe_load((tmp_path / "applied.yml").read_text()) == {"peers": []}


@pytest.mark.slow
def test_where_control_does_not_get_the_file_the_command_says_what_is_the_case(control, book, stead, capsys):
    words = control(apply="\n- name: Fail\n  ansible.builtin.fail:\n")

    assert stead("vpn", "add", "laptop", *words) == ExitCode.TASK_FAILED
    assert "laptop is not accepted by control yet. `scripts/stead up --tags vpn` applies the file" in said(capsys)
    assert stead("vpn", "remove", "laptop", *words) == ExitCode.TASK_FAILED
    assert "Control still accepts laptop." in said(capsys)


@pytest.mark.parametrize("verb", ["add", "remove"])
def test_a_run_that_did_not_touch_control_is_no_success(listed, stead, capsys, monkeypatch, verb):
    known = vpn.Control(CONTROL, "home.example.org", "10.79.0.0/24", 51820, {})
    monkeypatch.setattr(vpn, "state", lambda *_, **__: known)
    monkeypatch.setattr(vpn.operations, "groups", lambda _: {"control": ["control"]})
    monkeypatch.setattr(vpn.operations, "run", lambda *_, **__: Result("reload-vpn.yml"))
    words = {"add": ("desk", "--key", CONTROL), "remove": ("laptop",)}[verb]

    assert stead("vpn", verb, *words, *listed) == ExitCode.CHECK_FAILED
    said = capsys.readouterr()
    assert "control was not changed" in said.err
    assert "`scripts/stead up` applies the inventory." in " ".join(said.err.split())
    assert "no longer accepted" not in said.out


def said(capsys):
    """Return the error output in one line."""
    return " ".join(capsys.readouterr().err.split())


@pytest.fixture
def listed(project, book):
    """Return the words for -i of a site with one peer; control cannot be asked."""
    project.write("hosts.yml", "all:\n")
    project.write("files/vpn.yml", f"peers: [{{name: laptop, key: {OTHER}, address: 10.79.0.2}}]\n")
    return ("-i", project.path / "hosts.yml")


def test_peers_are_listed(listed, stead, capsys):
    assert stead("vpn", "list", *listed) == ExitCode.OK
    assert capsys.readouterr().out.startswith(f"laptop  10.79.0.2  {OTHER}\n1 peer in ")
    assert stead("vpn", "list", "--json", *listed) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == [{"name": "laptop", "key": OTHER, "address": "10.79.0.2"}]


def test_what_control_knows_is_compared(listed, stead, capsys, monkeypatch):
    known = vpn.Control(CONTROL, "", "10.79.0.0/24", 51820, {OTHER: 75, CONTROL: -1})
    monkeypatch.setattr(vpn, "state", lambda *_, **__: known)

    assert stead("vpn", "list", "--ask", *listed) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("there 1:15 min ago")
    assert lines[1].startswith(f"not in the file, but accepted: {CONTROL}")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add", "laptop"), "laptop is already in"),
        (("add", "My Laptop"), "My Laptop is not a peer's name"),
        (("add", "desk", "--key", "abc"), "--key abc is not a public key"),
        (("add", "desk", "--key", ""), "--key is empty"),
        (("add", "desk", "--key", OTHER), "laptop has this key"),
        (("remove", "labtop"), "labtop is not in"),
        (("remove", "labtop"), "If an earlier `vpn remove` was interrupted"),
    ],
)
def test_what_cannot_be_done_is_refused_before_control_is_asked(listed, book, stead, capsys, words, why):
    before = book.read_text()

    assert stead("vpn", *words, *listed) == ExitCode.USAGE
    assert why in said(capsys)
    assert book.read_text() == before


@pytest.mark.parametrize(("mode", "code"), [(0o644, ExitCode.USAGE), (0o600, ExitCode.CHECK_FAILED)])
def test_a_private_key_is_not_written_where_others_can_read(listed, stead, monkeypatch, tmp_path, mode, code):
    monkeypatch.setattr(vpn, "state", lambda *_, **__: (_ for _ in ()).throw(vpn.CheckFailed("asked")))
    path = tmp_path / "configuration"
    path.touch(mode)
    path.chmod(mode)
    with path.open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert stead("vpn", "add", "desk", *listed) == code


def test_keys_are_those_of_x25519():
    private, public = site.make_keys()
    # RFC 7748 section 6.1 has no function for a computed key, so openssl is asked.
    der = bytes.fromhex("302e020100300506032b656e04220420") + base64.b64decode(private)
    shown = subprocess.run(
        ["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"], input=der, capture_output=True, check=True
    )

    assert base64.b64encode(shown.stdout[-32:]).decode() == public


@pytest.fixture
def answered(listed, monkeypatch):
    """Return a function that sets what control answers; its words are for -i."""

    def answer(**given):
        found = {"enabled": True, "key": CONTROL, "endpoint": "home.example.org", "network": "10.79.0.0/24", "port": 9}
        monkeypatch.setattr(vpn, "state", lambda *_, **__: vpn.judged({**found, "seen": {}, **given}))
        monkeypatch.setattr(vpn, "apply", lambda *_, **__: None)
        return listed

    return answer


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"enabled": False}, ExitCode.CHECK_FAILED, "control has no VPN"),
        ({"key": ""}, ExitCode.CHECK_FAILED, "has never run"),
        ({"endpoint": ""}, ExitCode.USAGE, "vpn_endpoint is not set"),
        ({"network": "10.79.0.0/30"}, ExitCode.USAGE, "has no free address"),
    ],
)
def test_without_what_it_needs_nothing_is_written(answered, book, stead, capsys, given, code, words):
    before = book.read_text()

    assert stead("vpn", "add", "desk", *answered(**given)) == code
    assert words in said(capsys)
    assert book.read_text() == before


def test_a_computer_with_keys_of_its_own_keeps_them(answered, book, stead, capsys):
    assert stead("vpn", "add", "desk", "--key", CONTROL, *answered()) == ExitCode.OK
    assert "PrivateKey = <your private key>\n" in capsys.readouterr().out
    assert CONTROL in book.read_text()


def test_a_qr_code_is_printed_if_it_is_wanted(answered, stead, capsys):
    assert stead("vpn", "add", "phone", "--qr", *answered()) == ExitCode.OK
    lines = [line for line in capsys.readouterr().out.splitlines() if set(line) <= set(" █▀▄") and line]
    assert len(lines) > 20 and len(set(map(len, lines))) == 1
    assert stead("vpn", "add", "other", "--no-qr", *answered()) == ExitCode.OK
    assert "█" not in capsys.readouterr().out
