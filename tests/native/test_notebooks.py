"""The hub, its proxy and notebooks as jobs: what a student sees, and what goes on without the hub."""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.native import notebooks
from tests.native.cluster import CONTROL, ENTER, USERS, Cluster
from tests.native.notebooks import PACKAGES, PLACES, SETTINGS, STATE, Hub

pytestmark = pytest.mark.slow

STUDENT = pathlib.Path(__file__).with_name("student.py")
BROWSER = pathlib.Path(__file__).parents[1] / "browser.py"
PASSWORD = "correct horse battery"
PROFILES = {
    "small": {"cpus": 1, "time": "8:00:00"},
    "large": {"cpus": 2, "time": "8:00:00", "options": ["--comment=large"]},
    "refused": {"partition": "nowhere"},
    "huge": {"cpus": 1000},
}
SQUEUE = "import subprocess; print(subprocess.check_output(['squeue', '-h', '-o', '%u %j %T'], text=True))"
PLOT = "%matplotlib inline\nimport matplotlib.pyplot as plt; plt.plot([1, 2, 3]); plt.show()"
TAKE_OVER = """
import json, os, urllib.error, urllib.request
def post(body):
    url, token = (os.environ[f"JUPYTERHUB_API_{one}"] for one in ("URL", "TOKEN"))
    headers = {"Authorization": f"token {token}"}
    request = urllib.request.Request(f"{url}/batchspawner", json.dumps(body).encode(), headers)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
command = {"exec_prefix": "touch /run/as-root; #"}
print(post(command), post({"port": 5000, **command}))
"""
KEEP_PRINTING = """
import threading, time
def keep_printing():
    while True:
        print("secret", flush=True)
        time.sleep(0.1)
threading.Thread(target=keep_printing).start()
"""
SUBSCRIBE = """
import sys, zmq
line = zmq.Context().socket(zmq.SUB)
line.subscribe(b"")
line.rcvtimeo = 5000
for address in sys.argv[1:]:
    line.connect(address)
try:
    print(line.recv_multipart())
except zmq.Again:
    pass
"""
"""Prints the first message of a kernel, if there is any."""

FEW_PORTS, ALL_PORTS = "50000 50099", "32768 60999"
TAKE_PORTS = """
import asyncio, sys
address, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
async def answer(reader, writer):
    asked = await reader.read(1000)
    if asked:
        print(asked, flush=True)
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
        await writer.drain()
    writer.close()
async def take(port):
    while True:
        try:
            await asyncio.start_server(answer, address, port)
            break
        except OSError:
            await asyncio.sleep(0.02)
async def main():
    await asyncio.gather(*(take(port) for port in range(first, last + 1)))
    await asyncio.Event().wait()
asyncio.run(main())
"""
"""Listens on the ports as soon as each is free, and prints what is sent there."""

SLOW_START = """
import pathlib, time
pathlib.Path("slow").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.1)
"""
CLASS = [f"student{number}" for number in range(105)]
"""JupyterHub by itself lets 100 notebooks wait."""

SMALL_HOME = """
mount --types tmpfs --options size=200k,uid=2001,gid=2001,mode=700 none /share/home/alice
setpriv --reuid=2001 --regid=2001 --clear-groups sh -c "head --bytes=1M /dev/zero >/share/home/alice/large"
true
"""
STORED = f"""
import sqlite3
database = sqlite3.connect("file:{notebooks.STATE}/jupyterhub.sqlite?mode=ro", uri=True)
print(*database.execute("select state from spawners"))
"""
PROMOTED = f"""
import sqlite3
sqlite3.connect("{notebooks.STATE}/jupyterhub.sqlite").executescript("update users set admin = 1")
"""
"""All users are what JupyterHub's own `admin_users` made of administrators."""


@pytest.fixture(scope="module")
def hub(release: str) -> Iterator[Hub]:
    """A hub with three profiles; alice and teacher have a password."""
    users = {**USERS, **{name: 3000 + number for number, name in enumerate(["teacher", "ansible", "Alice", *CLASS])}}
    with Cluster(release, nodes=2, packages=PACKAGES, layer=notebooks.layer(release), users=users) as cluster:
        hub = Hub(cluster, jupyterhub_profiles=PROFILES, jupyterhub_administrators=["teacher"])
        cluster.run("pwconv")  # The users of a cluster are not in /etc/shadow.
        hub.configure()
        hub.start_proxy()
        hub.start()
        cluster.run("chpasswd", text=f"alice:{PASSWORD}\nteacher:{PASSWORD}\n")
        cluster.run("tee", "/tmp/student.py", text=STUDENT.read_text())
        yield hub


