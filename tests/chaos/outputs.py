# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Parses the output of a rank of ztcp_perf and the log of the plugin (ZTCP_LOG). Pure."""
from __future__ import annotations

import re

# "  4096   256   uint32   none   21307.29   0.000   0.000   0   1   0.012"; see ztcp_perf(1), OUTPUT.
ROW = re.compile(r"(?m)^ +\d+ .*\n")
WRONG_COLUMN = 7
WARNING = "] WARN "


def rows(output: str) -> list[str]:
    """Complete rows of results, one for each size that is done."""
    return ROW.findall(output)


def wrong_elements(output: str) -> int:
    """The sum of the column #wrong, which is N/A without --check."""
    counts = [row.split()[WRONG_COLUMN] for row in rows(output)]
    return sum(int(count) for count in counts if count.isdigit())


def other_lines(output: str) -> list[str]:
    """Lines that belong to no table: errors of ztcp_perf, of sanitizers and of the software NICs."""
    return [line for line in output.splitlines() if line and line[0] not in "# "]


def warnings(log: str) -> list[str]:
    return [line for line in log.splitlines() if WARNING in line]
