#!/bin/sh
# SuspendProgram, ResumeProgram and ResumeFailProgram of Slurm, run as its user without PATH. What is wanted, slurmctld
# knows; slurmstead-power.path starts the program that asks it.
: >/run/slurmstead-power/wanted
