#!/bin/sh
#SBATCH --job-name=julia
#SBATCH --ntasks=1
#SBATCH --mem=500M
#SBATCH --time=00:05:00
#SBATCH --output=hello-%j.out

julia -e 'println("Julia ", VERSION, " on ", gethostname())'
