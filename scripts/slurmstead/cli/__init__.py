"""The command line: verbs by theme, their options, and the exit code of each error.

It parses and prints; the rooms below do the work. Only `__main__` uses it.
"""
