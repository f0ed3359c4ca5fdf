"""Files of a site: only a site that exists has some."""

import pytest

from slurmstead.errors import InventoryError, UsageError
from slurmstead.site import file


def test_a_mistyped_site_is_refused_and_nothing_is_created(tmp_path):
    with pytest.raises(InventoryError, match="clutser does not exist"):
        file.beside(tmp_path / "clutser", "people.yml")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Return the project's `files/`, as in a clone without files of the operator's own."""
    directory = tmp_path / "clone/files"
    directory.mkdir(parents=True)
    (directory / "README.md").touch()
    monkeypatch.setattr(file, "ROOT", directory.parent)
    return directory


def test_a_site_does_not_lose_the_files_of_the_project_to_new_ones(tmp_path, clone):
    (clone / "health.d").mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "site/hosts.yml").touch()

    for inventory in (tmp_path / "site", tmp_path / "site/hosts.yml"):
        with pytest.raises(UsageError) as caught:
            file.beside(inventory, "people.yml")
        assert f"there is no {tmp_path}/site/files" in str(caught.value)
        assert f"uses {clone};" in str(caught.value)
        assert f"`cp -a {clone} {tmp_path}/site/`" in caught.value.hint

    (tmp_path / "site/files").mkdir()
    assert file.beside(tmp_path / "site", "people.yml") == tmp_path / "site/files/people.yml"


def test_a_site_may_get_its_first_file_where_the_project_has_none(tmp_path, clone):
    (tmp_path / "site").mkdir()

    assert file.beside(tmp_path / "site", "people.yml") == tmp_path / "site/files/people.yml"
