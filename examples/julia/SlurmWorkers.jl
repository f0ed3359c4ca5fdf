"""
Workers of Distributed on all tasks of the allocation, with nothing but srun and Julia itself.

    include("SlurmWorkers.jl")
    addprocs(SlurmWorkers.Tasks())

Nodes need no ssh to each other. The cookie, with which a worker knows its master, goes through standard input and is in no list of
processes. Slurm ends the workers with the job.
"""
module SlurmWorkers

using Distributed

"One worker for each task that the job asked for."
struct Tasks <: ClusterManager end

# A worker listens at the address that its node has in the cluster, also where it has others.
const WORKER = raw"""
exec julia --worker --bind-to="$(getent hosts "$SLURMD_NODENAME" | { read -r address _; echo "$address"; })" --project="$0"
"""

function Distributed.launch(::Tasks, params::Dict, launched::Array, condition::Condition)
    tasks = parse(Int, ENV["SLURM_NTASKS"])
    project = something(Base.active_project(), "")
    srun = open(`srun --kill-on-bad-exit=1 sh -c $WORKER $project`, "r+")
    Distributed.write_cookie(srun)
    flush(srun)
    started = 0
    while started < tasks && !eof(srun)
        line = readline(srun)
        place = match(r"julia_worker:(\d+)#(.+)", line)
        if place === nothing
            println(line)
            continue
        end
        worker = WorkerConfig()
        worker.port, worker.host = parse(Int, place[1]), place[2]
        # addprocs takes it from there at once.
        push!(launched, worker)
        notify(condition)
        started += 1
    end
    started == tasks || error("srun started $started of $tasks workers; see what it said above")
    # What the workers print from now on.
    @async foreach(println, eachline(srun))
end

Distributed.manage(::Tasks, ::Integer, ::WorkerConfig, ::Symbol) = nothing

end
