"""The estimate of all tasks together: python3 average.py DIRECTORY"""

import pathlib
import sys

counts = [path.read_text().split() for path in pathlib.Path(sys.argv[1]).glob("tasks/*/work/counts.txt")]
inside, darts = (sum(int(pair[which]) for pair in counts) for which in (0, 1))
print(f"{len(counts)} tasks, {darts} darts: pi is about {4 * inside / darts:.4f}")
