"""Runs a Python program that is killed at the boundary of two of its statements, as by a power cut.

python3 killed.py POINT FILES CODE [ARGUMENT …]: POINT is the number of the boundary, 0 for none; FILES are the names of
the program's files in which statements count, separated by commas. The last word on standard error is their number.
"""

import os
import signal
import sys
from types import FrameType
from typing import Any


def main(point: int, files: tuple[str, ...], code: str) -> None:
    """Run the program; it ends as it does by itself, unless it is killed."""
    passed = 0

    def watch(frame: FrameType, event: str, _: object) -> Any:
        nonlocal passed
        if not frame.f_code.co_filename.endswith(files):
            return None
        if event == "line":
            passed += 1
            if passed == point:
                os.kill(os.getpid(), signal.SIGKILL)
        return watch

    program = compile(code, "<program>", "exec")
    sys.settrace(watch)
    try:
        exec(program, {"__name__": "__main__"})
    finally:
        sys.settrace(None)
        print(passed, file=sys.stderr)


if __name__ == "__main__":
    given, sys.argv = sys.argv, sys.argv[:1] + sys.argv[4:]
    main(int(given[1]), tuple(given[2].split(",")), given[3])
