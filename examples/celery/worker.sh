#!/bin/sh
#SBATCH --job-name=celery
#SBATCH --array=0-99%3
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=150M
#SBATCH --time=01:00:00
#SBATCH --nice=10000
#SBATCH --qos=low
#SBATCH --output=worker-%A_%a.out

# One worker for each task of the array, three at once; after an hour the next one begins, behind the jobs of others.
# The QOS `low` gives way to other jobs, if the cluster has it (shares_low). Otherwise it has no effect, but is refused from students of a
# course, who remove the line.
# When Slurm ends it, it stops at once, and RabbitMQ gives its tasks to others.
export REMAP_SIGTERM=SIGQUIT
# `stead submit` has made an environment and named it in PATH; with sbatch it is the one that stands here.
PATH="$PWD/env/bin:$PATH"
exec nice -n 19 celery --app tasks worker --concurrency "$SLURM_CPUS_PER_TASK" --hostname "$SLURM_JOB_ID@%h" \
    --without-gossip --without-mingle --loglevel INFO
