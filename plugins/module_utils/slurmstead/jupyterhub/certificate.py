# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The certificate of the hub by an authority of its own, and the secret that hub and proxy share.

The key and the certificate are one file, which is replaced at once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import ipaddress
import pathlib
import secrets
import subprocess
import tempfile
from collections.abc import Sequence

from ansible.module_utils.slurmstead.reach import durable

AUTHORITY_DAYS, DAYS, RENEWED = 7300, 820, 180
"""How long certificates are valid, and how many days before its end that of the hub is renewed."""

LONGEST = 64
"""Letters of a common name (RFC 5280, ub-common-name)."""

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")


class CertificateError(Exception):
    """openssl refused something."""


@dataclasses.dataclass(frozen=True)
class Secrets:
    """The directory of the secrets, and the names and addresses of the hub, or none if the site has a certificate."""

    directory: pathlib.Path
    names: Sequence[str] = ()

    @property
    def token(self) -> pathlib.Path:
        """The file of the secret of hub and proxy, for systemd."""
        return self.directory / "proxy.env"

    @property
    def authority(self) -> pathlib.Path:
        """The certificate of the authority, which browsers may import; its key is beside it."""
        return self.directory / "authority.crt"

    @property
    def hub(self) -> pathlib.Path:
        """Key and certificate of the hub."""
        return self.directory / "hub.pem"

    def digest(self, certificate: pathlib.Path | None = None) -> str:
        """Return a digest of what hub and proxy read when they start; `certificate` is the site's own."""
        read = [path for path in (self.token, certificate or self.hub) if path.exists()]
        return hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest()[:16]

    def missing(self) -> list[str]:
        """Return what has to be made, and why."""
        found = [] if self.token.exists() else [f"{self.token}: new secret"]
        if not self.names:
            return found
        if not self.authority.exists() or not self.authority.with_suffix(".key").exists():
            return [*found, f"{self.authority}: new authority", f"{self.hub}: new certificate"]
        why = self._why_new()
        return [*found, f"{self.hub}: new certificate ({why})"] if why else found

    def make(self) -> None:
        """Make what is missing.

        :raises CertificateError: openssl failed
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self.token.exists():
            durable.write(self.token, f"CONFIGPROXY_AUTH_TOKEN={secrets.token_hex(32)}\n".encode(), 0o600)
        if not self.names:
            return
        authority_key = self.authority.with_suffix(".key")
        if not self.authority.exists() or not authority_key.exists():
            extensions: tuple[str, ...] = (
                "basicConstraints=critical,CA:TRUE,pathlen:0",
                "keyUsage=critical,keyCertSign,cRLSign",
            )
            key, signed = self._signed(f"Slurmstead notebooks of {self.names[0]}"[:LONGEST], AUTHORITY_DAYS, extensions)
            durable.write(authority_key, key, 0o600)
            durable.write(self.authority, signed, 0o644)
        if self._why_new():
            extensions = (
                f"subjectAltName={','.join(_general(name) for name in self.names)}",
                *("extendedKeyUsage=serverAuth", "basicConstraints=critical,CA:FALSE"),
            )
            signer = ("-CA", str(self.authority), "-CAkey", str(authority_key))
            durable.write(self.hub, b"".join(self._signed(self.names[0], DAYS, extensions, signer)), 0o600)

    def _signed(
        self, name: str, days: int, extensions: Sequence[str], signer: Sequence[str] = ()
    ) -> tuple[bytes, bytes]:
        """Return a new key and its certificate."""
        with tempfile.TemporaryDirectory(prefix=".new.", dir=self.directory) as place:
            key, certificate = pathlib.Path(place, "key"), pathlib.Path(place, "certificate")
            added = [word for extension in extensions for word in ("-addext", extension)]
            files = ("-keyout", str(key), "-out", str(certificate))
            done = _run("req", "-x509", *NEW_KEY, *files, *signer, "-days", str(days), "-subj", f"/CN={name}", *added)
            if done.returncode:
                raise CertificateError(f"openssl req: {done.stderr.strip()}")
            return key.read_bytes(), certificate.read_bytes()

    def _why_new(self) -> str:
        """Return why the hub needs a new certificate; empty if it does not."""
        if not self.hub.exists():
            return "it does not exist"
        if not _holds("verify", "-CAfile", str(self.authority), str(self.hub)):
            return "the authority did not sign it"
        if not _holds("x509", "-in", str(self.hub), "-noout", "-checkend", str(RENEWED * 24 * 3600)):
            return f"it ends within {RENEWED} days"
        shown = _run("x509", "-in", str(self.hub), "-noout", "-ext", "subjectAltName").stdout.splitlines()
        listed = {_known(word) for word in (shown[-1] if shown else "").replace("IP Address:", "IP:").split(",")}
        return "" if listed == {_known(_general(name)) for name in self.names} else "its names differ"


def _general(name: str) -> str:
    """Return a name as openssl writes it in subjectAltName.

    >>> _general("control"), _general("10.0.0.1")
    ('DNS:control', 'IP:10.0.0.1')
    """
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        return f"DNS:{name}"


def _known(word: str) -> str:
    """Return a general name in one form, because openssl prints IPv6 addresses in another."""
    kind, _, name = word.strip().partition(":")
    try:
        return f"{kind}:{ipaddress.ip_address(name).exploded}"
    except ValueError:
        return f"{kind}:{name.lower()}"


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["openssl", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _holds(*words: str) -> bool:
    return _run(*words).returncode == 0
