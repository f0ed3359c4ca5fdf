"""`python -m slurmstead` is scripts/stead without its launcher."""

import sys

from slurmstead.cli import main

sys.exit(main())
