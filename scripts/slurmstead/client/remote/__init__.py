"""The part that runs on the cluster; it needs only python3 (3.10 or newer) and Slurm's commands."""
