"""Arrays as people write them, and as Slurm takes them."""

import pytest

from slurmstead.client.remote import arrays
from slurmstead.client.remote.arrays import Chunk
from slurmstead.client.remote.errors import WrongRequest


@pytest.mark.parametrize(
    ("text", "tasks", "limit"),
    [
        ("0-3", (0, 1, 2, 3), None),
        ("7", (7,), None),
        ("1-9:4,2%5", (1, 2, 5, 9), 5),
        ("5,1,5", (1, 5), None),
    ],
)
def test_an_array_is_read(text: str, tasks: tuple[int, ...], limit: int | None) -> None:
    assert arrays.parse(text) == (tasks, limit)


@pytest.mark.parametrize("text", ["", "a", "3-1", "0-9%", "0-9%0", "0-9%²", "1-", "0-9:0", "-5", "0-2000000", "0-5,"])
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(WrongRequest, match="array"):
        arrays.parse(text)


@pytest.mark.parametrize(
    ("tasks", "size", "chunks"),
    [
        pytest.param(range(500), 1001, [Chunk(0, "0-499")], id="one is enough"),
        pytest.param(range(25), 10, [Chunk(0, "0-9"), Chunk(10, "0-9"), Chunk(20, "0-4")], id="three are needed"),
        pytest.param([5000, 5002], 1001, [Chunk(5000, "0,2")], id="numbers that Slurm does not take"),
        pytest.param([3, 999, 1000, 1001], 1001, [Chunk(0, "3,999-1000"), Chunk(1001, "0")], id="numbers are kept"),
    ],
)
def test_a_long_array_becomes_several(tasks: list[int], size: int, chunks: list[Chunk]) -> None:
    found = arrays.chunks(tuple(tasks), size)

    assert found == chunks
    again = [chunk.offset + index for chunk in found for index in arrays.parse(chunk.indices)[0]]
    assert again == list(tasks)
