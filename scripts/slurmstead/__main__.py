"""`python -m slurmstead` is scripts/stead without its launcher."""

import sys

from slurmstead.cli.main import main

sys.exit(main())
