"""Adds workers to the text of hosts.yml; comments, order and everything else stay as they are."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclasses.dataclass(frozen=True)
class Addition:
    """A new worker: its variables, each with its value as YAML, and comments below them."""

    name: str
    variables: Mapping[str, str]
    comments: Sequence[str] = ()


@dataclasses.dataclass
class _Place:
    """Where hosts can be added: after a line, in a column."""

    line: int
    column: int
    path: tuple[str, ...]


def edited(text: str, additions: Sequence[Addition]) -> str:
    """Return the text with more workers.

    :raises ValueError: the text is not written so that lines can be added; the message says why
    """
    try:
        root = yaml.compose(text, LOADER)
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML ({error})") from None
    lines = text.splitlines(keepends=True)
    workers = _hosts(root, _path_of_workers(root), lines)
    if workers is None:
        raise ValueError("it has no group `workers` with `hosts`")
    # Variables are where the file already has them: below all, or in the group itself.
    hosts = _hosts(root, ("all",), lines) or workers
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    blocks = {hosts.line: [line for one in additions for line in _block(one, hosts.column)]}
    if hosts is not workers:
        blocks[workers.line] = [f"{' ' * workers.column}{one.name}:" for one in additions]
    new: list[str] = []
    for number, line in enumerate(lines):
        new.append(line if line.endswith("\n") else line + end)
        new += [block + end for block in blocks.get(number, ())]
    changed = "".join(new)
    _check(root, changed, additions, hosts.path, workers.path)
    return changed


def _block(one: Addition, column: int) -> Iterator[str]:
    yield f"{' ' * column}{one.name}:"
    for name, value in one.variables.items():
        yield f"{' ' * (column + 2)}{name}: {value}"
    for comment in one.comments:
        yield f"{' ' * (column + 2)}# {comment}"


def _child(node: Any, name: str) -> tuple[Any, Any] | None:
    """Return the key and the value of a name in a mapping."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((key, value) for key, value in pairs if key.value == name), None)


def _path_of_workers(root: Any) -> tuple[str, ...]:
    """Return the names that lead to the group: it is at the top, or a child of a group."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), root)]
    while waiting:
        path, node = waiting.pop(0)
        if _child(node, "workers"):
            return (*path, "workers")
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            children = _child(value, "children")
            if children:
                waiting.append(((*path, key.value, "children"), children[1]))
    return ("workers",)


def _hosts(root: Any, path: tuple[str, ...], lines: Sequence[str]) -> _Place | None:
    """Return where hosts can be added to a group; None if it has no `hosts`.

    :raises ValueError: they are written in one line, or in another file
    """
    node, key = root, None
    for name in (*path, "hosts"):
        found = _child(node, name)
        if found is None:
            return None
        key, node = found
    if key is None:
        return None
    where = ".".join((*path, "hosts"))
    if isinstance(node, yaml.ScalarNode) and node.value in ("", "~", "null"):
        if node.value:
            raise ValueError(f"{where} is {node.value}; write only `hosts:`")
        return _Place(key.end_mark.line, key.start_mark.column + 2, (*path, "hosts"))
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        raise ValueError(f"{where} is not a list of names, one below the other")
    column = node.value[0][0].start_mark.column
    last = max(_last_lines(node, lines))
    # A comment that is further in than a host's name is about the host above it.
    while last + 1 < len(lines) and _is_comment_within(lines[last + 1], column):
        last += 1
    return _Place(last, column, (*path, "hosts"))


def _is_comment_within(line: str, column: int) -> bool:
    return line.strip().startswith("#") and len(line) - len(line.lstrip()) > column


def _last_lines(node: Any, lines: Sequence[str]) -> Iterator[int]:
    """Yield the last line of each value in a node."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style:
        line = int(node.end_mark.line)
        # The end of a block of text is the beginning of the next line.
        if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
            line -= 1
            while not lines[line].strip():
                line -= 1
        yield line
        return
    for part in node.value:
        for one in part if isinstance(part, tuple) else (part,):
            yield from _last_lines(one, lines)


def _plain(node: Any) -> Any:
    """Return a node as data that can be compared, with the tag of each value."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(value) for value in node.value]
    return (node.tag, node.value)


def _check(
    root: Any, changed: str, additions: Sequence[Addition], hosts: Sequence[str], workers: Sequence[str]
) -> None:
    """Refuse a text that says anything but what the old one and the additions say."""
    wanted = _plain(root)
    empty = ("tag:yaml.org,2002:null", "")
    for path in dict.fromkeys((tuple(hosts), tuple(workers))):
        group = wanted
        for name in path[:-1]:
            group = group[name]
        if not isinstance(group[path[-1]], dict):
            group[path[-1]] = {}
        for one in additions:
            given = {name: _plain(yaml.compose(value, LOADER)) for name, value in one.variables.items()}
            if one.name in group[path[-1]]:
                raise ValueError(f"{one.name} is already in it")
            group[path[-1]][one.name] = given if path == tuple(hosts) else empty
    try:
        good = _plain(yaml.compose(changed, LOADER)) == wanted
    except yaml.YAMLError:
        good = False
    if not good:
        raise ValueError("lines cannot be added to it without changing others")
