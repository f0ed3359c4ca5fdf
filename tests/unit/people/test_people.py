"""People in a file and in spreadsheets: every mistake has its line, and what stays keeps its lines."""

from __future__ import annotations

import base64
import pathlib

import pytest

from ansible.module_utils.slurmstead.identity.accounts import wanted
from ansible.module_utils.slurmstead.people import file, table
from ansible.module_utils.slurmstead.people.accounts import accounts
from ansible.module_utils.slurmstead.people.change import changed, difference, merged
from ansible.module_utils.slurmstead.people.person import People, PeopleError, Person, is_public_key, key_itself


def key(number: int) -> str:
    """A complete public key."""
    parts = (b"ssh-ed25519", number.to_bytes(32, "big"))
    return "ssh-ed25519 " + base64.b64encode(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).decode()


TEXT = f"""---
# Ours.
groups:
  course: 10001  # of 2026
people:
  # The first.
  - name: ann
    uid: 10002
    group: course
    keys: [{key(1)}]

  - {{name: bob, uid: 10003}}  # in one line
  # The last.
"""


def mistakes(content: str | bytes) -> list[str]:
    with pytest.raises(PeopleError) as raised:
        if isinstance(content, bytes):
            table.parse(content, "s.csv")
        else:
            file.parse(content, "people.yml")
    return [str(mistake) for mistake in raised.value.mistakes]


def test_a_file_has_people_and_groups() -> None:
    people = file.parse(TEXT)

    ann = Person("ann", 10002, group="course", keys=(key(1),))
    assert people == People((ann, Person("bob", 10003)), {"course": 10001})
    assert people.lines == {"ann": 7, "bob": 12}


def test_all_mistakes_of_a_file_are_reported_with_their_lines() -> None:
    entries = ("{name: root, uid: 10001}", "{name: Bob, uid: 5}", "{name: eve, uid: 10002, expires: 2027-02-30}")
    more = ("{name: dan, uid: 10003, grup: x}", "{name: no, uid: 10004}", "{name: no, uid: 10005}", "{name: al}")
    found = mistakes("people:\n" + "".join(f"- {entry}\n" for entry in (*entries, *more)))

    assert [line.partition(". ")[0] for line in found] == [
        "people.yml:2: name: root belongs to the system",
        'people.yml:3: name: "Bob" is not a valid name',
        'people.yml:3: uid: "5" is not a number of a user',
        'people.yml:4: expires: "2027-02-30" is not a date',
        "people.yml:5: grup is not known",
        "people.yml:7: no is already in people.yml:6",
        "people.yml:8: al has no uid",
    ]
    assert "Did you mean group?" in found[4]


@pytest.mark.parametrize("text", ["[", "- a\n", "people: {a: b}\n", "people: [a]\n", "groups: [a]\n", "x: 1\n", "\x00"])
def test_a_file_of_another_form_is_refused(text: str) -> None:
    assert mistakes(text)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(("mark", "end"), [(b"", "\n"), (b"\xef\xbb\xbf", "\r\n")])
def test_a_spreadsheet_of_any_program_is_read(separator: str, mark: bytes, end: str) -> None:
    rows = (("Login", "Full name", "E-Mail", "Key"), ("ann", '"Lee, Ann; Dr."', "ann@example.org", key(1)), ("",) * 4)
    content = mark + "".join(separator.join(row) + end for row in rows).encode()

    ann = Person("ann", full_name="Lee, Ann; Dr.", email="ann@example.org", keys=(key(1),), state="")
    assert table.parse(content, "s.csv") == People((ann,))


def test_what_excel_adds_to_a_table_is_left_out() -> None:
    content = b"sep=;\r\nname;email;;\r\nann;a@example.org;;\r\n"

    assert table.parse(content, "s.csv") == People((Person("ann", email="a@example.org", state=""),))
    assert mistakes(content + b"bob;;;x\r\n")[0].startswith("s.csv:4: has 4 cells, but there are 2 columns")


