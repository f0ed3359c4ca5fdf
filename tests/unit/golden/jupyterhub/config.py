#
# Ansible managed
#
import batchspawner  # Its page of the API receives the port of a notebook; slurmstead_hub restricts it to that.
import slurmstead_hub

STATE = "/var/lib/slurmstead-jupyterhub"

c.JupyterHub.bind_url = "https://:443"
c.JupyterHub.hub_bind_url = "http://192.168.1.103:481"
c.JupyterHub.db_url = f"sqlite:///{STATE}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = f"{STATE}/cookie_secret"
c.JupyterHub.template_paths = ["/etc/slurmstead/jupyterhub/templates"]
c.JupyterHub.authenticator_class = slurmstead_hub.Authenticator
c.JupyterHub.spawner_class = slurmstead_hub.Spawner
# The proxy is a service of its own: notebooks stay connected while the hub restarts.
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:401"
c.JupyterHub.cleanup_servers = False
c.JupyterHub.cleanup_proxy = False
# Notebooks wait in Slurm's queue; JupyterHub would refuse the 101st that waits.
c.JupyterHub.concurrent_spawn_limit = 0

c.Authenticator.allow_all = True
# Also before each start of a notebook: runuser(1) does not ask whether an account has expired.
c.Authenticator.refresh_pre_spawn = True
# Accounts of Ansible: a notebook of one could become root on its worker.
c.Authenticator.blocked_users = set(["ansible"])
c.PAMAuthenticator.service = "slurmstead-jupyterhub"
c.PAMAuthenticator.open_sessions = False
c.Authenticator.invitations = f"{STATE}/invitations"

c.Spawner.profiles = {"large": {"description": "4 CPUs, at most 4:00:00", "sbatch": ["--cpus-per-task=4", "--time=4:00:00"]}, "small": {"description": "1 CPU, at most 4:00:00", "sbatch": ["--cpus-per-task=1", "--time=4:00:00"]}, "quiet": {"description": "a whole quiet node, at most an hour", "sbatch": ["--time=1:00:00", "--partition=quiet"]}}
c.Spawner.apply_user_options = slurmstead_hub.choose_profile
c.Spawner.options_form = slurmstead_hub.options_form
c.Spawner.cmd = ["$kernel/bin/jupyterhub-singleuser"]
c.Spawner.args = [
    # A trash in the home would make no room there.
    "--FileContentsManager.delete_to_trash=False",
    # Any user of the worker can read what a kernel sends to a TCP port; these sockets are in JUPYTER_RUNTIME_DIR.
    "--KernelManager.transport=ipc",
]
# Reads slurmstead_notebook.py, and imports nothing from the current directory.
c.Spawner.batchspawner_singleuser_cmd = "$kernel/bin/python -P -"
# In the user's slice, and so under login_user_memory: another process of the user can take over such a command (ptrace).
c.Spawner.exec_prefix = (
    "systemd-run --quiet --collect --scope --slice=user-$(id -u {username}).slice /usr/sbin/runuser -u {username} --"
)
c.Spawner.env_keep = []
c.Spawner.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = 600
c.Spawner.http_timeout = 300
# A user of the same worker could take the port of a notebook that has ended; HELD_FOR of slurmstead_notebook is longer.
c.Spawner.poll_interval = 2
c.Spawner.state_running_re = "^RUNNING"
c.Spawner.req_srun = ""
c.Spawner.batch_script = """#!/bin/bash -l

#SBATCH --job-name=notebook
#SBATCH --output={homedir}/.notebook.log
#SBATCH --open-mode=truncate
#SBATCH --chdir={homedir}
#SBATCH --export={keepvars}
#SBATCH --no-requeue
{lines}
# On the cluster's network only, if the name of the node leads there.
address=$(getent ahostsv4 "$SLURMD_NODENAME" | head -n 1 | cut -d " " -f 1)
case $address in
    "" | 127.*) ;;
    *) export JUPYTERHUB_SERVICE_URL="${{JUPYTERHUB_SERVICE_URL/0.0.0.0/$address}}" ;;
esac
# Jupyter writes there before it listens, and the home can be full. mktemp lets no other user in. With 50 more characters
# it is the path of a kernel's socket, which has at most 107.
export JUPYTER_RUNTIME_DIR=$(mktemp --directory --tmpdir nb-XXXXXX)
# Not the link: a notebook that runs keeps its packages when the link leads to new ones.
kernel=$(readlink --canonicalize-existing --verbose /share/notebooks/current) || exit
exec {cmd} <<"END"
{program}
END
"""

c.JupyterHub.load_roles = [
    # Exactly these: without a list, JupyterHub would keep the administrators of before.
    {"name": "admin", "users": [], "services": []},
    {
        "name": "administrators",
        "scopes": ["admin-ui", "list:users", "read:users:activity", "read:servers", "delete:servers"],
        "users": [],
    },
]

c.JupyterHub.services = [
    {
        "name": "idle-culler",
        "command": [
            "/opt/slurmstead-jupyterhub/current/bin/python",
            "-m",
            "jupyterhub_idle_culler",
            "--timeout=3600",
            "--cull-every=60",
        ],
    }
]
c.JupyterHub.load_roles += [
    {
        "name": "idle-culler",
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
        "services": ["idle-culler"],
    }
]
