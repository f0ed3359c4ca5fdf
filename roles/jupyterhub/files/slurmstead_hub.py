"""What JupyterHub needs to know about Slurm and about accounts without a password; its configuration imports it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import html
import json
import pathlib
import pwd
import shlex
import subprocess
import time
from collections.abc import AsyncIterator
from typing import Any

from batchspawner import JobStatus, SlurmSpawner
from batchspawner.api import BatchSpawnerAPIHandler
from jupyterhub.auth import PAMAuthenticator
from jupyterhub.handlers import BaseHandler
from tornado.web import HTTPError
from traitlets import Dict, Unicode

FIRST_PERSON = 1000
"""The first number of a person; smaller ones are accounts of the system."""

INVITED_FOR = 7 * 24 * 3600
LARGEST = 64 * 1024
"""Bytes that the hub reads of what a command of a user prints. More ends the command, if it takes the signal."""

UNSTARTED = "Failed to start transient scope unit"
"""The error of systemd-run(1)."""

PROGRAM = pathlib.Path(__file__).with_name("slurmstead_notebook.py").read_text()
SHORTEST = 10
"""Letters of a password."""


class Queue:
    """The notebooks in Slurm's queue, asked for once for all users."""

    COMMAND = ("squeue", "--noheader", "--name=notebook", "--states=all", "--format=%i|%T|%B|%r")
    AGE = 2.0

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._asked = 0.0
        self._found: dict[str, tuple[str, str, str]] = {}

    async def ask(self, after: float) -> dict[str, tuple[str, str, str]]:
        """Return state, node and reason by job, not older than a moment; raises OSError without an answer."""
        async with self._lock:
            if self._asked < max(after, time.monotonic() - self.AGE):
                begun = time.monotonic()
                process = await asyncio.create_subprocess_exec(
                    *self.COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                )
                out, err = await process.communicate()
                if process.returncode:
                    raise OSError(err.decode().strip())
                rows = (line.split("|", 3) for line in out.decode().splitlines())
                self._found = {row[0]: (row[1], row[2], row[3]) for row in rows}
                self._asked = begun
            return self._found


QUEUE = Queue()


