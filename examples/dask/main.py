"""The longest Collatz chain below a number, on all CPUs of the job: python3 main.py [LIMIT]"""

import sys
import time

import allocation


def longest(start: int, stop: int) -> tuple[int, int]:
    """Return the steps of the longest chain of the numbers from `start` to below `stop`, and where it begins."""
    best = (0, 0)
    for first in range(start, stop):
        number, steps = first, 0
        while number > 1:
            number = 3 * number + 1 if number % 2 else number // 2
            steps += 1
        best = max(best, (steps, first))
    return best


def main() -> None:
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    starts = range(1, limit, 5_000)
    with allocation.cluster() as client:
        started = time.perf_counter()
        chunks = client.map(longest, starts, [min(start + 5_000, limit) for start in starts])
        steps, first = max(client.gather(chunks))
        took = time.perf_counter() - started
        print(f"{len(client.scheduler_info()['workers'])} processes, {took:.1f} s", file=sys.stderr)
    print(f"below {limit}, the chain of {first} is the longest: {steps} steps")


if __name__ == "__main__":
    main()
