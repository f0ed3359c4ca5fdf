"""Simulated devices that switch machines, each speaking its real protocol on loopback.

bmcd follows src/api/legacy.rs and src/api/into_legacy_response.rs of turing-machines/bmcd, read at 00ccc41; when it
writes an image, src/streaming_data_service.rs, src/app/upgrade_worker.rs and src/utils/io.rs at a15e8fc. Redfish
(DMTF DSP0266), Tasmota and Shelly are written as their makers describe them, and were not compared with recorded
answers of a device. IPMI is OpenIPMI's own ipmi_sim.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import http.server
import json
import pathlib
import ssl
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any


@dataclasses.dataclass
class Device:
    """What a device knows, and what was asked of it."""

    user: str = "admin"
    password: str = "right"
    on: bool = False
    lies: bool = False
    """accepts each request and switches nothing"""
    broken: int = 0
    """an HTTP status with which it answers everything"""
    logins: int = 0
    refused: int = 0
    switched: list[str] = dataclasses.field(default_factory=list)
    address: str = ""
    certificate: str = ""
    disk: pathlib.Path | None = None
    """of the module that bmcd writes"""
    transfer: Any = "Ready"
    """the state of bmcd's StreamingDataService, as it is serialized"""
    announced: dict[str, str] = dataclasses.field(default_factory=dict)
    fault: str = ""
    """of the module: `write` or `flip`; of the connection: `cut`; of bmcd: `restart`"""

    def switch(self, on: bool, word: str) -> None:
        self.switched.append(word)
        if not self.lies:
            self.on = on


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers JSON; subclasses answer one protocol."""

    device: Device

    def log_message(self, *_: object) -> None: ...

    def say(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(value).encode() if value is not None else b""
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def basic(self) -> bool:
        device = self.device
        expected = base64.b64encode(f"{device.user}:{device.password}".encode()).decode()
        device.logins += 1
        if self.headers.get("Authorization") == f"Basic {expected}":
            return True
        device.refused += 1
        self.say({"error": "unauthorized"}, 401)
        return False

    def do_GET(self) -> None:
        self.answer(None)

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(json.loads(text))

    def answer(self, body: Any) -> None:
        if self.device.broken:
            self.say({}, self.device.broken)
        else:
            self.respond(body)

    def respond(self, body: Any) -> None:
        raise NotImplementedError

    @property
    def query(self) -> dict[str, str]:
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))


class RedfishHandler(Handler):
    """One system, as iLO 5 describes it; it refuses to switch a machine on that is on."""

    def respond(self, body: Any) -> None:
        path, device = self.path.rstrip("/"), self.device
        if not self.basic():
            return
        target = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"
        if body is None and path == "/redfish/v1/Systems":
            self.say({"Members": [{"@odata.id": "/redfish/v1/Systems/1"}], "Members@odata.count": 1})
        elif body is None and path == "/redfish/v1/Systems/1":
            kinds = ["On", "ForceOff", "GracefulShutdown", "ForceRestart"]
            reset = {"target": target, "ResetType@Redfish.AllowableValues": kinds}
            self.say({"PowerState": "On" if device.on else "Off", "Actions": {"#ComputerSystem.Reset": reset}})
        elif body is not None and path == target:
            on = body["ResetType"] == "On"
            if on == device.on:
                self.say({"error": {"code": "iLO.2.14.InvalidOperationForSystemState"}}, 400)
            else:
                device.switch(on, body["ResetType"])
                self.say(None, 204)
        else:
            self.say({"error": {"code": "Base.1.4.ResourceMissingAtURI"}}, 404)


class BmcdHandler(Handler):
    """bmcd 2.x; its bit is what was set last. The module in slot 2 has a disk."""

    def do_POST(self) -> None:
        if not self.basic():
            return
        try:
            self.upload(int(self.path.removeprefix("/api/bmc/upload/")))
        except ConnectionError:
            self.device.transfer = {"Error": "cancelled by user"}

    def respond(self, body: Any) -> None:
        if not self.basic():
            return
        words = self.query
        if words.get("type") == "power" and words.get("opt") == "get":
            bits = {f"node{n}": "1" if n == 2 and self.device.on else "0" for n in (1, 2, 3, 4)}
            self.result([bits])
        elif words.get("type") == "power" and words.get("opt") == "set" and "node2" in words:
            self.device.switch(words["node2"] == "1", words["node2"])
            self.result("ok")
        elif words.get("type") == "flash" and words.get("opt") == "get":
            self.say(self.progress())
        elif words.get("type") == "flash" and words.get("opt") == "set":
            self.announce(words)
        else:
            self.result("Invalid `type` parameter", 400)

    def result(self, value: Any, status: int = 200) -> None:
        self.say({"response": [{"result": value}]}, status)

    def announce(self, words: dict[str, str]) -> None:
        """Begin a transfer; whatever was under way is cancelled."""
        if not words.get("file"):
            self.result("Invalid `file` query parameter", 400)
        elif not words.get("length"):
            self.result("Invalid `length` query parameter", 411)
        elif words.get("node") != "1":
            self.result("Missing `node` parameter", 400)
        else:
            self.device.announced = words
            more = {"process_name": "Node 2 os install service", "size": int(words["length"])}
            self.device.transfer = {"Transferring": {"id": 4242, **more, "cancelled": False, "bytes_written": 0}}
            self.say({"handle": 4242})

    def upload(self, handle: int) -> None:
        """Take the first part of a form, write it to the disk of the module, and read it back."""
        device = self.device
        doing = device.transfer.get("Transferring") if isinstance(device.transfer, dict) else None
        if not doing or doing["id"] != handle:
            self.result("unauthorized request for handle", 400)
            return
        assert device.disk
        device.on = True
        digest, left = hashlib.sha256(), int(self.headers["Content-Length"])
        mark = self.headers["Content-Type"].partition("boundary=")[2]
        left -= self._skip_head(mark)
        with device.disk.open("r+b") as disk:
            for count in self._counts(left - len(f"\r\n--{mark}--\r\n")):
                block = self.rfile.read(count)
                if not block:
                    raise ConnectionResetError
                digest.update(block)
                if device.fault == "write":
                    self._fail("No space left on device (os error 28)", 500)
                    return
                if device.fault == "cut":
                    # No more is heard of the board.
                    device.broken = 503
                    self.connection.close()
                    raise ConnectionResetError
                disk.write(block)
                doing["bytes_written"] += len(block)
        self.rfile.read(len(f"\r\n--{mark}--\r\n"))
        if doing["bytes_written"] != doing["size"]:
            self._fail(f"missing {doing['size'] - doing['bytes_written']} bytes", 400)
        elif "sha256" in device.announced and digest.hexdigest() != device.announced["sha256"]:
            self._fail("sha256 checksum failed", 500)
        else:
            doing["bytes_written"] = 0
            self.say(None)

    def progress(self) -> Any:
        """Return the state; each question finds a third more of the disk read back."""
        device = self.device
        doing = device.transfer.get("Transferring") if isinstance(device.transfer, dict) else None
        if doing:
            if device.fault == "restart":
                device.transfer = "Ready"
            elif doing["bytes_written"] < doing["size"]:
                doing["bytes_written"] += -(-doing["size"] // 3)
            else:
                device.on = False
                device.transfer = {"Done": [{"secs": 3, "nanos": 0}, doing["size"]]}
                if device.fault == "flip":
                    device.transfer = {"Error": "crc error. expected 1, calculated 2"}
        return device.transfer

    def _skip_head(self, mark: str) -> int:
        """Read up to the content of the part; return how long that was."""
        lines = [self.rfile.readline()]
        assert lines[0] == f"--{mark}\r\n".encode()
        while lines[-1] != b"\r\n":
            lines.append(self.rfile.readline())
        assert any(line.lower().startswith(b"content-disposition: form-data;") for line in lines)
        return sum(map(len, lines))

    @staticmethod
    def _counts(size: int) -> Iterator[int]:
        for start in range(0, size, 2**16):
            yield min(2**16, size - start)

    def _fail(self, why: str, status: int) -> None:
        """As after a success, the module is off."""
        self.device.on = False
        self.device.transfer = {"Error": why}
        self.result(why, status)


class TasmotaHandler(Handler):
    """A plug of one relay, which Tasmota calls POWER in its answers."""

    def respond(self, body: Any) -> None:
        words, device = self.query, self.device
        device.logins += 1
        if (words.get("user"), words.get("password")) != (device.user, device.password):
            device.refused += 1
            self.say({"WARNING": "Need user=<username>&password=<password>"})
            return
        command = words["cmnd"].split()
        if command[1:]:
            device.switch(command[1] == "On", command[1])
        self.say({"POWER": "ON" if device.on else "OFF"})


class ShellyHandler(Handler):
    """The first generation."""

    def respond(self, body: Any) -> None:
        if self.basic():
            if "turn" in self.query:
                self.device.switch(self.query["turn"] == "on", self.query["turn"])
            self.say({"ison": self.device.on, "has_timer": False})


class Shelly2Handler(Handler):
    """The second generation, with a digest by SHA-256."""

    def respond(self, body: Any) -> None:
        device = self.device
        header = self.headers.get("Authorization", "")
        if not header:
            challenge = 'Digest qop="auth", realm="shellyplugsg3", nonce="1690000000", algorithm=SHA-256'
            self.say(None, 401, {"WWW-Authenticate": challenge})
            return
        words = urllib.request.parse_keqv_list(urllib.request.parse_http_list(header.partition(" ")[2]))
        one = self._hash(f"{device.user}:shellyplugsg3:{device.password}")
        two = self._hash(f"GET:{self.path}")
        answer = self._hash(f"{one}:1690000000:{words['nc']}:{words['cnonce']}:auth:{two}")
        device.logins += 1
        if answer != words["response"]:
            device.refused += 1
            self.say(None, 401, {"WWW-Authenticate": "Digest"})
        elif "Switch.Set" in self.path:
            device.switch(self.query["on"] == "true", self.query["on"])
            self.say({"was_on": False})
        else:
            self.say({"id": 0, "output": device.on, "apower": 0.0})

    @staticmethod
    def _hash(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()


@contextlib.contextmanager
def served(
    handler: type[Handler], tls: tuple[pathlib.Path, str] | None = None, device: Device | None = None
) -> Iterator[Device]:
    """Run a device; with `tls`, a file of key and certificate and its hash, over HTTPS."""
    device = device or Device()
    own = type("Own", (handler,), {"device": device})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), own)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls[0])
        server.socket = context.wrap_socket(server.socket, server_side=True)
        device.certificate = tls[1]
    device.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield device
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def certificate(directory: pathlib.Path) -> tuple[pathlib.Path, str]:
    """Return a file with a new key and its own certificate, and the certificate's hash."""
    path = directory / "bmc.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        [*words, "-keyout", str(path), "-out", str(directory / "cert.pem"), "-subj", "/CN=bmc", "-days", "9"],
        check=True,
        capture_output=True,
    )
    text = (directory / "cert.pem").read_text()
    path.write_text(path.read_text() + text)
    return path, hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).hexdigest()


