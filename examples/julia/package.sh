#!/bin/sh
#SBATCH --job-name=julia
#SBATCH --ntasks=1
#SBATCH --mem=500M
#SBATCH --time=00:05:00
#SBATCH --output=package-%j.out

# The first run compiles the package into ~/.julia, which all nodes see.
julia --project=Primes -e 'using Primes; println(count_primes(1:1_000_000), " primes up to 1000000")'
