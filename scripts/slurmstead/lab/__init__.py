"""Virtual machines on this computer: their lifecycle, the packages they need, the demo, the faults they survived.

The verbs in `cli/` and the tests use it.
"""