class Spawner(SlurmSpawner):
    """A notebook is a job of its user."""

    profiles = Dict(help="Words of sbatch by profile.").tag(config=True)
    profile = Unicode(help="The chosen profile; the first one if it is empty.")
    job_reason = ""
    submitted = 0.0

    async def start(self) -> tuple[str, int]:
        """Start the notebook; a job that ends before is an error at once, not after a time-out."""
        begun = asyncio.ensure_future(self.start_and_listen())
        try:
            while not (await asyncio.wait({begun}, timeout=2))[0]:
                if self.job_id and await self.query_job_status() == JobStatus.NOTFOUND:
                    raise SpawnError(f"Job {self.job_id} ended before the notebook started. See ~/.notebook.log.")
        finally:
            begun.cancel()
        address: tuple[str, int] = begun.result()
        return address

    async def start_and_listen(self) -> tuple[str, int]:
        """Submit the job, and return the notebook's address when it listens: it reports its port before."""
        address: tuple[str, int] = await super().start()
        while True:
            try:
                _, writer = await asyncio.open_connection(*address)
            except OSError:
                await asyncio.sleep(0.5)
            else:
                writer.close()
                return address

    async def run_command(self, cmd: str, input: str | None = None, env: dict[str, str] | None = None) -> str:
        """Run a command as the user, who can read its environment: that of the hub has the secret of the proxy."""
        # Another process of the user can take the command over (ptrace), and print without end.
        bounded = f"{cmd} 2> >(head --bytes={LARGEST} >&2) | head --bytes={LARGEST}"
        words = shlex.join(["bash", "-o", "pipefail", "-c", bounded])
        until = time.monotonic() + 10
        while True:
            try:
                out: str = await super().run_command(words, input, env or self.environment)
                return out
            except RuntimeError as error:
                # The user's slice stops, because the last session has just ended; nothing of the command ran.
                if UNSTARTED not in str(error) or time.monotonic() > until:
                    raise
                await asyncio.sleep(0.2)

    async def submit_batch_script(self) -> str:
        """Submit the job; the user sees an error of sbatch."""
        try:
            number: str = await super().submit_batch_script()
        except RuntimeError as error:
            raise SpawnError(f"Slurm refused the job: {error}") from error
        self.submitted = time.monotonic()
        # JupyterHub stores it once the notebook has started; a hub that restarts before must know what to cancel.
        self.orm_spawner.state = self.get_state()
        self.db.commit()
        return number

    async def query_job_status(self) -> JobStatus:
        """Return the state of the job. A Slurm that does not answer ends no notebook."""
        if not self.job_id:
            return JobStatus.NOTFOUND
        try:
            found = await QUEUE.ask(self.submitted)
        except OSError as error:
            self.log.warning("squeue: %s", error)
            return JobStatus.UNKNOWN
        state, node, self.job_reason = found.get(self.job_id, ("", "", ""))
        self.job_status = f"{state} {node}"
        if self.state_isrunning():
            return JobStatus.RUNNING
        return JobStatus.PENDING if self.state_ispending() else JobStatus.NOTFOUND

    async def progress(self) -> AsyncIterator[dict[str, str]]:
        """Tell the user what the job waits for."""
        while True:
            if self.state_isrunning():
                yield {"message": f"Job {self.job_id} runs; the notebook starts."}
                return
            if self.job_id:
                why = f" ({self.job_reason})" if self.job_reason not in ("", "None") else ""
                yield {"message": f"Job {self.job_id} waits in Slurm's queue{why}."}
            await asyncio.sleep(2)

    def options_from_form(self, formdata: dict[str, list[str]]) -> dict[str, str]:
        """Return the chosen profile; the words of the job come from the configuration only."""
        return {"profile": formdata.get("profile", [""])[0]}

    async def _get_batch_script(self, **subvars: object) -> str:
        del subvars  # A user's request can replace any of them.
        profile = self.profiles[self.profile or next(iter(self.profiles))]
        lines = "".join(f"#SBATCH {words}\n" for words in profile["sbatch"])
        known = {"homedir": self.req_homedir, "keepvars": self.req_keepvars, "cmd": self.cmd_formatted_for_batch()}
        return str(self.batch_script).format(lines=lines, program=PROGRAM, **known)


def receive_port(handler: Any) -> None:
    """Take the port of a notebook from its job.

    batchspawner's own method sets any attribute, also those with commands that the hub runs as root.
    """
    if not handler.current_user:
        raise HTTPError(403)
    port = (handler.get_json_body() or {}).get("port")
    if type(port) is not int or not 1024 <= port < 65536:
        raise HTTPError(400, "expected a port from 1024 to 65535")
    token = handler.get_auth_token()
    for spawner in handler.current_user.spawners.values():
        if token and spawner.api_token == token:
            spawner.port = port
    handler.set_status(201)
    handler.finish("{}")


BatchSpawnerAPIHandler.post = receive_port


def choose_profile(spawner: Any, options: dict[str, Any]) -> None:
    """Set the profile that a user chose, on the form or by the API; raises ValueError for one that does not exist."""
    name = options.get("profile") or ""
    if name and name not in list(spawner.profiles):
        raise ValueError(f"There is no such profile. Choose one of {', '.join(spawner.profiles)}.")
    spawner.profile = name


def options_form(spawner: Any) -> str:
    """Return the form on which users choose a profile; none if there is no choice."""
    if len(spawner.profiles) < 2:
        return ""
    rows = "".join(
        f'<div class="form-check"><label><input type="radio" name="profile" value="{html.escape(name)}"'
        f"{' checked' if number == 0 else ''}> <b>{html.escape(name)}</b>"
        f" {html.escape(profile.get('description', ''))}</label></div>"
        for number, (name, profile) in enumerate(spawner.profiles.items())
    )
    return f"<p>A notebook is a job in Slurm's queue. Choose its size:</p>{rows}"


class SpawnError(HTTPError):
    """An error whose message the page and the API show."""

    def __init__(self, message: str) -> None:
        super().__init__(400, message)
        self.jupyterhub_message = message