@pytest.fixture(scope="module")
def student(hub: Hub) -> Callable[..., Any]:
    """Do something as a student; see student.py."""

    def do(what: str, name: str, *more: str) -> Any:
        words = (
            f"{PLACES['hub']}/current/bin/python",
            "/tmp/student.py",
            what,
            hub.url,
            f"{SETTINGS}/authority.crt",
            name,
            *more,
        )
        return json.loads(hub.cluster.run(*words, seconds=300))

    return do


def jobs(hub: Hub) -> dict[str, list[str]]:
    """User, name, CPUs and comment of each job that runs, by number."""
    lines = hub.cluster.run("squeue", "--noheader", "--states=R", "--format=%i|%u|%j|%C|%k").splitlines()
    return {line.split("|")[0]: line.split("|")[1:] for line in lines}


@pytest.fixture
def notebook(hub: Hub, student: Callable[..., Any]) -> Iterator[str]:
    """A notebook of alice that runs; her token."""
    token = student("login", "alice", PASSWORD)
    assert student("start", "alice", token, "large") is None, hub.log()
    yield token
    student("stop", "alice", token)
    hub.cluster.run("scancel", "--user=alice")
    hub.cluster.wait_for(lambda: not hub.cluster.run("squeue", "--noheader"), 60, "no job")


def test_only_the_password_of_a_person_opens_the_page(hub: Hub, student: Callable[..., Any]) -> None:
    hub.cluster.run("chpasswd", text=f"root:{PASSWORD}\n")

    assert student("login", "alice", PASSWORD)
    assert student("login", "alice", "wrong") is None
    assert student("login", "bob", "") is None
    assert student("login", "root", PASSWORD) is None


def test_a_name_with_a_capital_is_not_the_user_in_lower_case(hub: Hub, student: Callable[..., Any]) -> None:
    hub.cluster.run("chpasswd", text="Alice:another good password\n")

    token = student("login", "Alice", "another good password")
    assert student("login", "Alice", PASSWORD) is None
    assert student("start", "Alice", token, "small") is None, hub.log()
    assert [job[:2] for job in jobs(hub).values()] == [["Alice", "notebook"]]
    student("stop", "Alice", token)
    hub.cluster.wait_for(lambda: not hub.cluster.run("squeue", "--noheader"), 60, "no job")


def test_an_administrator_stops_the_notebooks_of_others_and_can_do_no_more(
    hub: Hub, student: Callable[..., Any], notebook: str
) -> None:
    token = student("login", "teacher", PASSWORD)
    assert student("start", "bob", token, "small").startswith(("403", "404"))
    assert student("poll", "alice", token) == 1
    assert student("remove", "alice", token, "large") == 403
    assert student("stop", "alice", token) in (202, 204)


def test_a_user_who_leaves_the_list_is_an_administrator_no_more(hub: Hub, student: Callable[..., Any]) -> None:
    token = student("login", "teacher", PASSWORD)
    hub.stop()
    hub.cluster.run("python3", "-c", PROMOTED)
    hub.variables["jupyterhub_administrators"] = []
    hub.configure()
    hub.start()

    assert student("poll", "teacher", token) == 0
    assert student("stop", "alice", token) in (403, 404)


def test_the_account_of_ansible_gets_no_notebook(hub: Hub, student: Callable[..., Any]) -> None:
    hub.cluster.run("chpasswd", text=f"ansible:{PASSWORD}\n")

    assert student("login", "ansible", PASSWORD) is None


def test_a_notebook_is_a_job_of_its_user(hub: Hub, student: Callable[..., Any], notebook: str) -> None:
    assert list(jobs(hub).values()) == [["alice", "notebook", "2", "large"]]
    assert student("cell", "alice", notebook, "import os; print(os.getuid())") == "2001\n"