def test_all_mistakes_of_a_spreadsheet_are_reported_with_their_lines() -> None:
    rows = (
        "name,key,expires",
        f"ann,{key(1)},",
        f"bob,{key(1)},",
        "eve,ssh-ed25519 AAAAC3Nza,28.2.2027",
        "dan,",
        "ann,,",
    )
    found = mistakes("\n".join(rows).encode())

    assert [line.partition(". ")[0] for line in found] == [
        "s.csv:3: keys: bob has the key of ann (s.csv:2)",
        's.csv:4: expires: "28.2.2027" is not a date',
        "s.csv:4: keys: key 1 is not a complete public key",
        "s.csv:5: has 2 cells, but there are 3 columns",
        "s.csv:6: ann is already in s.csv:2",
    ]


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"", "has no people"),
        (b"name\n", "has no people"),
        (b"email\na@b\n", "has no column `name`"),
        (b"name,nmae2\n", "is not known"),
        (b"name,login\na,b\n", "has two columns for name"),
        (b'name,email\n"ann,b\n', "is not CSV"),
        (b"name\nann\n\xe4\n", "s.csv:3: is not UTF-8"),
    ],
)
def test_a_table_of_another_form_is_refused(content: bytes, wrong: str) -> None:
    assert wrong in mistakes(content)[0]


@pytest.mark.parametrize(
    "before",
    [
        "",
        "restrict,pty ",
        'from="10.0.0.0/8,192.168.1.1",command="echo \\"a key\\": ssh-ed25519 AAAA" ',
        'no-X11-forwarding,expiry-time="20270228",CERT-AUTHORITY  ',
    ],
)
def test_options_of_sshd_can_be_before_a_key(before: str) -> None:
    assert is_public_key(f"{before}{key(1)} ann@laptop")
    assert key_itself(f"{before}{key(1)}") == key_itself(key(1))


@pytest.mark.parametrize(
    "before",
    [
        "# ",
        "Ann: ",
        "gateway,10.0.0.1 ",
        f"{key(2)}, ",
        "restrict, ",
        "no-ptyy ",
        "restrict pty ",
        "command=ls ",
        'command="ls ',
        'command="ls\\" ',
        "from ",
    ],
)
def test_a_line_that_sshd_ignores_is_not_a_key(before: str) -> None:
    assert not is_public_key(f"{before}{key(1)}")


def test_a_private_key_is_reported_and_never_shown() -> None:
    secret = "b3BlbnNzaC1rZXktdjEAAAAA"
    words = "-----BEGIN OPENSSH " + "PRIVATE KEY-----"
    found = mistakes(f'name,key\nann,"{words}\n{secret}\n"\n'.encode())
    found += mistakes(f'people:\n- {{name: ann, uid: 10001, keys: ["{words} {secret}"]}}\n')

    assert ["s.csv:2: is a private key" in found[0], "is a private key" in found[1]] == [True, True]
    assert secret not in "".join(found)


def test_an_import_changes_only_what_differs() -> None:
    old = file.parse(TEXT)
    new = merged(
        old, People((Person("bob", full_name="Bob", state=""), Person("eve", group="other", state=""))), "s.csv"
    )
    text = file.edit(TEXT, new)

    assert difference(old, new) == [
        "+ group other 10004",
        "~ bob 10003  full_name: none → Bob",
        "+ eve 10005  group other  no key",
    ]
    assert file.parse(text) == new
    assert text.startswith(TEXT.partition("  - {name: bob")[0].replace("  course: 10001  # of 2026\n", "", 1)[:20])
    assert [part in text for part in ("# Ours.", "# of 2026", "# The first.", "# The last.")] == [True] * 4
    assert merged(new, People((Person("eve", group="other", state=""),)), "s.csv") == new


