"""A lab whose users come from a directory: one run gives 10,000 of them an account.

They stay, so this file is the last of a scenario after which the lab is replaced.

STEAD_LAB=NAME pytest tests/lab/operations
"""

from __future__ import annotations

import os
from typing import Any

NUMBER = 10_000
SECONDS = 60
"""What a run may take on a computer with no other work."""

USERS = f"""
with open("/etc/passwd", "a") as users, open("/etc/group", "a") as groups:
    for number in range(20_000, 20_000 + {NUMBER}):
        print(f"u{{number}}:x:{{number}}:{{number}}::/nonexistent:/bin/bash", file=users)
        print(f"u{{number}}:x:{{number}}:", file=groups)
print("null")
"""


def test_ten_thousand_users_of_a_directory(lab: Any) -> None:
    lab.everywhere(lambda name: lab.python(name, USERS))

    runs = [lab.ansible(*lab.of_containers.get("options", ())) for _ in range(2)]

    assert [run.code for run in runs] == [0, 0], [run.output[-5000:] for run in runs]
    shown = lab.root(lab.control, "sacctmgr -nP show assoc where account=home format=User")
    assert shown.count("\nu2") == NUMBER
    assert runs[0].changed != {} and runs[1].changed == {}
    lab.without_login(lab.control, "u25000", "sbatch --test-only --wrap=true")
    # Tests beside it take their part of the computer.
    limit = SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert max(run.seconds for run in runs) < limit