def test_what_the_hub_runs_as_a_user_is_in_the_users_slice(
    hub: Hub, student: Callable[..., Any], notebook: str
) -> None:
    student("stop", "alice", notebook)

    lines = hub.cluster.run("cat", "/run/slices").splitlines()
    alice = [line for line in lines if " -u alice -- " in line]
    assert {line.split()[0] for line in alice} == {"user-2001.slice"}
    assert {line.split(" -- ")[1].split()[0] for line in alice} == {"sbatch", "scancel"}


def test_a_cell_sees_the_queue_and_plots(student: Callable[..., Any], notebook: str) -> None:
    assert "alice notebook RUNNING" in student("cell", "alice", notebook, SQUEUE)
    assert "image/png" in student("cell", "alice", notebook, PLOT)


def test_a_cell_has_the_client(student: Callable[..., Any], notebook: str) -> None:
    assert student("cell", "alice", notebook, "import slurmstead.client; print('imported')") == "imported\n"


def test_a_notebook_tells_the_hub_its_port_and_nothing_else(
    hub: Hub, student: Callable[..., Any], notebook: str
) -> None:
    """Attributes of a spawner are commands that root runs when the notebook is stopped."""
    assert student("cell", "alice", notebook, TAKE_OVER) == "400 201\n"
    student("stop", "alice", notebook)

    assert hub.cluster.tried("test", "-e", "/run/as-root").returncode == 1


def test_a_login_of_before_starts_nothing_once_the_account_has_expired(hub: Hub, student: Callable[..., Any]) -> None:
    token = student("login", "alice", PASSWORD)
    hub.cluster.run("usermod", "--expiredate", "1970-01-02", "alice")
    refused = student("start", "alice", token, "large")
    hub.cluster.run("usermod", "--expiredate", "", "alice")

    assert refused
    assert jobs(hub) == {}


def test_a_hub_that_restarts_knows_the_job_of_a_notebook_that_has_not_started(
    hub: Hub, student: Callable[..., Any]
) -> None:
    token = student("login", "alice", PASSWORD)
    hub.cluster.run("scontrol", "update", "nodename=ALL", "state=drain", "reason=test")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        begun = pool.submit(student, "start", "alice", token, "large")
        hub.cluster.wait_for(lambda: hub.cluster.run("squeue", "--noheader"), 60, "the job waits")
        number = hub.cluster.run("squeue", "--noheader", "--format=%i").strip()
        hub.cluster.wait_for(lambda: f'"job_id": "{number}"' in hub.cluster.run("python3", "-c", STORED), 20, "stored")
        hub.cluster.run("scontrol", "update", "nodename=ALL", "state=resume")
        assert begun.result() is None
    student("stop", "alice", token)
    hub.cluster.wait_for(lambda: not hub.cluster.run("squeue", "--noheader"), 60, "no job")


def test_a_notebook_listens_on_the_network_of_the_cluster_only(
    hub: Hub, student: Callable[..., Any], notebook: str
) -> None:
    assert student("cell", "alice", notebook, "print(1)") == "1\n", "there is a kernel"
    node = hub.cluster.run("squeue", "--noheader", "--states=R", "--format=%B")
    listening = hub.cluster.run("ss", "--listening", "--tcp", "--numeric", "--no-header", "--processes", on=node)

    places = [line.split()[3].rpartition(":")[0] for line in listening.splitlines() if "slurmd" not in line]
    # ipykernel always has the local one, which only receives: what subprocesses of the kernel print.
    assert sorted(places) == [hub.cluster.addresses[node], "127.0.0.1"], listening


def test_no_other_user_reads_what_a_kernel_sends(hub: Hub, student: Callable[..., Any], notebook: str) -> None:
    student("cell", "alice", notebook, KEEP_PRINTING)
    node = hub.cluster.run("squeue", "--noheader", "--states=R", "--format=%B")
    local, own = (
        hub.cluster.run("ss", "--listening", kind, "--numeric", "--no-header", on=node).split()
        for kind in ("--tcp", "--unix")
    )
    ports = [word.rpartition(":")[2] for word in local if word.startswith("127.0.0.1:")]
    sockets = [word for word in own if "/kernel-" in word]
    addresses = [*(f"tcp://127.0.0.1:{port}" for port in ports), *(f"ipc://{path}" for path in sockets)]

    def subscribe(user: str) -> str:
        python = f"{PLACES['kernel']}/current/bin/python"
        return hub.cluster.run(python, "-c", SUBSCRIBE, *addresses, on=node, user=user)

    assert "secret" in subscribe("alice")
    assert subscribe("bob") == ""


