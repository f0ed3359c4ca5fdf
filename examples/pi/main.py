"""A part of a Monte Carlo estimate of pi: each task throws other darts.

python3 main.py [DARTS]
"""

import os
import random
import sys

darts = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
task = int(os.environ.get("STEAD_TASK", 0))

random.seed(task)
inside = sum(random.random() ** 2 + random.random() ** 2 < 1 for _ in range(darts))
print(f"task {task}: {4 * inside / darts:.4f} on {os.environ.get('SLURMD_NODENAME', 'this computer')}")

# The current directory is the task's own: no task overwrites what another wrote.
with open("counts.txt", "w") as file:
    print(inside, darts, file=file)
