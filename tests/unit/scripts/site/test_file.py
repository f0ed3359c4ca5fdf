"""Files of a site: only a site that exists has some."""

import pytest

from slurmstead.errors import InventoryError
from slurmstead.site import file


def test_a_mistyped_site_is_refused_and_nothing_is_created(tmp_path):
    with pytest.raises(InventoryError, match="clutser does not exist"):
        file.beside(tmp_path / "clutser", "people.yml")
    assert not list(tmp_path.iterdir())
