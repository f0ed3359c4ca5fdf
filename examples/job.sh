#!/bin/sh
#SBATCH --job-name=hello
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:05:00
#SBATCH --output=hello-%j.out

# Each node says who it is; $SCRATCH is a directory on its own disk that lasts as long as the job.
srun sh -c 'echo "$(hostname): $(nproc) CPU, scratch in $SCRATCH"'
