#!/bin/sh
#SBATCH --job-name=array
#SBATCH --array=0-5
#SBATCH --cpus-per-task=1
#SBATCH --mem=50M
#SBATCH --time=00:10:00
#SBATCH --output=primes-%a.out

# Each task takes its own line of parameters.txt, and counts the primes from the first number to below the second.
set -eu
line=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" parameters.txt)
[ -n "$line" ] || { echo "parameters.txt has no line for task $SLURM_ARRAY_TASK_ID" >&2; exit 2; }
# shellcheck disable=SC2086 # two words
set -- $line

awk -v from="$1" -v to="$2" -v node="$(hostname)" 'BEGIN {
    for (number = (from > 2 ? from : 2); number < to; number++) {
        prime = 1
        for (divisor = 2; prime && divisor * divisor <= number; divisor++) prime = number % divisor
        if (prime) count++
    }
    printf "%d primes from %d to %d (%s)\n", count, from, to, node
}'
