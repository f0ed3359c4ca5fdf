# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Names that a user or group can have."""

from __future__ import annotations

import re

USER_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
"""Names that useradd accepts without --badname (useradd(8), CAVEATS)."""

SYSTEM_NAMES = frozenset(
    "root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats nobody nogroup sshd "
    "messagebus systemd-network systemd-resolve systemd-timesync _apt _chrony _rpc statd munge slurm "
    "epmd rabbitmq redis".split()
)
"""Users of Debian's base system (base-passwd) and of the packages that Slurmstead installs."""

SYSTEM_GROUPS = SYSTEM_NAMES | frozenset(
    "adm tty disk dialout fax voice cdrom floppy tape sudo audio dip operator src shadow utmp video sasl plugdev staff "
    "users crontab input kvm render netdev ssl-cert ssh _ssh".split()
)
"""Groups of the same."""
