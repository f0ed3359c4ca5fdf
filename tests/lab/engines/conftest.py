"""The examples as folders that can be submitted where the nodes have no index of Python packages."""

from __future__ import annotations

import concurrent.futures
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import client
from tests.lab.engines.running import BROKER, EXAMPLES, download, output, requirements, send, submit

TOGETHER = ("mpi", "dask", "celery")
"""Examples that share an environment, because building one takes minutes on an emulated CPU."""


@pytest.fixture(scope="session")
def cluster(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[client.Cluster]:
    """The lab's cluster; all tests share their environments."""
    with client.connected(lab, tmp_path_factory.mktemp("laptop")) as found:
        yield found


@pytest.fixture(scope="session")
def wheels(lab: Any, cluster: client.Cluster) -> Iterator[Callable[..., str]]:
    """What examples need together, by their names, as one requirements.txt, whose wheels are on the share."""
    version = lab.user("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")

    def bring(*names: str) -> str:
        needed, label = requirements(names), "-".join(("wheels", *names))
        download(needed, cluster.directory / label, version)
        place = f"{cluster.variables['STEAD_DIRECTORY']}-{label}"
        send(lab, cluster.directory / label, place)
        return f"--no-index\n--find-links {place}\n{needed}"

    yield bring
    lab.user(f"rm -rf {cluster.variables['STEAD_DIRECTORY']}-wheels-*")


@pytest.fixture(scope="session")
def building(cluster: client.Cluster, wheels: Callable[..., str]) -> Iterator[concurrent.futures.Future[str]]:
    """The environment of TOGETHER, which a worker builds while the test does something else: its directory."""

    def build() -> str:
        files = {"requirements.txt": wheels(*TOGETHER), "main.py": "import sys; print(sys.prefix)"}
        run = submit(cluster, "--mem", "400M", "--time", 20, cluster.project("together", files))
        return output(cluster, run)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield pool.submit(build)


@pytest.fixture(scope="session")
def environment(building: concurrent.futures.Future[str]) -> str:
    """The directory of the environment of TOGETHER, which is complete."""
    return building.result()


@pytest.fixture(scope="session")
def example(request: pytest.FixtureRequest, cluster: client.Cluster) -> Callable[[str], Path]:
    """A copy of an example, by its name, with requirements that the workers have wheels for."""

    def copy(name: str) -> Path:
        folder = cluster.directory / name
        if not folder.exists():
            shutil.copytree(EXAMPLES / name, folder)
            if name in TOGETHER:
                request.getfixturevalue("environment")
                shutil.copy(cluster.directory / "together" / "requirements.txt", folder)
            elif (folder / "requirements.txt").exists():
                (folder / "requirements.txt").write_text(request.getfixturevalue("wheels")(name))
        return folder

    return copy


@pytest.fixture(scope="module")
def broker(lab: Any, building: object) -> Iterator[Any]:
    """How the run ended that brought the broker, of which nothing but packages is left in the end."""
    try:
        run = lab.ansible(*BROKER)
        assert run.code == 0, run.output
        yield run
    finally:
        lab.everywhere(lambda name: lab.root(name, "rm -rf /etc/slurmstead/celery /etc/slurmstead/celery_broker.json"))
        units = "rabbitmq-server.service slurmstead-redis.target epmd.socket epmd.service"
        lab.root(lab.control, f"systemctl disable --now {units}; systemctl reset-failed {units}; true", seconds=180)


@pytest.fixture(scope="module")
def home(lab: Any, broker: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """alice's copy of examples/celery, where its environment is a link: its directory on the share."""
    # Not a parameter: what lives for the session is made first, and the broker would wait for it.
    environment = request.getfixturevalue("environment")
    place = "/share/home/alice/celery"
    lab.user(f"rm -rf {place}")
    send(lab, EXAMPLES / "celery", place)
    lab.user(f"ln -s {environment} {place}/env")
    try:
        yield place
    finally:
        lab.user("scancel --user=alice")
        lab.wait_until_idle(180)
        lab.user(f"rm -rf {place}")
