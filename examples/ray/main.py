"""Pi from darts, thrown on all CPUs of the job: python3 main.py [DARTS]"""

import random
import sys
import time

import allocation
import ray


@ray.remote
def throw(seed: int, darts: int) -> tuple[int, str]:
    """Return how many of the darts hit, and the node on which they were thrown."""
    chosen = random.Random(seed)
    hits = sum(chosen.random() ** 2 + chosen.random() ** 2 < 1 for _ in range(darts))
    return hits, ray.util.get_node_ip_address()


def main() -> None:
    darts = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    parts = 50
    with allocation.cluster() as nodes:
        started = time.perf_counter()
        thrown = ray.get([throw.remote(seed, darts // parts) for seed in range(parts)])
        where = len({address for _, address in thrown})
        print(f"{where} of {nodes} nodes, {time.perf_counter() - started:.1f} s", file=sys.stderr)
    print(f"{darts} darts: pi is about {4 * sum(hits for hits, _ in thrown) / darts:.6f}")


if __name__ == "__main__":
    main()
