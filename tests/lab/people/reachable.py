"""Prints which parts of the broker accept the password in a user's file: python3 reachable.py FILE

It speaks the protocols itself, because a node has no library for them.
"""

import json
import pathlib
import re
import socket
import sys

SECONDS = 20


def parts(url: str) -> tuple[str, str, tuple[str, int]]:
    """Return user, password and place of a URL."""
    match = re.fullmatch(r"\w+://(.*?):(.*?)@(.*):(\d+)/.*", url)
    assert match
    return match[1], match[2], (match[3], int(match[4]))


def redis(user: str, password: str, place: tuple[str, int]) -> bool:
    """Say whether Redis stores a value (RESP)."""
    with socket.create_connection(place, SECONDS) as connection:
        connection.sendall(f"AUTH {user} {password}\r\nSET x 1\r\nQUIT\r\n".encode())
        said = b"".join(iter(lambda: connection.recv(4096), b""))
    return said == b"+OK\r\n" * 3


def rabbitmq(user: str, password: str, place: tuple[str, int]) -> bool:
    """Say whether RabbitMQ answers a login with connection.tune, not with connection.close (AMQP 0-9-1, 1.4)."""
    response = b"\0" + user.encode() + b"\0" + password.encode()
    # connection.start-ok: no properties, PLAIN, the response, the locale.
    method = b"\0\x0a\0\x0b" + bytes(4) + b"\x05PLAIN" + len(response).to_bytes(4, "big") + response + b"\x05en_US"
    with socket.create_connection(place, SECONDS) as connection:
        connection.settimeout(SECONDS)
        connection.sendall(b"AMQP\0\0\x09\x01")
        connection.recv(65536)
        connection.sendall(b"\x01\0\0" + len(method).to_bytes(4, "big") + method + b"\xce")
        return connection.recv(65536)[7:11] == b"\0\x0a\0\x1e"


def main() -> None:
    """Try both."""
    given = json.loads(pathlib.Path(sys.argv[1]).read_text())
    found = {}
    for name, key, accepts in (("rabbitmq", "broker_url", rabbitmq), ("redis", "result_backend", redis)):
        try:
            found[name] = accepts(*parts(given[key]))
        except OSError:
            found[name] = False
    print(json.dumps(found))


main()
