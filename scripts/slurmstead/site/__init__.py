"""Sites: the directory, outside this repository, in which an operator describes one cluster.

`find` says which site a command is for, `contents` what a new one holds, `create` makes it. `cli/` comes in.
"""
