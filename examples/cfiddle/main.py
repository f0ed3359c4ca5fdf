"""Measures how long a matrix takes to add up along its rows and along its columns, and draws it.

python3 main.py [REPEATS]
"""

import sys

import matplotlib
from cfiddle import arg_map, build, run

matplotlib.use("Agg")
repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5

programs = build("sums.cpp", arg_map(OPTIMIZE=["-O1", "-O3"]))
sizes = arg_map(size=[256, 512, 1024, 2048])
results = run(programs, ["along_rows", "along_columns"], repeats * sizes).as_df()

# In ns for each number. The fastest of the repeats is the one that was disturbed least.
results["ns"] = results["ET"] * 1e9 / results["size"] ** 2
fastest = results.groupby(["OPTIMIZE", "function", "size"])["ns"].min().unstack("size")
print(fastest.round(2).to_string())

# In the run's directory: `stead fetch` brings both.
results.to_csv("times.csv", index=False)
axes = fastest.T.plot(marker="o", xlabel="rows and columns", ylabel="ns per number")
axes.figure.savefig("times.png")