def test_a_kernel_has_no_debugger_which_would_obey_any_user_of_the_worker(
    student: Callable[..., Any], notebook: str
) -> None:
    looked = "import importlib.util; print(importlib.util.find_spec('debugpy'))"

    assert student("cell", "alice", notebook, looked) == "None\n"


@pytest.fixture
def thief(hub: Hub) -> Iterator[Callable[[str, str], Callable[[], str]]]:
    """Let bob take ports of node1; what is called then tells what was sent there."""

    def take(first: str, last: str) -> Callable[[], str]:
        line = 'setsid python3 -c "$0" "$@" >taken 2>&1 </dev/null &'
        words = ("sh", "-c", line, TAKE_PORTS, hub.cluster.addresses["node1"], first, last)
        hub.cluster.run(*words, on="node1", user="bob")
        return lambda: hub.cluster.run("cat", "/share/home/bob/taken")

    hub.cluster.run("scontrol", "update", "nodename=node2", "state=drain", "reason=test")
    yield take
    hub.cluster.tried("pkill", "-u", "bob", "python3", on="node1")
    hub.cluster.run("scontrol", "update", "nodename=node2", "state=resume")


def test_no_other_user_takes_the_port_of_a_notebook_that_starts(
    hub: Hub, student: Callable[..., Any], thief: Callable[..., Any]
) -> None:
    """Between the choice of a port and the moment when Jupyter listens on it there are seconds."""

    def ports(both: str) -> None:
        hub.cluster.run("sh", "-c", f"echo {both} >/proc/sys/net/ipv4/ip_local_port_range", on="node1")

    home = "/share/home/alice"
    hub.cluster.run("mkdir", "-p", f"{home}/.jupyter", user="alice")
    hub.cluster.run("tee", f"{home}/.jupyter/jupyter_server_config.py", text=SLOW_START, user="alice")
    token = student("login", "alice", PASSWORD)
    ports(FEW_PORTS)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        begun = pool.submit(student, "start", "alice", token, "small")
        hub.cluster.wait_for(lambda: hub.cluster.tried("test", "-e", f"{home}/slow").returncode == 0, 120, "it starts")
        ports(ALL_PORTS)
        taken = thief(*FEW_PORTS.split())
        time.sleep(5)
        hub.cluster.run("rm", "-r", f"{home}/.jupyter")
        hub.cluster.run("touch", f"{home}/go")
        assert begun.result() is None, hub.log()

    assert student("cell", "alice", token, "print(5)") == "5\n"
    assert taken() == ""
    student("stop", "alice", token)
    hub.cluster.wait_for(lambda: not hub.cluster.run("squeue", "--noheader"), 60, "no job")


@pytest.mark.parametrize(
    "end", [("scancel", "--user=alice"), ("pkill", "-KILL", "--newest", "--uid", "alice", "--full", "singleuser")]
)
def test_no_other_user_takes_the_port_of_a_notebook_that_ends(
    hub: Hub, student: Callable[..., Any], thief: Callable[..., Any], end: Sequence[str]
) -> None:
    """A page that is still open asks for its kernels again and again."""
    token = student("login", "alice", PASSWORD)
    assert student("start", "alice", token, "small") is None, hub.log()
    listening = hub.cluster.run("ss", "--listening", "--tcp", "--numeric", "--no-header", on="node1")
    address = f"{hub.cluster.addresses['node1']}:"
    (port,) = [line.split()[3].removeprefix(address) for line in listening.splitlines() if address in line]
    taken = thief(port, port)
    answered = student("remove", "alice", token, "nothing")

    hub.cluster.run(*end, on="node1")
    until = time.monotonic() + 15
    while time.monotonic() < until:
        student("remove", "alice", token, "nothing")

    assert answered == 404
    assert hub.cluster.run("pgrep", "-u", "bob", "python3", on="node1")
    assert taken() == ""
    hub.cluster.wait_for(lambda: not hub.cluster.run("squeue", "--noheader"), 60, "no job")


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_notebooks_outlive_the_hub(hub: Hub, student: Callable[..., Any], notebook: str, signal: str) -> None:
    before = jobs(hub)
    student("cell", "alice", notebook, "kept = 7")

    hub.stop(signal)
    hub.start()

    assert jobs(hub) == before
    assert "7" in student("cell", "alice", notebook, "print(7)")


