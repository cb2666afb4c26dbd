# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""python -m ztcp: see `python -m ztcp --help`."""
import sys

from _ztcp.command import main

sys.exit(main())
