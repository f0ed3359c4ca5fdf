"""The tests of this repository: the checks of the tree, the scenarios on labs, and the table of what last passed.

The verb `stead test` runs them. CI runs what fits in 45 minutes; `--all` runs everything.
"""
