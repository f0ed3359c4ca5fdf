"""The command line: verbs by theme, their options, and the exit code of each error.

It only parses and prints; the other packages do the work. Only `__main__` imports it.
"""