def test_numbers_never_change_and_are_never_given_again() -> None:
    old = changed(file.parse(TEXT), ["bob"], "people.yml", state="removed")

    assert merged(old, People((Person("eve", state=""),)), "s.csv").people[-1].uid == 10004
    assert merged(old, People((Person("bob", state=""),)), "s.csv") == old
    for row in (Person("ann", 10009), Person("eve", 10003), Person("eve", 10001)):
        with pytest.raises(PeopleError):
            merged(old, People((row,)), "s.csv")


def test_a_clash_with_the_people_of_the_site_names_the_line_of_the_list_and_of_the_site() -> None:
    old = file.parse(f"people:\n  - {{name: ann, uid: 10001, keys: [{key(1)}]}}\n")
    listed = table.parse(f"name,uid,key\nbob,,{key(1)}\n".encode(), "s.csv")
    numbers = table.parse(b"name,uid\ndan,\n\nann,10002\neve,10001\n", "s.csv")

    with pytest.raises(PeopleError) as keys:
        merged(old, listed, "s.csv", "files/people.yml")
    with pytest.raises(PeopleError) as wrong:
        merged(old, numbers, "s.csv")

    assert [f"{one.place}: {one.wrong}" for one in (*keys.value.mistakes, *wrong.value.mistakes)] == [
        "s.csv:2: keys: bob has the key of ann (files/people.yml:2)",
        "s.csv:4: ann has the number 10001, which never changes, but 10002 here",
        "s.csv:5: eve has the number 10001, which is given already",
    ]


def test_215_people_get_a_file_that_is_read_as_written() -> None:
    rows = (Person(f"s{number}", group="course", keys=(key(number),), state="") for number in range(215))
    new = merged(People(), People(tuple(rows)), "s.csv")

    assert file.parse(file.edit("", new)) == new
    assert [one.uid for one in new.people] == list(range(10002, 10217))


def test_who_is_removed_or_expired_has_no_account() -> None:
    people = People(
        (
            Person("ann", 10001, expires="2027-02-28"),
            Person("bob", 10002, expires="2027-02-27"),
            Person("eve", 10003, state="removed"),
        ),
        {"course": 10004},
    )

    found = accounts(people, "2027-02-27")
    assert [(user["name"], user["expires"]) for user in found["users"]] == [("ann", "2027-02-28")]
    assert found["groups"] == [{"name": "course", "gid": 10004}]
    assert found["expired"] == ["bob"]
    assert wanted([], found["users"])[1][0].in_people


def test_a_file_that_is_not_there_has_no_people(tmp_path: pathlib.Path) -> None:
    assert file.read(tmp_path / "people.yml") == People()


@pytest.mark.parametrize("text", ["", f"---\n{file.HEADER}", "groups: {course: 10001}\n", "people:\n"])
def test_an_emptied_file_does_not_say_that_all_people_leave(text: str) -> None:
    assert mistakes(text) == [
        "people.yml: lists no people. Restore it, for example with git; write `people: []` if nobody is to have an "
        "account."
    ]


def test_a_link_to_a_missing_file_is_not_an_empty_list(tmp_path: pathlib.Path) -> None:
    (tmp_path / "people.yml").symlink_to("/nowhere/people.yml")

    with pytest.raises(PeopleError, match=r"is a link to /nowhere/people\.yml, which does not exist"):
        file.read(tmp_path / "people.yml")


@pytest.mark.parametrize("name", ["staff", "users", "video", "input"])
def test_a_person_cannot_have_the_name_of_a_group_of_the_system(name: str) -> None:
    """Each person gets a group of that name, but the system has one with another number."""
    wrong = f"name: {name} is a group of the system, and each person gets a group of that name. Choose another name."

    assert mistakes(f"name\nann\n{name}\n".encode()) == [f"s.csv:3: {wrong}"]
    assert mistakes(f"people:\n- {{name: {name}, uid: 10001}}\n") == [f"people.yml:2: {wrong}"]
