"""Records a real run of `scripts/stead demo` as an animated picture, docs/figures/demo.svg.

PYTHONPATH=scripts .venv/bin/python -m slurmstead.lab.recording
"""

import html
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

from slurmstead.paths import ROOT
from slurmstead.wording import duration

COMMAND = ("scripts/stead", "demo")
LAB = "recording"
PICTURE = ROOT / "docs" / "figures" / "demo.svg"

ROWS = 26
COLUMNS = 94
LINE = 18
"""Height of a line in pixels; a character of a monospaced font of 13 pixels is 7.8 wide."""
WIDTH = 832
LONGEST_WAIT = 1.2
"""Longest pause between two lines in the picture, in seconds; the clock beside a line shows the real time."""
LAST = 8.0
"""Seconds before the animation restarts after the last line."""

COLOURS = {r"^\$ |^\d/\d |^The cluster works": "#ffd866", r"^ +ok ": "#a9dc76", r"^ +\S+@\S+\$": "#78dce8"}


class Line(NamedTuple):
    """A line of output, and the seconds from the start of the command until it was printed."""

    seconds: float
    text: str


def record(command: Iterable[str]) -> list[Line]:
    """Run a command and return the lines of its output.

    :raises subprocess.CalledProcessError: the command failed
    """
    arguments = list(command)
    started = time.monotonic()
    with subprocess.Popen(
        arguments,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [Line(time.monotonic() - started, line.rstrip()[:COLUMNS]) for line in process.stdout]
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return lines


def shortened(lines: Iterable[Line]) -> list[float]:
    """Return when each line appears in the picture, in seconds.

    >>> shortened([Line(0.5, "a"), Line(90.5, "b"), Line(91.0, "c")])
    [0.5, 1.7, 2.2]
    """
    shown: list[float] = []
    before = now = 0.0
    for line in lines:
        now += min(line.seconds - before, LONGEST_WAIT)
        before = line.seconds
        shown.append(round(now, 3))
    return shown


def picture(title: str, lines: list[Line]) -> str:
    """Return an SVG document that replays lines in a terminal, in a loop; without animation it shows the last lines."""
    times = shortened(lines)
    total = times[-1] + LAST
    # A cover over the lines that are not printed yet moves down; when the screen is full, all lines move up.
    covers = [(when, min(row + 1, ROWS) * LINE) for row, when in enumerate(times)]
    scrolls = [(when, -max(row + 1 - ROWS, 0) * LINE) for row, when in enumerate(times)]
    rows = "\n".join(_row(number, line) for number, line in enumerate(lines))
    height = (ROWS + 2) * LINE
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" xml:space="preserve">
<title>{html.escape(title)}</title>
<style>
text {{ font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; fill: #e6e6e6 }}
.clock {{ fill: #7f8c98; text-anchor: end }}
.cover {{ animation: cover {total:.2f}s step-end infinite }}
.lines {{ animation: scroll {total:.2f}s step-end infinite }}
@keyframes cover {{ {_frames(covers, total)} }}
@keyframes scroll {{ {_frames(scrolls, total)} }}
@media (prefers-reduced-motion) {{ .cover, .lines {{ animation: none }} }}
</style>
<clipPath id="screen"><rect width="{WIDTH}" height="{ROWS * LINE}"/></clipPath>
<rect width="{WIDTH}" height="{height}" rx="8" fill="#22262b"/>
<g transform="translate(0 {LINE})" clip-path="url(#screen)">
<g class="lines" transform="translate(0 {scrolls[-1][1]})">
{rows}
</g>
<rect class="cover" transform="translate(0 {covers[-1][1]})" width="{WIDTH}" height="{ROWS * LINE}" fill="#22262b"/>
</g>
</svg>
"""


def _row(number: int, line: Line) -> str:
    colours = [colour for pattern, colour in COLOURS.items() if re.search(pattern, line.text)]
    style = f' style="fill: {colours[0]}"' if colours else ""
    y = (number + 1) * LINE - 5
    clock = f'<text class="clock" x="{WIDTH - 12}" y="{y}">{duration(line.seconds)}</text>' if line.text else ""
    return f'<text x="12" y="{y}"{style}>{html.escape(line.text)}</text>{clock}'


def _frames(values: list[tuple[float, int]], total: float) -> str:
    frames = [(0.0, 0), *values, (total, values[-1][1])]
    changes = [frame for before, frame in zip([None, *frames], frames, strict=False) if not before or frame != before]
    return " ".join(f"{100 * when / total:.2f}% {{ transform: translateY({y}px) }}" for when, y in changes)


def main() -> int:
    """Record the demo on a separate lab, and remove the lab."""
    try:
        lines = record([*COMMAND, "--name", LAB])
    finally:
        subprocess.run([ROOT / COMMAND[0], "lab", "down", "--name", LAB], cwd=ROOT, check=False)
    PICTURE.write_text(picture(" ".join(COMMAND), [Line(0.0, f"$ {' '.join(COMMAND)}"), *lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
