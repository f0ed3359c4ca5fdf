"""scripts/stead in a repository of its own, with a pip that only notes what it was asked for."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from slurmstead.paths import ROOT

pytestmark = pytest.mark.slow

SHELL_TOOLS = "sh cat cmp date dirname env id readlink rm tail".split()

# Replaces python3: makes environments without ensurepip, which takes seconds, and installs the pip below in them.
PYTHON = """#!/bin/sh
case "$*" in
*"import ensurepip"*) [ ! -e "$HOME/no-ensurepip" ] ;;
*"-m venv"*)
    for venv; do :; done
    {real} -I -m venv --without-pip "$venv" && cp -r "$HOME/pip" "$venv"/lib/python3*/site-packages/ ;;
*) exec {real} "$@" ;;
esac
"""

PIP = """
import os, pathlib, signal, sys, time
home = pathlib.Path(os.environ["HOME"])
with (home / "pip.log").open("a") as log:
    print(*sys.argv[1:], file=log)
if (home / "kill-me").exists():
    (home / "kill-me").unlink()
    os.kill(os.getppid(), signal.SIGKILL)
if (home / "refuse").exists():
    sys.exit("no route to the index")
time.sleep(float(os.environ.get("PIP_SECONDS", "0")))
"""

PACKAGE = """
import os, pathlib, sys
print("ran", os.environ["PATH"].split(":")[0], *sys.argv[1:])
"""


@dataclasses.dataclass
class Checkout:
    """A copy of the launcher with a package that says how it was called."""

    root: pathlib.Path
    home: pathlib.Path

    def start(self, *arguments: str, program: pathlib.Path | None = None, **variables: str) -> subprocess.Popen[str]:
        """Start the launcher in a directory that has nothing to do with it."""
        return subprocess.Popen(
            [str(program or self.root / "scripts" / "stead"), *arguments],
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": str(self.home / "bin"), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, program: pathlib.Path | None = None) -> tuple[int, str, str]:
        """Run the launcher; return exit code, standard output and standard error."""
        process = self.start(*arguments, program=program)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def installed(self) -> list[str]:
        """Return the names of the locks that pip was asked to install, in their order."""
        log = self.home / "pip.log"
        return [pathlib.Path(line.split()[-1]).name for line in log.read_text().splitlines()] if log.exists() else []

    def tool(self, name: str, text: str) -> None:
        """Put a program on the launcher's PATH."""
        path = self.home / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> Checkout:
    """Return a checkout without a virtual environment."""
    checkout = Checkout(tmp_path / "some where", tmp_path / "home")
    (checkout.home / "bin").mkdir(parents=True)
    for tool in [*SHELL_TOOLS, "cp"]:
        (checkout.home / "bin" / tool).symlink_to(str(shutil.which(tool)))
    checkout.tool("python3", PYTHON.format(real=sys._base_executable))
    (checkout.home / "pip").mkdir()
    (checkout.home / "pip" / "__main__.py").write_text(PIP)
    package = checkout.root / "scripts" / "slurmstead"
    package.mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "stead", checkout.root / "scripts" / "stead")
    (package / "__main__.py").write_text(PACKAGE)
    for name in ("requirements.txt", "requirements-dev.txt"):
        (checkout.root / name).write_text(f"# {name}\n")
    return checkout


def test_the_first_call_makes_the_environment_and_the_second_uses_it(checkout):
    code, out, err = checkout.run("lab", "ssh", "node3", "--", "echo 'a  b'")
    assert (code, out) == (0, f"ran {checkout.root}/.venv/bin lab ssh node3 -- echo 'a  b'\n")
    assert err.startswith("stead: installing Python packages into .venv")
    assert len(err.splitlines()) == 2
    assert checkout.run("up") == (0, f"ran {checkout.root}/.venv/bin up\n", "")
    assert checkout.installed() == ["requirements.txt"]


def test_packages_are_checked_against_the_locks_hashes(checkout):
    checkout.run()
    assert "--require-hashes" in (checkout.home / "pip.log").read_text()
    for lock in ("requirements.txt", "requirements-dev.txt"):
        text = (ROOT / lock).read_text()
        assert "--hash=sha256:" in text
        assert "index" not in text


def test_only_tests_bring_the_packages_for_tests(checkout):
    checkout.run("up")
    checkout.run("test", "--fast")
    checkout.run("test")
    assert checkout.installed() == ["requirements.txt", "requirements-dev.txt"]


@pytest.mark.parametrize("verb", ["up", "test"])
def test_an_interrupted_installation_is_done_again(checkout, verb):
    (checkout.home / "kill-me").touch()
    code, out, _ = checkout.run(verb)
    assert (code, out) == (-9, "")
    code, out, _ = checkout.run(verb)
    assert (code, out) == (0, f"ran {checkout.root}/.venv/bin {verb}\n")
    assert checkout.installed().count("requirements.txt") == 2


def test_an_interrupted_installation_of_test_packages_is_done_again_from_the_start(checkout):
    checkout.run("up")
    (checkout.home / "kill-me").touch()
    assert checkout.run("test")[0] == -9
    assert checkout.run("up")[0] == 0
    assert checkout.installed() == ["requirements.txt", "requirements-dev.txt", "requirements.txt"]