class Authenticator(PAMAuthenticator):
    """PAM, and invitations with which people without a password choose one."""

    invitations = Unicode(help="Directory of the invitations.").tag(config=True)

    def normalize_username(self, username: str) -> str:
        """Return the name of the account that logs in; PAMAuthenticator would make `ann` of `Ann`, another account."""
        try:
            return pwd.getpwuid(pwd.getpwnam(username).pw_uid).pw_name
        except KeyError:
            return username

    def check_allowed(self, username: str, authentication: object = None) -> bool:
        """Refuse accounts of the system and of Ansible, also if they have a password."""
        del authentication
        try:
            return username not in self.blocked_users and pwd.getpwnam(username).pw_uid >= FIRST_PERSON
        except KeyError:
            return False

    async def add_user(self, user: Any) -> None:
        """Accept an administrator of the inventory who has no account here yet."""
        with contextlib.suppress(KeyError):
            await super().add_user(user)

    async def refresh_user(self, user: Any, handler: object = None, **_: object) -> bool:
        """Whether a login or token of before is still valid; not that of a person who left or whose time is over."""
        del handler
        return self.check_allowed(user.name) and not has_expired(user.name)

    def get_handlers(self, app: object) -> list[tuple[str, type]]:
        """Return the pages of this class."""
        return [*super().get_handlers(app), (r"/invitation", InvitationHandler)]

    def invited(self, token: str) -> tuple[str, pathlib.Path] | None:
        """Return whom a valid invitation is for, and its file; nothing otherwise."""
        path = pathlib.Path(self.invitations, hashlib.sha256(token.encode()).hexdigest())
        try:
            held = json.loads(path.read_text())
            is_new = time.time() - path.stat().st_mtime < INVITED_FOR
        except (OSError, ValueError):
            return None
        name = str(held["name"])
        return (name, path) if is_new and self.check_allowed(name) and not has_expired(name) else None


class InvitationHandler(BaseHandler):
    """The page on which an invited person chooses a password."""

    async def get(self) -> None:
        """Show the form; opening a link uses nothing up, because programs that check mail open it too."""
        await self.show()

    async def post(self) -> None:
        """Set the password, and let the person in."""
        found = self.authenticator.invited(self.get_body_argument("token", ""))
        if not found:
            await self.show()
            return
        name, path = found
        first, second = (self.get_body_argument(field, "", strip=False) for field in ("password", "again"))
        wrong = "The two passwords differ." if first != second else problem(name, first)
        if wrong:
            await self.show(wrong)
            return
        path.unlink()  # Once: of two requests at the same time one fails here.
        done = await asyncio.create_subprocess_exec("chpasswd", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        _, err = await done.communicate(f"{name}:{first}\n".encode())
        if done.returncode:
            self.log.error("chpasswd for %s: %s", name, err.decode().strip())
            await self.show("The password could not be set. Ask for a new invitation.")
            return
        user = await self.login_user({"username": name, "password": first})
        if not user:
            await self.show("The password was set, but this account may not log in. Ask an administrator.")
            return
        self._jupyterhub_user = user
        self.redirect(self.get_next_url(user))

    async def show(self, wrong: str = "") -> None:
        """Show the form, or that the link is not valid."""
        token = self.get_argument("token", "")
        found = self.authenticator.invited(token)
        if not found:
            self.set_status(403)
        self.set_header("Referrer-Policy", "no-referrer")
        page = {"person": found[0] if found else "", "token": token, "wrong": wrong, "shortest": SHORTEST}
        self.finish(await self.render_template("invitation.html", **page))


def has_expired(name: str) -> bool:
    """Return whether an account is locked by its day of expiry (shadow(5)); a new password must not unlock it."""
    for line in pathlib.Path("/etc/shadow").read_text().splitlines():
        fields = line.split(":")
        if fields[0] == name:
            return bool(fields[7]) and int(fields[7]) <= time.time() // (24 * 3600)
    return False


def problem(name: str, password: str) -> str:
    """Return why a password cannot be used; empty if it can."""
    if len(password) < SHORTEST:
        return f"The password needs {SHORTEST} letters or more."
    if name.lower() in password.lower():
        return "The password must not contain your login name."
    if not password.isprintable():
        return "The password contains a letter that cannot be printed."
    return ""
