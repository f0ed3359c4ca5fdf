"""Numbers in readable form."""


def duration(seconds: float) -> str:
    """Return a duration in readable form: 4.2 s, 3:07 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"


def count(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: 1 host, 4 hosts; `nouns` if that is not the noun with an s."""
    return f"{number} {noun if number == 1 else nouns or f'{noun}s'}"