def test_a_failed_installation_ends_with_pips_words_and_a_hint(checkout):
    (checkout.home / "refuse").touch()
    code, out, err = checkout.run("up")
    assert (code, out) == (2, "")
    assert "no route to the index" in err
    assert "run it again" in err
    (checkout.home / "refuse").unlink()
    assert checkout.run("up")[0] == 0


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt"])
def test_a_changed_lock_is_installed(checkout, lock):
    checkout.run("test")
    (checkout.root / lock).write_text("# newer\n")
    before = checkout.installed()
    assert checkout.run("test")[0] == 0
    assert lock in checkout.installed()[len(before) :]
    assert checkout.run("test")[2] == ""


def test_a_checkout_that_moved_gets_a_new_environment(checkout):
    checkout.run("up")
    checkout.root = checkout.root.rename(checkout.root.with_name("elsewhere"))
    assert checkout.run("up")[1] == f"ran {checkout.root}/.venv/bin up\n"
    assert checkout.installed() == ["requirements.txt"] * 2


def test_an_environment_whose_interpreter_was_removed_is_made_again(checkout):
    checkout.run("up")
    python, stamp = checkout.root / ".venv/bin/python", checkout.root / ".venv/stead.stamp"
    removed = checkout.home / "removed"
    stamp.write_text(stamp.read_text().replace(str(python.resolve()), str(removed)))
    python.unlink()
    python.symlink_to(removed)
    assert checkout.run("up")[:2] == (0, f"ran {checkout.root}/.venv/bin up\n")


def test_a_symbolic_link_to_the_launcher_works(checkout):
    link = checkout.home / "bin" / "stead"
    link.symlink_to(checkout.root / "scripts" / "stead")
    assert checkout.run("up", program=link)[1] == f"ran {checkout.root}/.venv/bin up\n"


def test_modules_in_the_callers_directory_are_not_imported(checkout):
    (checkout.home / "slurmstead.py").write_text("raise SystemExit('wrong package')")
    assert checkout.run("up")[0] == 0


def test_two_first_calls_at_once_install_once(checkout):
    calls = [checkout.start("up", PIP_SECONDS="1") for _ in range(2)]
    assert [call.communicate(timeout=60)[0] for call in calls] == [f"ran {checkout.root}/.venv/bin up\n"] * 2
    assert checkout.installed() == ["requirements.txt"]


def test_a_checkout_on_nfs_is_locked(checkout):
    # NFS refuses a lock through a descriptor that cannot be written, with the error that this write gets.
    nfs = f"""#!/bin/sh
case "$*" in
*fcntl.flock*) {sys._base_executable} -c 'import os; os.write(9, b"")' || exit ;;
esac
"""
    checkout.tool("python3", nfs + PYTHON.format(real=sys._base_executable).removeprefix("#!/bin/sh\n"))
    assert checkout.run("up")[:2] == (0, f"ran {checkout.root}/.venv/bin up\n")


def test_a_checkout_that_cannot_be_written_is_named(checkout):
    # Also root cannot open a directory for writing.
    (checkout.root / ".venv.lock").mkdir()
    code, out, err = checkout.run("up")
    assert (code, out) == (2, "")
    assert err.startswith(f"stead: cannot write {checkout.root}/.venv.lock")
    assert len(err.splitlines()) == 1


def test_git_ignores_what_the_launcher_writes():
    written = [".venv/bin/python", ".venv.lock"]
    done = subprocess.run(["git", "check-ignore", *written], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == written


def test_a_machine_without_a_recent_python_is_told_which_package_to_install(checkout):
    checkout.tool("python3", "#!/bin/sh\n[ $1 = --version ] && echo Python 3.9.2\nexit 1\n")
    code, out, err = checkout.run("up")
    assert (code, out) == (2, "")
    assert "expected python3 >= 3.11" in err
    assert "Python 3.9.2" in err
    assert "apt install python3 python3-venv" in err


@pytest.mark.parametrize(("user", "expected"), [("0", "apt-get"), ("1000", "sudo apt-get")], ids=["root", "user"])
def test_the_package_that_makes_environments_is_installed(checkout, user, expected):
    (checkout.home / "no-ensurepip").touch()
    checkout.tool("id", f"#!/bin/sh\necho {user}\n")
    checkout.tool("sudo", '#!/bin/sh\nprintf "sudo " >> "$HOME/apt.log"; exec "$@"\n')
    checkout.tool("apt-get", '#!/bin/sh\necho "apt-get $*" >> "$HOME/apt.log"; rm -f "$HOME/no-ensurepip"\n')
    code, _, err = checkout.run("up")
    assert code == 0
    asked = (checkout.home / "apt.log").read_text()
    assert asked.startswith(f"{expected} ")
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    assert asked.split()[-1] == package
    assert package in err
    assert ("sudo" in err) == (user != "0")


def test_a_package_that_cannot_be_installed_is_named(checkout):
    (checkout.home / "no-ensurepip").touch()
    checkout.tool("sudo", '#!/bin/sh\nexec "$@"\n')
    checkout.tool("apt-get", "#!/bin/sh\nexit 100\n")
    code, _, err = checkout.run("up")
    assert code == 2
    assert "could not install python3" in err


def test_the_launcher_is_posix_shell():
    launcher = ROOT / "scripts" / "stead"
    assert launcher.read_text().startswith("#!/bin/sh\n")
    assert os.access(launcher, os.X_OK)
    subprocess.run(["sh", "-n", str(launcher)], check=True)
