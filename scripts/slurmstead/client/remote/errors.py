"""Refusals: ends that the person at the other end of the connection is told of."""


class Refusal(Exception):
    """An end with a kind that the client turns into an exit code; `hint` says what to do."""

    kind = "task"

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


class WrongRequest(Refusal):
    """What was asked for cannot be done as written; nothing was submitted."""

    kind = "usage"


class NoAnswer(Refusal):
    """slurmctld did not answer, or not in time; what was asked for may or may not have happened."""

    kind = "unreachable"
