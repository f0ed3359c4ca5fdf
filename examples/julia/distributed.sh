#!/bin/sh
#SBATCH --job-name=julia
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --mem-per-cpu=400M
#SBATCH --time=00:10:00
#SBATCH --output=distributed-%j.out

exec julia --project=Primes distributed.jl "$@"
