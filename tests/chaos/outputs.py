# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Parses the output of a rank of ztcp_perf and the log of the plugin (ZTCP_LOG). Pure."""
from __future__ import annotations

import re

# "  4096   21307.29   0.000 ..."; see ztcp_perf(1), OUTPUT. The line of names begins with "#".
ROW = re.compile(r"(?m)^ +\d+ .*\n")
NAMES = re.compile(r"(?m)^#( +size .*)\n")
WRONG = "#wrong"
WARNING = "] WARN "


def rows(output: str) -> list[str]:
    """Complete rows of results, one for each size that is done."""
    return ROW.findall(output)


def wrong_elements(output: str) -> int:
    """The sum of the column #wrong, which is N/A without --check."""
    names = NAMES.search(output)
    if not names:
        if rows(output):
            raise ValueError("rows of results without a line of names")
        return 0
    column = names[1].split().index(WRONG)
    counts = [row.split()[column] for row in rows(output)]
    return sum(int(count) for count in counts if count.isdigit())


def other_lines(output: str) -> list[str]:
    """Lines that belong to no table: errors of ztcp_perf, of sanitizers and of the software NICs."""
    return [line for line in output.splitlines() if line and line[0] not in "# "]


def warnings(log: str) -> list[str]:
    return [line for line in log.splitlines() if WARNING in line]
