"""The lowest point of Rastrigin's function, looked for by one island of individuals: python3 main.py [GENERATIONS]

Each task of the array is an island with another seed; its individuals are judged by one process for each of its CPUs.
The result depends on the seed alone, not on how many CPUs there are.
"""

import concurrent.futures
import functools
import json
import math
import os
import pathlib
import random
import sys
import time

from deap import algorithms, base, creator, tools

DIMENSIONS, INDIVIDUALS = 10, 60

creator.create("Fitness", base.Fitness, weights=(-1.0,))
creator.create("Individual", list, fitness=creator.Fitness)


def height(point: list[float]) -> tuple[float]:
    """Return Rastrigin's function; sums over it stand for a judgement that takes longer than sending a point."""
    for _ in range(20):
        found = 10 * len(point) + sum(x * x - 10 * math.cos(2 * math.pi * x) for x in point)
    return (found,)


def cpus() -> int:
    """Return how many CPUs are this task's: what it asked for, and what its control group lets it use."""
    return min(int(os.environ.get("SLURM_CPUS_PER_TASK", 1)), len(os.sched_getaffinity(0)))


def main() -> None:
    generations = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    island = int(os.environ.get("SLURM_ARRAY_TASK_ID", 0))
    random.seed(island)
    toolbox = base.Toolbox()
    point = functools.partial(tools.initRepeat, creator.Individual, lambda: random.uniform(-5.12, 5.12), DIMENSIONS)
    toolbox.register("evaluate", height)
    toolbox.register("mate", tools.cxBlend, alpha=0.3)
    toolbox.register("mutate", tools.mutGaussian, mu=0, sigma=0.3, indpb=0.2)
    toolbox.register("select", tools.selTournament, tournsize=3)
    best = tools.HallOfFame(1)
    started = time.perf_counter()
    with concurrent.futures.ProcessPoolExecutor(cpus()) as pool:
        toolbox.register("map", functools.partial(pool.map, chunksize=max(1, INDIVIDUALS // cpus() // 4)))
        population = tools.initRepeat(list, point, INDIVIDUALS)
        algorithms.eaSimple(population, toolbox, 0.6, 0.3, generations, halloffame=best, verbose=False)
    print(f"{cpus()} processes, {time.perf_counter() - started:.1f} s", file=sys.stderr)
    lowest = best[0].fitness.values[0]
    print(f"island {island}: {lowest:.6f} after {generations} generations")
    pathlib.Path(f"best-{island}.json").write_text(json.dumps({"height": lowest, "point": list(best[0])}) + "\n")


if __name__ == "__main__":
    main()
