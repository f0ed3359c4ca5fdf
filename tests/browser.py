"""A student in Chromium: logs in, starts a notebook, runs a cell that asks Slurm and plots, and logs out.

python3 browser.py URL NAME PASSWORD DIRECTORY

It speaks to chromedriver as WebDriver (w3.org/TR/webdriver2) says, with nothing but Python. Steps leave pictures in
DIRECTORY.
"""

from __future__ import annotations

import base64
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

PORT = 9515
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
SHIFT, ENTER = "\ue008", "\ue007"
SECONDS = 900
OPTIONS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,860"),
    # That the certificate is valid for its authority is tested without a browser.
    "--ignore-certificate-errors",
]
CELL = """import subprocess, matplotlib.pyplot as plt
plt.figure(figsize=(4, 2)); plt.plot([1, 4, 9, 16]); plt.show()
print(subprocess.check_output(["squeue"], text=True))"""


class Browser:
    """A session of chromedriver."""

    def __init__(self, pictures: pathlib.Path) -> None:
        self.pictures = pictures
        self.base = f"http://127.0.0.1:{PORT}"
        wanted = {"goog:chromeOptions": {"args": OPTIONS}, "acceptInsecureCerts": True}
        made = self.ask("/session", capabilities={"alwaysMatch": wanted})
        self.base += f"/session/{made['sessionId']}"

    def ask(self, path: str, method: str = "POST", **body: Any) -> Any:
        """Send a command; return its value."""
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)["value"]

    def open(self, url: str) -> None:
        """Open a page."""
        self.ask("/url", url=url)

    def find(self, selector: str) -> str:
        """Wait for an element; return its number."""

        def look() -> str:
            return str(self.ask("/element", using="css selector", value=selector)[ELEMENT])

        return str(self.wait(look, selector))

    def click(self, selector: str) -> None:
        """Click on an element as soon as it can be clicked."""
        self.wait(lambda: self.ask(f"/element/{self.find(selector)}/click") is None, selector)

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        self.ask(f"/element/{self.find(selector)}/value", text=text)

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.ask(f"/element/{self.find(selector)}/text", "GET"))

    def url(self) -> str:
        """Return the address of the page."""
        return str(self.ask("/url", "GET"))

    def picture(self, name: str) -> None:
        """Keep a picture of the page."""
        (self.pictures / f"{name}.png").write_bytes(base64.b64decode(self.ask("/screenshot", "GET")))
        print(name, flush=True)

    def wait(self, what: Callable[[], Any], name: str) -> Any:
        """Wait until a function returns what is true, and does not fail."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(urllib.error.HTTPError):
                if found := what():
                    return found
            time.sleep(0.5)
        self.picture("failed")
        raise TimeoutError(f"not within {SECONDS} s: {name}; the page is {self.url()}")


@contextlib.contextmanager
def browser(pictures: pathlib.Path) -> Iterator[Browser]:
    """Run chromedriver and a browser."""
    with tempfile.TemporaryDirectory() as home:
        driver = subprocess.Popen(
            ["chromedriver", f"--port={PORT}"],
            stdout=subprocess.DEVNULL,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "LC_ALL": "C.UTF-8"},
        )
        try:
            for _ in range(SECONDS):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{PORT}/status", timeout=60)
                    break
                time.sleep(1)
            one = Browser(pictures)
            yield one
            one.ask("", "DELETE")
        finally:
            driver.terminate()
            driver.wait()


def main() -> None:
    """Be a student."""
    url, name, password, place = sys.argv[1:]
    with browser(pathlib.Path(place)) as page:
        page.open(url)
        page.type("#username_input", name)
        page.type("#password_input", "wrong")
        page.click("#login_submit")
        assert "Invalid username or password" in page.text(".login_error"), "a wrong password is explained"
        page.type("#password_input", password)
        page.picture("login")
        page.click("#login_submit")
        page.click("input[value=small]")
        page.picture("profiles")
        page.click("form input[type=submit], form button[type=submit]")
        page.wait(lambda: f"/user/{name}/lab" in page.url(), "the notebook")
        page.click('.jp-LauncherCard[data-category="Notebook"]')
        page.click(".jp-Notebook .cm-content")
        page.wait(lambda: "| Idle" in page.text("#jp-bottom-panel"), "the kernel")
        page.type(".jp-Notebook .cm-content", CELL)
        page.type(".jp-Notebook .cm-content", SHIFT + ENTER)
        page.find(".jp-OutputArea img")
        page.wait(lambda: "notebook" in page.text(".jp-OutputArea-output pre"), "squeue in the cell")
        toasts = page.ask("/elements", using="css selector", value=".Toastify__toast")
        assert not toasts, f"JupyterLab says: {page.text('.Toastify__toast')}"
        debuggers = page.ask("/elements", using="css selector", value=".jp-DebuggerBugButton")
        assert not debuggers, "JupyterLab offers a debugger that the kernel does not have"
        page.picture("notebook")
        page.open(f"{url}/hub/logout")
        page.open(f"{url}/hub/home")
        page.find("#login_submit")
        page.picture("logged_out")


if __name__ == "__main__":
    main()
