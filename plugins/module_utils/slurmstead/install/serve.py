# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Serve one installation to one address, and write what the new machine reports. Needs nothing but Python.

Run as a program with the file that plan.served makes and the file for reports.
"""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import shutil
import sys
from typing import Any

LONGEST = 65536


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers for one installation."""

    served: dict[str, Any]
    reports: pathlib.Path
    timeout = 300

    def _name(self) -> str:
        """Return the wanted name; empty, with an answer, for another machine or installation."""
        start = f"/{self.served['token']}/"
        if self.client_address[0] != self.served["node"] or not self.path.startswith(start):
            self.send_error(403)
            return ""
        return self.path.removeprefix(start)

    def do_GET(self) -> None:
        """Send a text or a file of the image."""
        name = self._name()
        if name == "boot" and self._is_installed():
            name = "done"
        if name in self.served["texts"]:
            data = self.served["texts"][name].encode()
            self._head(len(data))
            self.wfile.write(data)
        elif name in self.served["files"]:
            with open(self.served["files"][name], "rb") as file:
                self._head(os.fstat(file.fileno()).st_size)
                shutil.copyfileobj(file, self.wfile, 2**20)
        elif name:
            self.send_error(404)

    def do_POST(self) -> None:
        """Write a report, as one line."""
        if self._name() != "report":
            return
        length = int(self.headers.get("Content-Length") or 0)
        try:
            report = json.loads(self.rfile.read(min(length, LONGEST)))
        except ValueError:
            self.send_error(400)
            return
        with self.reports.open("a") as file:
            file.write(json.dumps(report) + "\n")
        self._head(0)

    def _is_installed(self) -> bool:
        lines = self.reports.read_text().splitlines()
        return any(json.loads(line).get("stage") == "installed" for line in lines)

    def _head(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *words: Any) -> None:
        """Write a line for the journal, without the token."""
        text = (format % words).replace(self.served["token"], "…")
        sys.stderr.write(f"{self.client_address[0]} {text}\n")


def main() -> None:
    """Run the program: `serve.py SERVED REPORTS`."""
    Handler.served = json.loads(pathlib.Path(sys.argv[1]).read_text())
    Handler.reports = pathlib.Path(sys.argv[2])
    Handler.reports.write_text("")
    address = (Handler.served["address"], int(Handler.served["port"]))
    http.server.ThreadingHTTPServer(address, Handler).serve_forever()


if __name__ == "__main__":
    main()
