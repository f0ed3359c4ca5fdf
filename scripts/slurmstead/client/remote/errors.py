"""Refusals: errors that the client reports to its user."""


class Refusal(Exception):
    """An error whose kind the client turns into an exit code; `hint` says what to do."""

    kind = "task"

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


class WrongRequest(Refusal):
    """The request cannot be carried out as written; nothing was submitted."""

    kind = "usage"


class Incomplete(Refusal):
    """Not every file of the input arrived; the copy can be continued."""

    kind = "incomplete"


class NoAnswer(Refusal):
    """slurmctld did not answer in time; the request may or may not have taken effect."""

    kind = "unreachable"
