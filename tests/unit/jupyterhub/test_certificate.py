"""The certificate of the hub, by the real openssl."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from ansible.module_utils.slurmstead.jupyterhub import certificate
from ansible.module_utils.slurmstead.jupyterhub.certificate import Secrets

NAMES = ["control", "10.77.0.1", "fd00::1"]


def why(one: Secrets) -> str:
    """Return why there is something to make, without the path."""
    return ", ".join(line.partition(": ")[2] for line in one.missing())


def test_what_is_missing_is_made_once_and_closed_to_others(tmp_path: pathlib.Path) -> None:
    one = Secrets(tmp_path / "new", NAMES)

    assert why(one) == "new secret, new authority, new certificate"
    one.make()
    assert one.missing() == []
    assert {path.name: path.stat().st_mode & 0o777 for path in one.directory.iterdir()} == {
        "authority.crt": 0o644,
        "authority.key": 0o600,
        "hub.pem": 0o600,
        "proxy.env": 0o600,
    }


def test_what_hub_and_proxy_must_read_again_has_another_digest(tmp_path: pathlib.Path) -> None:
    one = Secrets(tmp_path, NAMES)
    one.make()
    first = one.digest()
    assert Secrets(tmp_path, NAMES).digest() == first

    other = Secrets(tmp_path, ["hub"])
    other.make()
    second = other.digest()
    site = tmp_path / "site.pem"
    site.write_text("certificate")
    digests = {first, second, other.digest(site)}
    site.write_text("renewed")

    assert len({*digests, other.digest(site)}) == 4


def test_the_certificate_is_for_its_names(tmp_path: pathlib.Path) -> None:
    one = Secrets(tmp_path, NAMES)
    one.make()
    verify = ["openssl", "verify", "-CAfile", str(one.authority), "-purpose", "sslserver"]

    for option, name in (("-verify_hostname", "control"), ("-verify_ip", "10.77.0.1"), ("-verify_ip", "fd00::1")):
        subprocess.run([*verify, option, name, str(one.hub)], check=True, capture_output=True)
    other = subprocess.run([*verify, "-verify_hostname", "node1", str(one.hub)], check=False, capture_output=True)
    assert other.returncode != 0


def test_other_names_need_another_certificate_by_the_same_authority(tmp_path: pathlib.Path) -> None:
    Secrets(tmp_path, NAMES).make()
    authority = (tmp_path / "authority.crt").read_text()
    other = Secrets(tmp_path, [*NAMES, "hub.example.org"])

    assert why(other) == "new certificate (its names differ)"
    other.make()
    assert other.missing() == []
    assert (tmp_path / "authority.crt").read_text() == authority


def test_a_certificate_is_renewed_before_its_end(tmp_path: pathlib.Path) -> None:
    one = Secrets(tmp_path, NAMES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate, "DAYS", certificate.RENEWED - 1)
        one.make()

    assert why(one) == "new certificate (it ends within 180 days)"
    one.make()
    assert one.missing() == []


def test_a_certificate_of_another_authority_is_replaced(tmp_path: pathlib.Path) -> None:
    one, two = Secrets(tmp_path / "one", NAMES), Secrets(tmp_path / "two", NAMES)
    one.make()
    two.make()
    two.hub.write_bytes(one.hub.read_bytes())

    assert why(two) == "new certificate (the authority did not sign it)"


def test_a_site_with_a_certificate_has_no_authority(tmp_path: pathlib.Path) -> None:
    one = Secrets(tmp_path)
    one.make()

    assert [path.name for path in tmp_path.iterdir()] == ["proxy.env"]
