"""``python -m shardmath.grading DIR`` grades a folder of submissions."""

import sys

from .folder import main

sys.exit(main())
