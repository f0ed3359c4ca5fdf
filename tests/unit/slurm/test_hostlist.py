"""Host lists: what Slurm accepts is read, what it would not is refused in words, and both directions agree."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.slurm.hostlist import compress, expand

EXPANDED = {
    "node1": ["node1"],
    "a,b": ["a", "b"],
    "node[1-3]": ["node1", "node2", "node3"],
    "node[1,3-4]": ["node1", "node3", "node4"],
    "n[08-11]": ["n08", "n09", "n10", "n11"],
    "r[0-1]n[1-2]": ["r0n1", "r0n2", "r1n1", "r1n2"],
    "a, b[2-3]": ["a", "b2", "b3"],
}


@pytest.mark.parametrize(("expression", "names"), EXPANDED.items(), ids=EXPANDED)
def test_a_host_list_is_expanded_in_the_order_written(expression: str, names: list[str]) -> None:
    assert expand(expression) == names


REFUSED = {
    "node[1-2": "the brackets of 'node[1-2' do not match",
    "node1-2]": "the brackets of 'node1-2]' do not match",
    "a,,b": "'a,,b' has an empty name",
    "": "'' has an empty name",
    "a b": "'a b' is not a host name or range such as node[1-4]",
    "node[]": "'' in 'node[]' is not a number or a range such as 1-4",
    "node[1-x]": "'1-x' in 'node[1-x]' is not a number or a range such as 1-4",
    "node[3-1]": "the range '3-1' in 'node[3-1]' runs backwards",
    "node[1-999999]": "the range '1-999999' in 'node[1-999999]' is longer than 65536 hosts",
    "a[1-999]b[1-999]": "'a[1-999]b[1-999]' stands for 998001 hosts; more than 65536 are not possible",
}


@pytest.mark.parametrize(("expression", "message"), REFUSED.items(), ids=REFUSED)
def test_a_broken_host_list_is_refused_with_the_reason(expression: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        expand(expression)

    assert str(caught.value) == message


COMPRESSED = {
    "": [],
    "node1": ["node1", "node1"],
    "node[1-3]": ["node3", "node1", "node2"],
    "node[1,3]": ["node1", "node3"],
    "n[08-11]": ["n08", "n09", "n10", "n11"],
    "n[9-10]": ["n9", "n10"],
    "n[0-1],n[01-02]": ["n0", "n1", "n01", "n02"],
    "login,r0n[1-2],r1n1": ["r0n1", "r0n2", "r1n1", "login"],
}


@pytest.mark.parametrize(("expression", "names"), COMPRESSED.items(), ids=COMPRESSED)
def test_names_are_compressed(expression: str, names: list[str]) -> None:
    assert compress(names) == expression


@pytest.mark.parametrize("names", COMPRESSED.values(), ids=COMPRESSED)
def test_what_is_compressed_expands_to_the_same_names(names: list[str]) -> None:
    assert not names or sorted(expand(compress(names))) == sorted(set(names))
