"""`python -m kernelopt.cli`, for an installation whose scripts are not on the path."""

import sys

from kernelopt.cli import main

sys.exit(main())
