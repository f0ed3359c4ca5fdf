"""Our blocks in PAM's files, on the files of Debian 12."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.login import pam

DEBIAN = {
    "sshd": """\
# PAM configuration for the Secure Shell service
@include common-auth
account    required     pam_nologin.so
# account  required     pam_access.so
@include common-account
session [success=ok ignore=ignore module_unknown=ignore default=bad]        pam_selinux.so close
session    required     pam_loginuid.so
@include common-session
session    optional     pam_motd.so  motd=/run/motd.dynamic
@include common-password
""",
    "su": """\
auth       sufficient pam_rootok.so
# auth       required   pam_wheel.so
session       required   pam_env.so readenv=1
@include common-auth
@include common-account
@include common-session
""",
    "su-l": "#%PAM-1.0\nauth\t\tinclude\t\tsu\naccount\t\tinclude\t\tsu\nsession\t\tinclude\t\tsu\n",
    "cron": """\
@include common-auth
session       required   pam_loginuid.so
@include common-account
@include common-session-noninteractive
session    required   pam_limits.so
""",
    "atd": "@include common-auth\n@include common-account\nsession    required   pam_loginuid.so\n",
    "systemd-user": "@include common-account\nsession  required pam_selinux.so close\n",
}

every_service = pytest.mark.parametrize("service", DEBIAN)


@every_service
def test_a_file_is_as_before_once_it_is_opened_again(service: str) -> None:
    assert pam.plain(pam.closed(service, DEBIAN[service])) == DEBIAN[service]


@every_service
def test_closing_a_closed_file_changes_nothing(service: str) -> None:
    once = pam.closed(service, DEBIAN[service])

    assert pam.closed(service, once) == once


@pytest.mark.parametrize("service", pam.ACCOUNT)
def test_users_are_refused_last_and_administrators_pass_before(service: str) -> None:
    text = pam.closed(service, DEBIAN[service])
    lines = [line for line in text.splitlines() if line.startswith(("account", "@include common-account"))]

    assert lines[-3:] == [*pam._ADMINISTRATORS, pam.ACCOUNT[service][-1]]
    assert "sufficient" in lines[-2] and "required" in lines[-1]
    assert lines.index("@include common-account") < lines.index(lines[-3])


@pytest.mark.parametrize("service", pam.BACKGROUND)
def test_what_cron_and_at_run_belongs_to_the_slice_of_its_user(service: str) -> None:
    once = pam.limited(service, DEBIAN[service])

    assert once.startswith(DEBIAN[service]) and "pam_systemd.so class=background" in once
    assert pam.limited(service, once) == once
    assert pam.plain(once) == DEBIAN[service]


@pytest.mark.parametrize("service", sorted({*DEBIAN} - {*pam.BACKGROUND}))
def test_limits_change_no_other_file(service: str) -> None:
    assert pam.limited(service, DEBIAN[service]) == DEBIAN[service]


def test_a_session_of_sshd_skips_pam_systemd_but_for_administrators() -> None:
    text = pam.closed("sshd", DEBIAN["sshd"])
    session = [line for line in text.splitlines() if "common-session" in line]

    assert session == ["# was: @include common-session", "session substack common-session"]


def test_su_asks_after_root_has_passed() -> None:
    lines = pam.closed("su", DEBIAN["su"]).splitlines()

    assert (
        lines.index("auth       sufficient pam_rootok.so")
        < lines.index(pam.SU[0])
        < lines.index("@include common-auth")
    )


@pytest.mark.parametrize(
    ("service", "text"), [("sshd", "account required pam_nologin.so\n"), ("cron", "auth required pam_deny.so\n")]
)
def test_a_file_of_unknown_structure_is_left_alone(service: str, text: str) -> None:
    with pytest.raises(pam.PamError, match=f"/etc/pam.d/{service} has "):
        pam.closed(service, text)
