"""Creates a site: all of it or nothing, as a git repository if git is installed."""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from slurmstead.errors import UsageError
from slurmstead.paths import ROOT
from slurmstead.site import contents, mistakes
from slurmstead.wording import count

GIT_SECONDS = 30
GIT_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
COMMIT = "site: Describe the cluster"


@dataclasses.dataclass(frozen=True)
class Made:
    """A created site; `git` describes its state in git."""

    path: pathlib.Path
    site: contents.Site
    git: str


def create(
    directory: pathlib.Path,
    *,
    control: Sequence[str],
    workers: Sequence[str],
    users: Sequence[str],
    key_files: Sequence[pathlib.Path],
    template: str | None = None,
) -> Made:
    """Make a site.

    :param control: NAME=ADDRESS of the control node; if this and `workers` are empty, the site is an example to fill in
    :param key_files: public keys; ~/.ssh/*.pub if empty
    :param template: of roles/shares; None leaves the role's default
    :raises UsageError: there are mistakes; the message lists all of them, and nothing was written
    """
    path = directory.resolve()
    keys, wrong_keys = _keys(key_files)
    site = contents.Site(path.name, _machines(control), _machines(workers), users, keys, template)
    found = [*_wrong_place(path), *wrong_keys, *mistakes.mistakes(site)]
    if found:
        lines = "\n".join(f"- {line}" for line in found)
        raise UsageError(f"{count(len(found), 'mistake')}, and nothing was written:\n{lines}", "See: stead init --help")
    return Made(path, site, _write(path, contents.files(site)))


def _machines(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return name and address of each NAME=ADDRESS; a missing part is empty, and refused later."""
    return [(name, address) for name, _, address in (text.partition("=") for text in texts)]


def _wrong_place(path: pathlib.Path) -> list[str]:
    """The problem of a site's directory."""
    if path.is_relative_to(ROOT):
        return [f"{path}: is in the clone of Slurmstead ({ROOT}), which git updates. Choose a directory outside it."]
    if "," in str(path):
        return [f"{path}: contains a comma, which Ansible reads as a separator of hosts. Choose another name."]
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        return [f"{path}: is not an empty directory. Choose a new one."]
    if path.exists() and path == pathlib.Path.cwd():
        return [f"{path}: is the current directory. Run it in the directory above: stead init {path.name}."]
    if not path.parent.is_dir():
        return [f"{path.parent}: does not exist. Create it first."]
    return []


def _keys(files: Sequence[pathlib.Path]) -> tuple[list[str], list[str]]:
    """Return the public keys in files, each once, and the problems of the files."""
    home = pathlib.Path.home() / ".ssh"
    # authorized_keys does not accept a certificate as a key.
    chosen = files or sorted(path for path in home.glob("*.pub") if not path.name.endswith("-cert.pub"))
    keys: dict[str, None] = {}
    wrong = []
    for path in chosen:
        try:
            keys.update(dict.fromkeys(line.strip() for line in path.read_text().splitlines() if line.strip()))
        except (OSError, UnicodeDecodeError) as error:
            wrong.append(f"{path}: cannot be read ({error}). Name a file with a public ssh key.")
    if not keys and not wrong:
        where = ", ".join(map(str, files)) or f"{home}/*.pub"
        wrong.append(f"{where}: there is no public ssh key. Create one with ssh-keygen, or name a file with --key.")
    return list(keys), wrong


def _write(path: pathlib.Path, files: Mapping[str, str]) -> str:
    """Write the files to a temporary directory, then rename it; return the state in git."""
    try:
        staging = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise UsageError(f"{path} cannot be created: {error.strerror}", "Choose a writable directory.") from None
    try:
        for name, text in files.items():
            (staging / name).parent.mkdir(exist_ok=True)
            (staging / name).write_text(text)
        mask = os.umask(0)
        os.umask(mask)
        staging.chmod(0o777 & ~mask)
        said = _put_under_git(staging)
        staging.rename(path)  # also in the place of an empty directory
    except OSError as error:
        raise UsageError(f"{path} cannot be created: {error.strerror}", "Choose another directory.") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return said


def _put_under_git(directory: pathlib.Path) -> str:
    """Create a repository with a first commit of a directory, as far as git can; return how far it got."""
    # In a git hook, these variables name the repository of the hook.
    environment = {name: value for name, value in os.environ.items() if name not in GIT_REPOSITORY}

    def git(*arguments: str) -> str | None:
        """Return git's output, or None if it fails."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(
                ["git", "-C", str(directory), *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=GIT_SECONDS,
            )
            return done.stdout.strip() if done.returncode == 0 else None
        return None

    outer = git("rev-parse", "--show-toplevel")
    if outer:
        return f"not committed: it is in the git repository {outer}"
    if git("init", "--quiet") is None or git("add", "--all") is None:
        shutil.rmtree(directory / ".git", ignore_errors=True)
        return "not under git: git is not installed, or failed"
    # Without useConfigOnly git would invent an address; a signature would ask for a passphrase.
    options = ("-c", "user.useConfigOnly=true", "-c", "commit.gpgSign=false")
    if git(*options, "commit", "--quiet", "--no-verify", f"--message={COMMIT}") is None:
        return "under git, not committed: git may not know your name and address (git config --global user.email)"
    return "under git, committed"