def test_a_notebook_keeps_its_packages_when_there_are_new_ones(
    hub: Hub, student: Callable[..., Any], notebook: str
) -> None:
    node = hub.cluster.run("squeue", "--noheader", "--states=R", "--format=%B")
    link = f"{PLACES['kernel']}/current"
    before = hub.cluster.run("readlink", link, on=node)
    hub.cluster.run("ln", "-sfn", "newer", link, on=node)
    try:
        assert student("cell", "alice", notebook, "import sys; print(sys.prefix)") == f"{PLACES['kernel']}/{before}\n"
    finally:
        hub.cluster.run("ln", "-sfn", before, link, on=node)


def test_a_notebook_outlives_slurmctld(hub: Hub, student: Callable[..., Any], notebook: str) -> None:
    before = jobs(hub)
    hub.cluster.stop(CONTROL)
    student("poll", "alice", notebook)
    hub.cluster.start(CONTROL)

    assert jobs(hub) == before
    assert student("cell", "alice", notebook, "print(3)") == "3\n"


def test_a_job_that_slurm_refuses_is_explained(student: Callable[..., Any]) -> None:
    token = student("login", "alice", PASSWORD)

    assert "Slurm refused the job" in student("start", "alice", token, "refused")


def test_a_notebook_that_ends_while_it_starts_is_noticed_at_once(hub: Hub, student: Callable[..., Any]) -> None:
    token = student("login", "alice", PASSWORD)
    config = "/share/home/alice/.jupyter/jupyter_server_config.py"
    hub.cluster.run("sh", "-c", 'mkdir -p "${0%/*}"; echo "raise SystemExit(3)" >"$0"', config, user="alice")
    begun = time.monotonic()
    refused = student("start", "alice", token, "small")
    took = time.monotonic() - begun
    hub.cluster.run("rm", config)

    # The first is the answer within JupyterHub's ten seconds.
    assert "See ~/.notebook.log." in refused or refused == "the notebook did not start"
    assert took < 120


def test_a_notebook_starts_in_a_full_home_and_makes_room(hub: Hub, student: Callable[..., Any]) -> None:
    """A student who has a password only has no other way to remove files."""
    token = student("login", "alice", PASSWORD)
    for name in (CONTROL, *hub.cluster.nodes):
        hub.cluster.run("sh", "-c", SMALL_HOME, on=name)
    try:
        assert student("start", "alice", token, "small") is None, hub.log()
        node = hub.cluster.run("squeue", "--noheader", "--states=R", "--format=%B").strip()
        assert student("remove", "alice", token, "large") == 204
        assert int(hub.cluster.run("du", "--summarize", "/share/home/alice", on=node).split()[0]) < 100
    finally:
        student("stop", "alice", token)
        hub.cluster.wait_for(lambda: not hub.cluster.run("squeue", "--noheader"), 60, "no job")
        for name in (CONTROL, *hub.cluster.nodes):
            hub.cluster.run("umount", "--lazy", "/share/home/alice", on=name)


def test_a_class_that_starts_at_once_waits_in_the_queue(hub: Hub, student: Callable[..., Any]) -> None:
    hub.cluster.run("chpasswd", text="".join(f"{name}:{PASSWORD}\n" for name in CLASS))
    hub.cluster.run("scontrol", "update", "nodename=ALL", "state=drain", "reason=test")
    answers = student("start_all", CLASS[0], PASSWORD, "small", *CLASS)
    waiting = hub.cluster.run("squeue", "--noheader", "--format=%u").split()
    hub.cluster.run("scancel", "--name=notebook")
    hub.cluster.run("scontrol", "update", "nodename=ALL", "state=resume")

    assert {*answers} == {202}
    assert sorted(waiting) == sorted(CLASS)


def test_a_profile_that_does_not_exist_starts_nothing(hub: Hub, student: Callable[..., Any]) -> None:
    token = student("login", "alice", PASSWORD)

    assert student("start", "alice", token, "--uid=root") is not None
    assert not hub.cluster.run("squeue", "--noheader")


