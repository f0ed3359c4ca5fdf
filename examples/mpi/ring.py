"""Each rank says who it is; then a message goes around all of them, and each adds its number to it."""

import sys
import time

from mpi4py import MPI

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
BYTES = 2**16

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
for said in world.gather(f"rank {rank} of {size} on {MPI.Get_processor_name()}") or []:
    print(said)

message, total = bytearray(BYTES), 0
before, after = (rank - 1) % size, (rank + 1) % size
started = time.perf_counter()
for _ in range(ROUNDS):
    if rank == 0:
        sending = world.isend((message, total), dest=after)
        message, total = world.recv(source=before)
        sending.wait()
    else:
        message, total = world.recv(source=before)
        world.send((message, total + rank), dest=after)

if rank == 0:
    expected = ROUNDS * sum(range(size))
    hop = (time.perf_counter() - started) / (ROUNDS * size)
    print(f"{ROUNDS} rounds of {BYTES} bytes: {total}, expected {expected}; {1000 * hop:.2f} ms from rank to rank")
    sys.exit(total != expected)