IPMI_LAN = """
name "simulator"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{control}"
  user 1 true "" "none" user 10 none md2 md5 straight
  user 2 true "admin" "right" admin 10 none md2 md5 straight
"""
IPMI_MACHINE = """
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_enable 0x20
"""
IPMI_CONTROL = """#!/bin/sh
# Called as: PROGRAM get|set NAME [VALUE] …
verb=$1
shift
while [ $# -gt 0 ]; do
    if [ "$verb" = get ]; then
        [ "$1" = power ] && echo "power:$(cat {state})" || echo "$1:0"
        shift
    else
        [ "$1" = power ] && echo "$2" > {state}
        [ "$1" = shutdown ] && echo 0 > {state}
        [ $# -ge 2 ] && shift
        shift
    fi
done
"""


@contextlib.contextmanager
def ipmi_simulator(directory: pathlib.Path, port: int, program: str = IPMI_CONTROL) -> Iterator[pathlib.Path]:
    """Run OpenIPMI's ipmi_sim with a program that switches its machine.

    Yields the file in which IPMI_CONTROL has 1 if its machine is on, otherwise 0.
    """
    state, control = directory / "state", directory / "control"
    state.write_text("0\n")
    control.write_text(program.replace("{state}", str(state)))
    control.chmod(0o755)
    (directory / "lan.conf").write_text(IPMI_LAN.format(port=port, control=control))
    (directory / "machine.emu").write_text(IPMI_MACHINE)
    words = ["ipmi_sim", "-n", "-c", "lan.conf", "-f", "machine.emu", "-s", str(directory)]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(words, cwd=directory, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            yield state
        finally:
            process.kill()
            process.wait()
