"""Keeps the end of one TLS connection from ending all others of the process; Dask's processes preload it.

With OpenSSL 3.4 or newer (Debian 13), Python leaves the note of a broken connection where the next one that reads takes
it for its own (CPython issue 148594). It removes such notes when it makes a TLS object, so one is made.
"""

import functools
import ssl
from collections.abc import Callable
from typing import Any

SPARE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
SPARE.check_hostname = False


def forget_errors() -> None:
    """Remove OpenSSL's notes."""
    SPARE.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO())


def forgetting(method: Callable[..., Any], always: bool) -> Callable[..., Any]:
    """Return a method after which no note is left: always, or when it failed."""

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        failed = True
        try:
            answer = method(*args, **options)
            failed = False
            return answer
        finally:
            if failed or always:
                forget_errors()

    return call


def forget_always() -> None:
    """Let no connection of this process leave a note."""
    for name in ("do_handshake", "recv_into", "send"):
        setattr(ssl.SSLSocket, name, forgetting(getattr(ssl.SSLSocket, name), always=name == "do_handshake"))


def dask_setup(_server: object) -> None:
    """Do it in a process of Dask (--preload)."""
    forget_always()
