"""Starts a program of MPI with one rank on each CPU of the job: python3 main.py [PROGRAM ARGUMENT...]

srun places the ranks and tells them of each other (PMI 2, which every Slurm has), so that Slurm counts, limits and
ends them. The exit code is the program's; a rank that fails ends the others.
"""

import os
import sys

nodes = int(os.environ["SLURM_JOB_NUM_NODES"])
cpus = int(os.environ.get("SLURM_CPUS_PER_TASK", 1))
program = sys.argv[1:] or ["ring.py"]
srun = ["srun", "--mpi=pmi2", "--kill-on-bad-exit=1", f"--ntasks={nodes * cpus}", f"--ntasks-per-node={cpus}"]
os.execvp("srun", [*srun, "--cpus-per-task=1", sys.executable, "rank.py", *program])
