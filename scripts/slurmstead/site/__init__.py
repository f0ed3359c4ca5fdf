"""Sites: the directory, outside this repository, in which an operator describes one cluster.

`find` finds the site of a command, `contents` renders the files of a new site, `create` creates it. `cli/` uses it.
"""
