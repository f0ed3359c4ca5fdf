"""Ways round Slurm that users can try with programs and keys of their own; each is closed.

The other ways need PAM or control groups: tests/lab/login. Ports and NFS from outside are in test_firewall.py.
"""

from __future__ import annotations

import re

import pytest
import yaml

from ansible.module_utils.slurmstead.firewall import table
from slurmstead.paths import ROOT
from tests.native import conf
from tests.native.cluster import CONTROL, MUNGE, SLURMD, Cluster
from tests.native.test_firewall import LISTEN, SLURM, connects

HOME = "/share/home/alice"

LOGIN = MUNGE
"""A machine that has neither a daemon of Slurm nor slurm.conf."""

ASK = ("env", f"SLURM_CONF_SERVER={CONTROL}:6817")
"""What roles/login/tasks/submit.yml writes into /etc/environment."""

SRUN_PORT = 60001
"""A port on which srun may listen for output."""

FORGE = """
export PATH=$PATH:/usr/sbin
mkdir --mode=0700 forged && cd forged && mungekey --create --keyfile=key
munged --foreground --force --key-file=key --socket=socket --pid-file=pid --log-file=log --seed-file=seed & munged=$!
until test -S socket; do sleep 0.1; done
sed "/^AuthInfo/d; 1 i AuthInfo=socket=$PWD/socket" /etc/slurm/slurm.conf > slurm.conf
SLURM_CONF=$PWD/slurm.conf timeout 20 sbatch --output=/dev/null --wrap=true 2>&1
kill $munged
"""

CONF = f"""
AuthType=auth/munge
ClusterName=own
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmUser=alice
SlurmctldHost={CONTROL}
SlurmctldLogFile={HOME}/own/slurmctld.log
SlurmctldPidFile={HOME}/own/slurmctld.pid
SlurmctldPort=7817
SlurmdLogFile={HOME}/own/slurmd.log
SlurmdParameters=config_overrides
SlurmdPidFile={HOME}/own/slurmd.pid
SlurmdSpoolDir={HOME}/own/slurmd
SlurmdUser=alice
StateSaveLocation={HOME}/own/slurmctld
TaskPlugin=task/none
NodeName=node1 NodeAddr={CONTROL} CPUs=4 RealMemory=1000
PartitionName=own Default=YES Nodes=ALL
"""

OWN = f"""
export PATH=$PATH:/usr/sbin SLURM_CONF={HOME}/own/slurm.conf
run() {{
    sbatch --output=/dev/null --wrap="hostname >> {HOME}/own/ran"
    for second in $(seq 30); do test -n "$(squeue --noheader --states=R,PD)" || break; sleep 1; done
}}
slurmctld -D & slurmctld=$!
slurmd -D -N node1 & slurmd=$!
for second in $(seq 30); do sinfo --noheader --format=%T | grep --quiet '^idle$' && break; sleep 1; done
run
kill $slurmd && wait $slurmd
scontrol update nodename=node1 nodeaddr=node1
run
kill $slurmctld && wait $slurmctld
tail {HOME}/own/slurmctld.log
"""
"""Her slurmctld has a job run by her slurmd, and the next one by that of the cluster on node1."""

PROGRAM = f"{HOME}/own/program"
IN_ITS_PLACE = (
    CONF.replace("SlurmctldPort=7817", "SlurmctldParameters=enable_configless")
    .replace("SlurmdUser=alice\n", "")
    .replace(f"{HOME}/own/slurmd\n", "/var/lib/slurm/slurmd\n")
    + f"Prolog={PROGRAM}\n"
)
TAKE = f"""
export PATH=$PATH:/usr/sbin SLURM_CONF={HOME}/own/slurm.conf
rm -f {HOME}/own/slurmctld.log
setsid slurmctld -D >/dev/null 2>&1 </dev/null &
until grep --quiet "Running as primary" {HOME}/own/slurmctld.log; do sleep 0.2; done
"""
"""Her slurmctld takes the port of the cluster's while that is stopped."""

PROFILE = "touch profile; setsid sleep 600 </dev/null >/dev/null 2>&1 &\n"
WITHOUT_PROFILE = """#!/bin/sh
printenv HOME LOGNAME PATH SHELL USER
srun --mem=10 id --user
"""

ENTER = "for pid in $(pgrep --euid bob sleep); do nsenter --target=$pid --mount --pid id; done 2>&1"


def test_a_credential_of_another_key_is_refused(four: Cluster) -> None:
    said = four.run("sh", "-c", FORGE, user="alice")

    assert "Batch job submission failed" in said
    assert "Munge decode failed: Invalid credential" in four.run("cat", "/var/log/slurmctld")


def test_slurmd_takes_no_orders_of_a_users_slurmctld(four: Cluster) -> None:
    four.run("mkdir", "--parents", f"{HOME}/own/slurmd", f"{HOME}/own/slurmctld", user="alice")
    for name, text in {"slurm.conf": CONF, "cgroup.conf": conf.CGROUP}.items():
        four.run("tee", f"{HOME}/own/{name}", text=text, user="alice")

    said = four.run("sh", "-c", OWN, user="alice", seconds=120)

    assert four.run("cat", f"{HOME}/own/ran") == CONTROL
    assert "Killing non-startable batch JobId=2: Invalid user id" in said


