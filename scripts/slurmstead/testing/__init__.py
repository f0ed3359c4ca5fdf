"""The tests of this repository: the checks of the tree, the scenarios on labs, and the table of last passes.

The verb `stead test` runs them. CI runs a part that takes at most 45 minutes; `--all` runs everything.
"""
