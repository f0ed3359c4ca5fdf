# Count primes with all tasks of the allocation: julia --project=Primes distributed.jl [LAST]
using Distributed

include("SlurmWorkers.jl")
# Compiled once, before all workers want it.
using Primes
addprocs(SlurmWorkers.Tasks())
@everywhere using Primes

last = isempty(ARGS) ? 10_000_000 : parse(Int, ARGS[1])
nodes = [remotecall_fetch(gethostname, worker) for worker in workers()]
println(nworkers(), " workers on ", join(sort(unique(nodes)), ", "))

# The first call compiles.
@distributed (+) for number in 1:nworkers()
    isprime(number)
end
seconds = @elapsed found = @distributed (+) for number in 1:last
    isprime(number)
end
println(found, " primes up to ", last, " in ", round(seconds, digits = 1), " s")
rmprocs(workers())
