#!/bin/sh
#SBATCH --job-name=julia
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --mem-per-cpu=400M
#SBATCH --time=00:10:00
#SBATCH --output=distributed-%j.out

: "${SLURM_NTASKS:?is what says how many workers there are: start this with sbatch}"
exec julia --project=Primes distributed.jl "$@"