def invite(hub: Hub, name: str, token: str) -> str:
    """Invite a person as the playbook does; return the link."""
    main = (
        "import hashlib, sys\n"
        "from ansible.module_utils.slurmstead.jupyterhub import invitation\n"
        "wanted = {sys.argv[1]: hashlib.sha256(sys.argv[2].encode()).hexdigest()}\n"
        "wrong = list(invitation.problems(wanted))\n"
        "assert not wrong, wrong\n"
        "invitation.write(wanted)\n"
    )
    notebooks.run(hub.cluster, main, name, token)
    return f"{hub.url}/hub/invitation?token={token}"


def test_an_invitation_sets_a_password_once(hub: Hub, student: Callable[..., Any]) -> None:
    link = invite(hub, "bob", "first-secret")

    assert "differ" in student("choose", "bob", link, "one password", "another one")["text"]
    assert "10 letters" in student("choose", "bob", link, "short", "short")["text"]
    assert student("choose", "bob", link, "a long password", "a long password")["answer"] == 302
    assert student("login", "bob", "a long password")
    assert student("choose", "bob", link, "another password", "another password")["answer"] == 403
    assert student("login", "bob", "another password") is None


def test_a_newer_invitation_replaces_the_older_one(hub: Hub, student: Callable[..., Any]) -> None:
    old, new = invite(hub, "bob", "old-secret"), invite(hub, "bob", "new-secret")

    assert student("choose", "bob", old, "1st new password", "1st new password")["answer"] == 403
    assert student("choose", "bob", new, "2nd new password", "2nd new password")["answer"] == 302


def test_an_expired_account_cannot_use_an_invitation(hub: Hub, student: Callable[..., Any]) -> None:
    link = invite(hub, "bob", "late-secret")
    hub.cluster.run("usermod", "--expiredate=1", "bob")

    assert student("choose", "bob", link, "a late password", "a late password")["answer"] == 403
    hub.cluster.run("usermod", "--expiredate=", "bob")


def test_nothing_but_root_reads_the_secrets(hub: Hub) -> None:
    look = f"cat {SETTINGS}/proxy.env {SETTINGS}/hub.pem {SETTINGS}/authority.key; ls {STATE}; cat /proc/*/environ"
    seen = hub.cluster.tried("sh", "-c", look, user="bob")

    assert "CONFIGPROXY" not in seen.stdout and "PRIVATE" not in seen.stdout
    assert seen.stderr.count("Permission denied") >= 4
    arguments = hub.cluster.run("sh", "-c", "cat /proc/*/cmdline | tr '\\0' ' '")
    secret = hub.cluster.run("sed", "s/.*=//", f"{SETTINGS}/proxy.env")
    assert len(secret) == 64 and secret not in arguments


def test_what_the_hub_runs_as_a_user_has_no_secret(hub: Hub, student: Callable[..., Any], notebook: str) -> None:
    """A user can read the environment of such a process, for example while a notebook is stopped."""
    look = """
        end=$(($(date +%s) + 15))
        while test $(date +%s) -lt $end; do cat /proc/*/environ 2>&-; done | grep --text --count CONFIGPROXY_AUTH_TOKEN
    """
    with concurrent.futures.ThreadPoolExecutor() as pool:
        seen = pool.submit(hub.cluster.tried, "sh", "-c", look, user="alice")
        time.sleep(2)
        student("stop", "alice", notebook)
        found = seen.result()

    assert found.stdout.strip() == "0", found.stderr


def test_a_student_works_in_a_browser(hub: Hub, tmp_path: pathlib.Path) -> None:
    assert shutil.which("chromedriver"), "install the packages chromium and chromium-driver of Debian"
    hub.cluster.run("chpasswd", text=f"bob:{PASSWORD}\n")
    # Chromium is of this computer; of the cluster it has the network only.
    inside = [*ENTER, f"--target={hub.cluster._init}", "nsenter", "--net", f"--target={hub.cluster.pids[CONTROL]}"]
    student = [sys.executable, "-I", str(BROWSER), hub.url, "bob", PASSWORD, str(tmp_path)]
    done = subprocess.run([*inside, *student], capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["login", "profiles", "notebook", "logged_out"], done.stderr + hub.log()
    assert [job[:2] for job in jobs(hub).values()] == [["bob", "notebook"]], "it goes on without the browser"
    hub.cluster.run("scancel", "--user=bob")
