#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Write all files of a role in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: config_files
short_description: Write all files of a role in one task
description:
  - Writes several files and directories in one task. Over a slow link or on a slow CPU the number of tasks determines
    the duration of a run, and each C(ansible.builtin.template) needs three round trips to the node.
  - All new contents are validated before the first file is replaced; each file is replaced atomically.
  - Makes running services load the changed files at once. A handler would be lost if the run ended early. Each command
    is kept in I(pending) from before the first file is replaced until it has succeeded.
  - Runs C(systemctl daemon-reload) before any other command if a file below C(/etc/systemd/system) has changed.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  files:
    description: The files, in the order in which they are written.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {type: path, required: true, description: Absolute path.}
      state: {type: str, choices: [file, directory, absent], default: file, description: What the path must be.}
      content: {type: str, description: Text of the file; required for a file unless I(content_base64) is given.}
      content_base64: {type: str, description: Content of the file in Base64, for bytes that are not text.}
      mode: {type: str, description: 'Octal mode; C(0644) for a file and C(0755) for a directory unless given.'}
      owner: {type: str, default: root, description: User that owns it.}
      group: {type: str, default: root, description: Group that owns it.}
      validate: {type: str, description: Command that fails on bad content; C(%s) becomes the new file's path.}
      optional: {type: bool, default: false, description: Skip the file on a node that lacks its directory.}
      programs:
        description:
          - For a directory, its complete content, as Base64 by name. Each entry becomes a file of mode C(0755) with the
            directory's owner; everything else in the directory is removed.
        type: dict
      apply:
        description:
          - Commands that make a running service load the file, such as C(systemctl try-restart chrony.service).
          - Each command is run once, after all files are written, however many files name it.
        type: list
        elements: str
        default: []
      loaded:
        description:
          - Command that fails if the running service no longer has what it read from the file, as after
            C(nft flush ruleset). Then the commands of I(apply) are run too.
        type: str
  defer: {type: bool, default: false, description: Leave the commands to a later task that has the same commands.}
  pending:
    description: Directory of the commands that have not succeeded yet. A reboot has the same effect and empties it.
    type: path
    default: /run/slurmstead/pending
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Write the configuration of chrony
  config_files:
    files:
      - path: /etc/chrony/chrony.conf
        content: "{{ lookup('ansible.builtin.template', 'chrony.conf.j2') }}"
        apply: [systemctl try-restart chrony.service]
"""

RETURN = r"""
changed_paths: {description: Paths that were or would be changed., type: list, elements: str, returned: always}
commands: {description: 'Commands that were run, or remain to be run.', type: list, elements: str, returned: always}
"""

import base64
import difflib
import errno
import grp
import hashlib
import os
import pathlib
import pwd
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterable
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DEFAULT_MODE = {"file": 0o644, "directory": 0o755}
UNITS = pathlib.Path("/etc/systemd/system")
RELOAD = "systemctl daemon-reload"


def kind(status: os.stat_result) -> str:
    """Return the kind of a path as messages name it."""
    names = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    return names.get(stat.S_IFMT(status.st_mode), "special file")


def mount_point(path: pathlib.Path) -> pathlib.Path:
    """Return the mount point of a path's file system.

    >>> str(mount_point(pathlib.Path("/proc/self/no-such-file")))
    '/proc'
    """
    return next(place for place in (path, *path.parents) if place.is_mount())


def in_words(error: OSError | ValueError) -> str:
    """Return why a write failed; for a full disk, also which disk.

    >>> in_words(OSError(errno.ENOSPC, "No space left on device", "/proc/x"))
    'No space left on device for /proc/x: the disk /proc is full; make room there'
    """
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename:
        path = pathlib.Path(error.filename)
        return f"{error.strerror} for {path}: the disk {mount_point(path)} is full; make room there"
    return str(error)


def expanded(wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a file of the task; after a directory of programs, also its programs and the files to remove."""
    if wanted["programs"] is None:
        return [wanted]
    path = pathlib.Path(wanted["path"])
    strays = {entry.name for entry in path.iterdir()} - set(wanted["programs"]) if path.is_dir() else set()
    same = {**wanted, "programs": None, "mode": None}
    programs = [
        {**same, "path": f"{path}/{name}", "state": "file", "content_base64": content, "mode": "0755"}
        for name, content in sorted(wanted["programs"].items())
    ]
    return [wanted, *programs, *({**same, "path": f"{path}/{name}", "state": "absent"} for name in sorted(strays))]


class Entry:
    """One file, directory or absence: the wanted state and the state found."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self.state: str = wanted["state"]
        self.path = pathlib.Path(wanted["path"])
        self.validate: str | None = wanted["validate"]
        self.loaded: str | None = wanted["loaded"]
        self.owner: str = wanted["owner"]
        self.group: str = wanted["group"]
        self.mode = int(wanted["mode"], 8) if wanted["mode"] else DEFAULT_MODE.get(self.state, 0)
        self.apply: list[str] = [*([RELOAD] if UNITS in self.path.parents else []), *wanted["apply"]]
        encoded, plain = wanted["content_base64"], wanted["content"] or ""
        self.content = plain.encode() if encoded is None else base64.b64decode(encoded)
        self.skipped = wanted["optional"] and not self.path.parent.is_dir()
        self.seen = self.path.lstat() if os.path.lexists(self.path) else None
        if self.state == "directory" and self.path.is_dir():
            # A directory may be a link to another place; a file may not, because it is replaced.
            self.seen = self.path.stat()
        regular = self.seen is not None and kind(self.seen) == "file"
        self.before = self.path.read_bytes() if regular and self.state == "file" else None

    def ids(self) -> tuple[int, int]:
        """Return the numeric owner and group."""
        return pwd.getpwnam(self.owner).pw_uid, grp.getgrnam(self.group).gr_gid

    def refusal(self, check_mode: bool) -> str | None:
        """Return why this entry cannot be written; in check mode a package may yet create its owner."""
        if self.skipped or self.state == "absent":
            return None
        if self.validate and "%s" not in self.validate:
            return f"the validation command of {self.path} has no %s for the path of the new file: {self.validate}"
        allowed = ("file", "link") if self.state == "file" else ("directory",)
        if self.seen is not None and kind(self.seen) not in allowed:
            return f"expected {self.path} to be a {self.state}, seen: a {kind(self.seen)}; move it away"
        try:
            self.ids()
        except KeyError as error:
            if not check_mode:
                owner = f"{self.owner}:{self.group} ({error.args[0]})"
                return f"{self.path} cannot be owned by {owner}; install the package that creates them"
        return None

    def content_differs(self) -> bool:
        """Return whether the path differs from the wanted state."""
        if self.skipped:
            return False
        if self.state == "absent":
            return self.seen is not None
        if self.state == "directory":
            return self.seen is None
        return self.before != self.content

    def attributes_differ(self) -> bool:
        """Return whether the owner, group or mode differs."""
        if self.skipped or self.seen is None or self.state == "absent":
            return False
        try:
            owner = self.ids()
        except KeyError:
            return True
        return (self.seen.st_uid, self.seen.st_gid) != owner or stat.S_IMODE(self.seen.st_mode) != self.mode

    def is_lost(self, module: AnsibleModule) -> bool:
        """Return whether the running service no longer has what it read from the file."""
        return bool(self.loaded and not self.skipped and module.run_command(shlex.split(self.loaded))[0])

    def diff(self) -> str:
        """Return the change as `--diff` shows it."""
        name = str(self.path)
        if self.state == "file" and self.content_differs():
            old, new = (
                (content or b"").decode(errors="replace").splitlines() for content in (self.before, self.content)
            )
            lines = difflib.unified_diff(old, new, name, name, lineterm="")
            return "\n".join(lines)
        if self.state == "absent":
            return f"removed {name}"
        return f"{name}: {self.state}, {self.owner}:{self.group} {self.mode:04o}"

    def set_attributes(self, path: pathlib.Path) -> None:
        """Give a path the wanted owner and mode."""
        os.chown(path, *self.ids())
        path.chmod(self.mode)

    def write(self, directory: pathlib.Path, module: AnsibleModule) -> pathlib.Path:
        """Write the content to a new file that only root can read; unless moved, it is removed when the module ends."""
        handle, name = tempfile.mkstemp(dir=directory, prefix=f".{self.path.name}.")
        module.add_cleanup_file(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.content)
                file.flush()
                # Otherwise, after a power cut, the file can have its new name but no content (ext4(5)).
                os.fsync(file.fileno())
        except OSError as error:
            # Unlike open(2), write(2) does not know the file name.
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        return pathlib.Path(name)

    def check(self, module: AnsibleModule) -> None:
        """Validate the new content in the temporary directory."""
        if not self.validate:
            return
        words = shlex.split(self.validate)
        program = next((word for word in words if word.startswith("/") and word != "/usr/bin/env"), "")
        # In check mode the program's package may not be installed yet.
        if module.check_mode and not pathlib.Path(program).is_file():
            return
        new = self.write(pathlib.Path(module.tmpdir), module)
        command = shlex.split(self.validate.replace("%s", shlex.quote(str(new))))
        code, out, err = module.run_command(command)
        if code:
            said = (err.strip() or out.strip()).replace(str(new), str(self.path))
            module.fail_json(msg=f"{self.path} was not changed, because {command[0]} refuses its new content: {said}")

    def put(self, new: pathlib.Path | None, module: AnsibleModule) -> None:
        """Bring the path to the wanted state; `new` holds the content, unless the directory does not exist yet."""
        if self.state == "absent":
            if self.path.is_dir() and not self.path.is_symlink():
                shutil.rmtree(self.path)
            else:
                self.path.unlink()
        elif self.state == "directory":
            self.path.mkdir(parents=True, exist_ok=True)
            self.set_attributes(self.path)
        elif self.content_differs():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = new or self.write(self.path.parent, module)
            self.set_attributes(new)
            new.replace(self.path)
        else:
            self.set_attributes(self.path)


class Pending:
    """Commands that have not succeeded yet, each in a file of its own."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory

    def mark(self, command: str) -> pathlib.Path:
        """Return the file that represents a command."""
        return self.directory / hashlib.sha256(command.encode()).hexdigest()[:16]

    def left(self, entries: Iterable[Entry]) -> list[str]:
        """Return the commands of entries that an earlier task or an interrupted run left pending."""
        return [command for entry in entries for command in entry.apply if self.mark(command).exists()]

    def add(self, commands: Iterable[str]) -> None:
        """Record commands as pending."""
        for command in commands:
            for directory in (self.directory.parent, self.directory):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.mark(command).write_text(f"{command}\n")

    def run(self, command: str, module: AnsibleModule) -> None:
        """Run a command, and remove its record if it succeeds."""
        code, out, err = module.run_command(shlex.split(command))
        if code:
            said = err.strip() or out.strip()
            module.fail_json(
                msg=f"the files are written, but `{command}` failed; the next run will try it again: {said}"
            )
        self.mark(command).unlink(missing_ok=True)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "files": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "path": {"type": "path", "required": True},
                    "state": {"type": "str", "choices": ["file", "directory", "absent"], "default": "file"},
                    "content": {"type": "str"},
                    "content_base64": {"type": "str"},
                    "mode": {"type": "str"},
                    "owner": {"type": "str", "default": "root"},
                    "group": {"type": "str", "default": "root"},
                    "validate": {"type": "str"},
                    "optional": {"type": "bool", "default": False},
                    "programs": {"type": "dict"},
                    "apply": {"type": "list", "elements": "str", "default": []},
                    "loaded": {"type": "str"},
                },
                "required_if": [("state", "file", ("content", "content_base64"), True)],
                "mutually_exclusive": [("content", "content_base64")],
            },
            "defer": {"type": "bool", "default": False},
            "pending": {"type": "path", "default": "/run/slurmstead/pending"},
        },
        supports_check_mode=True,
    )
    # Parent directories that this creates are readable by all users, whatever root's umask.
    os.umask(0o022)
    try:
        entries = [Entry(wanted) for given in module.params["files"] for wanted in expanded(given)]
        refusals = [refusal for entry in entries if (refusal := entry.refusal(module.check_mode))]
        if refusals:
            module.fail_json(msg="; ".join(refusals))
        differing = [entry for entry in entries if entry.content_differs()]
        touched = [entry for entry in entries if entry in differing or entry.attributes_differ()]
        pending = Pending(pathlib.Path(module.params["pending"]))
        left = [] if module.params["defer"] else pending.left(entries)
        lost = [entry for entry in entries if entry not in touched and entry.is_lost(module)]
        needed = [command for entry in (*touched, *lost) for command in entry.apply]
        # daemon-reload comes first, then all other commands in the order of the files.
        commands = sorted({*left, *needed}, key=[RELOAD, *left, *needed].index)
        new = [entry for entry in differing if entry.state == "file"]
        for entry in new:
            entry.check(module)
        if not module.check_mode:
            # A full disk stops this before the first file is replaced.
            staged = {entry: entry.write(entry.path.parent, module) for entry in new if entry.path.parent.is_dir()}
            pending.add(needed)
            for entry in touched:
                entry.put(staged.get(entry), module)
            for command in [] if module.params["defer"] else commands:
                pending.run(command, module)
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"cannot write the files: {in_words(error)}")
    shown = [entry.diff() for entry in touched]
    shown += [f"{entry.path} is not loaded" for entry in lost] + [f"still to do: {command}" for command in left]
    module.exit_json(
        changed=bool(touched or lost or left),
        changed_paths=[str(entry.path) for entry in touched],
        commands=commands,
        # Ansible prints them without a line break in between.
        diff=[{"prepared": f"{text}\n"} for text in shown],
    )


if __name__ == "__main__":
    main()
