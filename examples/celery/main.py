"""Count the primes from 2 to LAST - 1 in tasks for all workers that there are: python main.py [LAST [TASKS]]"""

import collections
import sys
import time

from celery import group
from tasks import count_primes

last = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
tasks = int(sys.argv[2]) if len(sys.argv) > 2 else 100

started = time.monotonic()
bounds = [2 + (last - 2) * number // tasks for number in range(tasks + 1)]
results = group(count_primes.s(low, high) for low, high in zip(bounds, bounds[1:], strict=False)).apply_async()
print(f"{tasks} tasks are in the queue", flush=True)

answers = results.get()
results.forget()
done_by = collections.Counter(who for _, who in answers)
for who, number in sorted(done_by.items()):
    print(f"  {number} by {who}")
print(f"{sum(count for count, _ in answers)} primes below {last} in {time.monotonic() - started:.1f} s")
