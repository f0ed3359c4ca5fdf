"""Adds this job's nodes to the Dask cluster of another, until that ends or this job is cancelled:

stead submit examples/dask --entry join.py --nodes 1 -- RUN
python3 join.py DIRECTORY    (where the other runs; in a job script)
"""

import os
import pathlib
import sys

import worker

other = pathlib.Path(sys.argv[1])
if "STEAD_DIRECTORY" in os.environ:
    other = pathlib.Path(os.environ["STEAD_DIRECTORY"]).parent / other / "work"
found = sorted(other.glob("dask-*/scheduler.json"), key=os.path.getmtime)
if not found:
    sys.exit(f"no Dask cluster runs in {other}")
step = ["srun", "--ntasks-per-node=1", f"--cpus-per-task={worker.cpus()}", "--kill-on-bad-exit=1"]
os.execvp("srun", [*step, sys.executable, "worker.py", str(found[-1].parent)])
