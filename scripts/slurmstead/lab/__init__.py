"""Virtual machines on this computer: their lifecycle, the packages they need, the demo, the table of faults.

`cli/` and the tests use it.
"""
