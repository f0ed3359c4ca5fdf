"""The picture of the demo shows the lines of a run, each when it was printed."""

import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from slurmstead.lab import recording
from slurmstead.lab.recording import Line

LINES = [
    Line(0.0, "$ scripts/stead demo"),
    Line(1.0, "1/5 Packages & more"),
    *(Line(5.0 + n, f"<{n}>") for n in range(40)),
]


def test_the_picture_holds_every_line_in_order():
    root = xml.etree.ElementTree.fromstring(recording.picture("demo", LINES))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text") if text.get("class") != "clock"]

    assert texts == [line.text for line in LINES]


@pytest.mark.parametrize("name", ["cover", "scroll"])
def test_what_moves_moves_forward_until_the_end(name):
    rule = re.search(rf"@keyframes {name} {{ (.*) }}", recording.picture("demo", LINES))[1]
    percents = [float(percent) for percent in re.findall(r"([0-9.]+)%", rule)]

    assert percents[0] == 0 and percents[-1] == 100
    assert percents == sorted(percents)


def test_a_full_screen_moves_up_by_the_lines_that_do_not_fit():
    picture = recording.picture("demo", LINES)

    assert f"100.00% {{ transform: translateY({-(len(LINES) - recording.ROWS) * recording.LINE}px) }}" in picture


def test_a_run_is_recorded_with_its_times():
    lines = recording.record([sys.executable, "-uc", "import time; print('a'); time.sleep(0.2); print('b' * 200)"])

    assert [line.text for line in lines] == ["a", "b" * recording.COLUMNS]
    assert lines[1].seconds - lines[0].seconds > 0.15


def test_a_failed_run_makes_no_picture():
    with pytest.raises(subprocess.CalledProcessError):
        recording.record(["false"])
