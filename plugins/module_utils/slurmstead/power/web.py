# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Requests to BMCs and plugs: one connection each, with a time limit, over TLS with a pinned certificate if known.

BMCs have certificates of their own making, so no authority can vouch for them.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import secrets
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ansible.module_utils.slurmstead.power.model import Machine, PowerError, RefusedError

LARGEST = 1 << 20
"""Bytes of an answer that are read."""


class Stream(NamedTuple):
    """A body that is sent in parts."""

    parts: Iterator[bytes]
    length: int
    """bytes of all parts"""
    kind: str
    """its media type"""


def request(
    machine: Machine,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    tls: bool = True,
    secret: str = "",
) -> Any:
    """Return the decoded answer to a GET, or to a POST if there is a body; None if the answer is empty.

    :param secret: end of the path that no message shows
    :raises RefusedError: the credentials are refused
    :raises PowerError: no answer, or another error
    """
    status, text, _ = exchange(machine, path + secret, body, headers, tls)
    if status in (401, 403):
        raise RefusedError(f"{machine.address} refuses the credentials of {machine.name} (HTTP {status})")
    if not 200 <= status < 300:
        raise PowerError(f"{machine.address} answers HTTP {status} to {path}")
    try:
        return json.loads(text) if text.strip() else None
    except ValueError:
        raise PowerError(f"{machine.address} answers {path} with text that is not JSON") from None


def members(machine: Machine, path: str, found: Any) -> Mapping[str, Any]:
    """Return the members of an answer, none of an empty one; what is not an object raises PowerError."""
    if found is not None and not isinstance(found, dict):
        raise PowerError(f"{machine.address} answers {path} with JSON that is not an object")
    return found or {}


def exchange(
    machine: Machine, path: str, body: Any = None, headers: Mapping[str, str] | None = None, tls: bool = True
) -> tuple[int, bytes, Mapping[str, str]]:
    """Return status, text and headers of an answer; no answer raises PowerError."""
    connection = _connection(machine, tls)
    content: Any = None
    sent = {"Accept": "application/json"}
    if isinstance(body, Stream):
        content, sent = body.parts, {**sent, "Content-Type": body.kind, "Content-Length": str(body.length)}
    elif body is not None:
        content, sent = json.dumps(body).encode(), {**sent, "Content-Type": "application/json"}
    try:
        connection.connect()
        _check_certificate(machine, connection)
        connection.request("GET" if body is None else "POST", path, content, {**sent, **(headers or {})})
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, answer.read(LARGEST), found
    # ValueError: a name that cannot be one, such as that of two dots.
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise PowerError(f"{machine.address} does not answer: {error or type(error).__name__}") from None
    finally:
        connection.close()
        if isinstance(connection, _Tunnel):
            connection.end()


def _connection(machine: Machine, tls: bool) -> http.client.HTTPConnection:
    try:
        if not tls:
            return http.client.HTTPConnection(machine.address, timeout=machine.seconds)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if machine.through:
            return _Tunnel(machine, context)
        return http.client.HTTPSConnection(machine.address, timeout=machine.seconds, context=context)
    except http.client.InvalidURL as error:
        raise PowerError(f"the address of {machine.name}'s BMC cannot be used: {error}") from None


class _Tunnel(http.client.HTTPSConnection):
    """A connection that ssh makes from another machine (-W of ssh(1)); TLS is between this computer and the BMC."""

    def __init__(self, machine: Machine, context: ssl.SSLContext) -> None:
        super().__init__(machine.address, timeout=machine.seconds, context=context)
        self._machine, self._tls = machine, context
        self._ssh: subprocess.Popen[bytes] | None = None

    def connect(self) -> None:
        here, there = socket.socketpair()
        ssh, *options = self._machine.through
        words = [ssh, "-W", f"{self.host}:{self.port}", *options]
        with there:
            self._ssh = subprocess.Popen(words, stdin=there.fileno(), stdout=there.fileno(), stderr=subprocess.DEVNULL)
        here.settimeout(self._machine.seconds)
        self.sock = self._tls.wrap_socket(here)

    def end(self) -> None:
        """End ssh. http.client closes a connection before the answer is read, so this is not in `close`."""
        if self._ssh:
            self._ssh.kill()
            self._ssh.wait()


def _check_certificate(machine: Machine, connection: http.client.HTTPConnection) -> None:
    """Refuse another certificate than the pinned one before credentials are sent."""
    wanted = machine.certificate.replace(":", "").lower()
    if not wanted or not isinstance(connection.sock, ssl.SSLSocket):
        return
    found = hashlib.sha256(connection.sock.getpeercert(binary_form=True) or b"").hexdigest()
    if found != wanted:
        raise PowerError(f"{machine.address} has another certificate than power_certificate says: {found}")


def basic(machine: Machine) -> dict[str, str]:
    """Return the header that logs in with user and password (RFC 7617)."""
    return {"Authorization": "Basic " + base64.b64encode(f"{machine.user}:{machine.password}".encode()).decode()}


def digest(machine: Machine, path: str, challenge: str, method: str = "GET") -> dict[str, str]:
    """Return the header that answers a challenge with SHA-256 (RFC 7616), as Shelly's second generation wants it."""
    words = urllib.request.parse_keqv_list(urllib.request.parse_http_list(challenge.partition(" ")[2]))
    user, nonce, once, count = machine.user or "admin", words.get("nonce", ""), secrets.token_hex(8), "00000001"
    first = _hash(f"{user}:{words.get('realm', '')}:{machine.password}")
    answer = _hash(f"{first}:{nonce}:{count}:{once}:auth:{_hash(f'{method}:{path}')}")
    fields = {"username": user, "realm": words.get("realm", ""), "nonce": nonce, "uri": path, "response": answer}
    text = ", ".join(f'{name}="{value}"' for name, value in {**fields, "cnonce": once}.items())
    return {"Authorization": f"Digest {text}, qop=auth, nc={count}, algorithm=SHA-256"}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
