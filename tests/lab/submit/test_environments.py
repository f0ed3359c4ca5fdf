"""Virtual environments: built once, on a worker, as a whole or not at all."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path
from typing import Any

MAIN = "import alpha, sys\nprint(alpha.double(21), sys.prefix)\n"


def wheel(directory: Path, name: str, source: str, requires: str = "") -> None:
    """Write a wheel of one module (binary distribution format, PEP 427)."""
    directory.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(path), text)


def two_dependencies(cluster: Any, main: str = MAIN) -> Path:
    """Return a project that needs alpha, which needs beta, with both as wheels: no node needs an index."""
    toml = 'wheels = "wheels"\nmem = "150M"\n'
    folder = cluster.project("deps", {"main.py": main, "requirements.txt": "alpha==1.0\n", "stead.toml": toml})
    wheel(folder / "wheels", "alpha", "import beta\n\ndef double(x):\n    return beta.times(2, x)\n", "beta==1.0")
    wheel(folder / "wheels", "beta", "def times(a, b):\n    return a * b\n")
    assert isinstance(folder, Path)
    return folder


def environments(cluster: Any) -> list[str]:
    """Return what stands where environments do, but for their locks."""
    below = f"{cluster.variables['STEAD_DIRECTORY']}/environments"
    return [name for name in cluster.user(f"ls {below}").split() if not name.endswith(".lock")]


def test_five_submits_at_once_build_one_environment(cluster: Any) -> None:
    folder = two_dependencies(cluster)
    clients = [cluster.start("submit", folder, "--wait") for _ in range(5)]
    printed = []
    for client in clients:
        with client:
            out, words = client.communicate(timeout=600)
        assert client.returncode == 0, words
        printed.append(cluster.stead("logs", cluster.run_of(out)))

    (answer,) = {line.split()[0] for line in printed}
    (prefix,) = {line.split()[1] for line in printed}
    link, target = sorted(environments(cluster))
    assert answer == "42"
    assert prefix.endswith(f"/environments/{target}")
    assert target.startswith(f"{link}.build-")
    logs = cluster.user(f"ls {cluster.variables['STEAD_DIRECTORY']}/runs/*/environment.log")
    assert len(logs.split()) == 1, "one of them built it, and only that has a log of pip"


def test_a_build_that_is_killed_is_made_again(cluster: Any) -> None:
    folder = two_dependencies(cluster)
    run = cluster.run_of(cluster.stead("submit", folder))
    below = f"{cluster.variables['STEAD_DIRECTORY']}/environments"
    deadline = time.monotonic() + 60
    while ".build-" not in cluster.user(f"ls {below} 2>/dev/null || true"):
        assert time.monotonic() < deadline, "the build did not begin"
        time.sleep(0.1)
    job = cluster.jobs()[run]["jobs"][0]
    cluster.user(f"scancel --signal=KILL --full {job}")
    assert cluster.wait(run)["state"] != "completed"
    said = cluster.stead("submit", folder, "--wait")

    assert cluster.stead("logs", cluster.run_of(said)).startswith("42 ")
    assert len(environments(cluster)) == 2


def test_what_a_killed_builder_left_is_not_used_and_goes(cluster: Any) -> None:
    folder = two_dependencies(cluster)
    cluster.stead("submit", folder, "--wait")
    link, target = sorted(environments(cluster))
    # A builder that loses its power leaves a directory that no link names.
    cluster.user(f"cd {cluster.variables['STEAD_DIRECTORY']}/environments && rm {link} && rm -r {target}/lib")
    said = cluster.stead("submit", folder, "--wait")

    assert cluster.stead("logs", cluster.run_of(said)).startswith("42 ")
    assert link in environments(cluster)
    assert target not in environments(cluster)


def test_what_cannot_be_installed_fails_all_tasks_and_says_why(cluster: Any) -> None:
    folder = two_dependencies(cluster)
    (folder / "requirements.txt").write_text("alpha==1.0\ngamma==3.0\n")
    said = cluster.stead("submit", folder, "--array", "0-3", "--wait", code=4)

    assert "4 of 4 tasks failed" in said
    assert "No matching distribution found for gamma==3.0" in said
    assert environments(cluster) == []
    logs = cluster.user(f"ls {cluster.variables['STEAD_DIRECTORY']}/runs/*/tasks/*/environment.log")
    assert len(logs.split()) == 1, "one of them tried"


def test_an_environment_that_nobody_used_for_a_month_goes_with_the_next_submission(cluster: Any) -> None:
    folder = two_dependencies(cluster)
    cluster.stead("submit", folder, "--wait")
    below = f"{cluster.variables['STEAD_DIRECTORY']}/environments"
    plain = cluster.project("plain", {"main.py": "print(1)"})
    cluster.stead("submit", plain, "--wait")
    assert len(environments(cluster)) == 2
    cluster.user(f"touch --date='31 days ago' {below}/*/used")
    cluster.stead("submit", plain, "--wait")

    assert environments(cluster) == []
    assert "42" in cluster.stead("logs", cluster.run_of(cluster.stead("submit", folder, "--wait")))
