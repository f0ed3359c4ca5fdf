"""What runs on the cluster, with its python3 (3.10 or newer) and Slurm's commands, and nothing else."""