def test_no_user_gives_slurmd_a_configuration_while_slurmctld_is_stopped(four: Cluster) -> None:
    four.run("mkdir", "--parents", f"{HOME}/own/slurmctld", user="alice")
    for name, text in {"slurm.conf": IN_ITS_PLACE, "cgroup.conf": conf.CGROUP}.items():
        four.run("tee", f"{HOME}/own/{name}", text=text, user="alice")
    daemons = [0, int(four.run("id", "--user", "slurm"))]
    openings = table.Openings(cluster=[*four.addresses.values()], slurm=SLURM, daemons=daemons)
    for name in (CONTROL, "node1"):
        four.run("nft", "--file", "-", on=name, text=table.text(openings))
    four.stop("node1")
    four.stop(CONTROL)

    four.run("sh", "-c", TAKE, user="alice")
    four.tried("timeout", "10", *SLURMD, on="node1")
    taken = four.tried("grep", "--recursive", PROGRAM, "/run/slurm", "/var/lib/slurm", on="node1").stdout
    four.run("pkill", "-KILL", "slurmctld")
    four.start(CONTROL)
    four.start("node1")
    four.wait_until_idle()
    for name in (CONTROL, "node1"):
        four.run("nft", "delete", "table", table.FAMILY, table.NAME, on=name)

    assert taken == ""


@pytest.mark.parametrize("option", ["--export=NONE", "--export=PATH,HOME", "--get-user-env"])
def test_slurmd_runs_no_users_profile(release: str, option: str) -> None:
    """As it would do outside the job, as root's `su - USER`; control groups would not show it better."""
    role = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())["__slurm_config_defaults"]
    keys = {"GetEnvTimeout": str(role.get("GetEnvTimeout", 2)), "TaskProlog": "/share/task-prolog"}
    with Cluster(release, conf=keys) as cluster:
        cluster.run("pwconv", on="node1")  # PAM lets root become users of /etc/shadow only.
        cluster.run("tee", "/share/task-prolog", text=(ROOT / "roles/scratch/files/task-prolog").read_text())
        cluster.run("chmod", "755", "/share/task-prolog")
        cluster.run("tee", f"{HOME}/.bash_profile", text=PROFILE, user="alice")

        cluster.run("sbatch", "--wait", "--output=said", option, text=WITHOUT_PROFILE, user="alice")

        home, name, path, *rest = cluster.run("cat", f"{HOME}/said").split()
        assert (home, name, *rest) == (HOME, "alice", "/bin/bash", "alice", "2001")
        assert "/usr/bin" in path.split(":")
        assert cluster.run("ls", HOME) == "said"
        assert cluster.tried("pgrep", "--uid", "alice", on="node1").stdout == ""


def test_nobody_enters_another_users_job(four: Cluster) -> None:
    words = ("sbatch", "--parsable", "--nodelist=node2", "--mem=10", "--output=/dev/null")
    job = four.run(*words, "--wrap=unshare --user --map-root-user --mount --pid --fork sleep 600", user="bob")
    four.wait_for(lambda: four.tried("pgrep", "--euid", "bob", "sleep", on="node2").stdout, 30, "bob's job runs")

    step = four.tried("srun", f"--jobid={job}", "--overlap", "id", user="alice")
    entered = four.tried("srun", "--nodelist=node2", "--mem=10", "sh", "-c", ENTER, user="alice")
    four.run("scancel", "--user=bob")
    four.wait_until_idle()

    assert "Access/permission denied" in step.stderr
    assert re.search("Permission denied|not permitted", entered.stdout)
    assert "uid=" not in step.stdout + entered.stdout


def test_a_login_machine_without_slurm_conf_submits_through_the_firewall(four: Cluster) -> None:
    """node4 plays a machine that is not of the cluster."""
    unknown = four.tried("sinfo", user="alice", on=LOGIN).stderr
    four.run("sh", "-c", f"setsid python3 -c '{LISTEN}' {SRUN_PORT} >/dev/null 2>&1 </dev/null &", on=LOGIN)
    four.wait_for(lambda: connects(four, "node4", LOGIN, SRUN_PORT) == "connected", 10, "it listens")
    inside = (CONTROL, LOGIN, "node1", "node2", "node3")
    openings = table.Openings(cluster=[four.addresses[name] for name in inside])
    for name in inside:
        four.run("nft", "--file", "-", on=name, text=table.text(openings))
    try:
        words = ("--nodelist=node[1-2]", "--nodes=2", "--mem=10", "hostname")
        direct = four.run(*ASK, "srun", *words, user="alice", on=LOGIN)
        words = ("--wait", "--nodelist=node3", f"--output={HOME}/said", "--mem=10", "--wrap=srun hostname")
        four.run(*ASK, "sbatch", *words, user="alice", on=LOGIN)
        seen = {name: connects(four, name, LOGIN, SRUN_PORT) for name in ("node1", "node4")}
    finally:
        for name in inside:
            four.run("nft", "delete", "table", table.FAMILY, table.NAME, on=name)

    assert "Could not establish a configuration source" in unknown
    assert sorted(direct.split()) == ["node1", "node2"]
    assert four.run("cat", f"{HOME}/said") == "node3"
    assert seen == {"node1": "connected", "node4": "TimeoutError"}
