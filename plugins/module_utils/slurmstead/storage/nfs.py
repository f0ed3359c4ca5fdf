# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The size of an NFS server."""

from __future__ import annotations

LEAST, MOST = 16, 256
"""nfs-utils' own default since 2.7, and about 256 MiB: a thread that has served a large request keeps 1 MiB."""


def threads(clients: int) -> int:
    """Return the number of nfsd's threads: at least two for each client, and a power of two.

    A client whose write waits for the disk holds a thread, and a question as small as statvfs waits until one is free.
    A power of two, because another number restarts the server: a new node must not do that each time.

    >>> [threads(clients) for clients in (1, 8, 9, 64, 65, 2000)]
    [16, 16, 32, 128, 256, 256]
    """
    return min(MOST, max(LEAST, 1 << (2 * clients - 1).bit_length()))
