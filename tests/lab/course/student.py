"""A student of a course in Chromium: follows the link of an invitation, and runs a cell in a notebook.

python3 -m tests.lab.course.student LINK NAME PASSWORD DIRECTORY < CELL

Steps leave pictures in DIRECTORY; what the cell printed, apart from its plot, is the last line.
"""

import json
import pathlib
import sys
import urllib.parse

from tests.browser import ENTER, SHIFT, Browser, browser

PASTE = """
const clipboard = new DataTransfer();
clipboard.setData("text/plain", arguments[0]);
document.querySelector(".jp-Notebook .cm-content").dispatchEvent(
    new ClipboardEvent("paste", {clipboardData: clipboard, bubbles: true, cancelable: true}));
"""
"""Typed text would be indented again by the editor."""

WIDTH, TALL = 1280, 1240
"""Of a window with all of the cell and its plot."""


def choose_password(page: Browser, link: str, password: str) -> None:
    """Follow the link of an invitation."""
    page.open(link)
    for field in ("#password", "#again"):
        page.type(field, password)
    page.picture("course-invitation")
    page.click("#choose")


def run_cell(page: Browser, cell: str) -> str:
    """Run a cell in a new notebook until it has ended; return what it printed, such as an error."""
    page.click('.jp-LauncherCard[data-category="Notebook"]')
    page.click(".jp-Notebook .cm-content")
    page.wait(lambda: "| Idle" in page.text("#jp-bottom-panel"), "the kernel")
    page.ask("/window/rect", width=WIDTH, height=TALL)
    page.ask("/execute/sync", script=PASTE, args=[cell])
    page.type(".jp-Notebook .cm-content", SHIFT + ENTER)
    page.wait(lambda: page.text(".jp-InputPrompt") == "[1]:", "the end of the cell")
    page.picture("course-plot")
    return page.text(".jp-OutputArea")


def log_out(page: Browser, url: str) -> None:
    """Log out; the hub asks for a password again."""
    page.open(f"{url}/hub/logout")
    page.open(f"{url}/hub/home")
    page.find("#login_submit")


def main() -> None:
    """Be a student."""
    link, name, password, place = sys.argv[1:]
    url = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(link))
    with browser(pathlib.Path(place)) as page:
        choose_password(page, link, password)
        page.click("input[value=small]")
        page.click("form input[type=submit], form button[type=submit]")
        page.wait(lambda: f"/user/{name}/lab" in page.url(), "the notebook")
        said = run_cell(page, sys.stdin.read())
        page.find(".jp-OutputArea img")
        log_out(page, url)
        page.open(url)
        page.type("#username_input", name)
        page.type("#password_input", password)
        page.click("#login_submit")
        page.wait(lambda: f"/user/{name}/" in page.url(), "the notebook that is still running")
        log_out(page, url)
        print(json.dumps(said))


if __name__ == "__main__":
    main()
