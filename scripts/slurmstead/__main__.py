"""`python -m slurmstead` is scripts/stead without the launcher script."""

import sys

from slurmstead.cli.main import main

sys.exit(main())
