# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The verdict on a job from the evidence of its end. Pure: judge_test.py tests it with synthetic evidence."""
from __future__ import annotations

import dataclasses
import enum
import re

from plan import Expect

WRONG_DATA_STATUS = 4  # ztcp_perf(1), EXIT STATUS.
# ztcp_perf timed out: the plugin neither completed nor failed a request.
STALLED = re.compile(r"nothing moved for \d|has said nothing for \d")
WRONG_SIZE = re.compile(r"the plugin says -?\d+ bytes came, \d+ were sent")
# Warnings that explain the end of a connection. Others, such as the count of damaged frames, do
# not.
CAUSE = re.compile(r"\bfailed\b|\bno connection\b|\bno carrier\b|\bno route\b|\bno queue pair\b|\bis gone\b|\bout of memory\b")
# The failure of one rail of a merged device does not end a connection.
RAIL = re.compile(r"\bthe rail over .* has failed to\b")
ABORTED = re.compile(r"AddressSanitizer|runtime error:|terminate called|Assertion .* failed|stack smashing")


class Verdict(enum.Enum):
    """The result of a job."""
    OK = "ok"
    FAILED_AS_EXPECTED = "failed-as-expected"
    UNMET = "unmet"    # The fault took no effect on a job that moved data: the job proves nothing.
    HANG = "HANG"      # A rank exceeded the bound.
    WRONG = "WRONG"    # Wrong bytes or a wrong size.
    CRASH = "CRASH"    # A process died of a signal that the harness did not send.
    SILENT = "SILENT"  # The job failed and no warning of the plugin names the cause.
    FAILED = "FAILED"  # The job failed though it had to finish, or finished though it had to fail.
    BROKEN = "BROKEN"  # The harness could not set up the job.


GOOD = (Verdict.OK, Verdict.FAILED_AS_EXPECTED, Verdict.UNMET)


@dataclasses.dataclass
class RankEnd:
    """The end of a rank. Lines count from the start of the fault; in a job without an injected fault, all lines count."""
    rank: int
    status: int | None  # As in subprocess: negative for a signal. None: still running at the bound.
    is_victim: bool = False  # The harness ended it by a signal.
    plugin_lines: list[str] = dataclasses.field(default_factory=list)  # Warnings in ZTCP_LOG.
    # Output of ztcp_perf without its table.
    own_lines: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Evidence:
    """The input of judge()."""
    expect: Expect
    ranks: list[RankEnd]
    met: bool = True
    # A rank died while no rank had a request in flight, so that the plugin had nothing to report.
    no_request_in_flight: bool = False
    wrong_elements: int = 0
    # Switches that died, and misuse of the verbs that a software NIC reported.
    unexpected_ends: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0  # From the end of the fault to the end of the last rank.


@dataclasses.dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    reason: str


def cause_lines(end: RankEnd) -> list[str]:
    return [line for line in end.plugin_lines if CAUSE.search(line) and not RAIL.search(line)]


def crashed(evidence: Evidence) -> list[str]:
    """Crashes of ranks and other processes. A victim may die of the signal of the harness."""
    out = list(evidence.unexpected_ends)
    for end in evidence.ranks:
        aborts = [line for line in end.own_lines if ABORTED.search(line)]
        if end.status is not None and end.status < 0 and not (end.is_victim and end.status in (-9, -15)):
            out.append(f"rank {end.rank} died of signal {-end.status}")
        elif aborts:
            out.append(f"rank {end.rank}: {aborts[0]}")
    return out


def wrong(evidence: Evidence) -> list[str]:
    out = [f"{evidence.wrong_elements} wrong elements"] if evidence.wrong_elements else []
    for end in evidence.ranks:
        if end.status == WRONG_DATA_STATUS and not out:
            out.append(f"rank {end.rank} says that elements are wrong")
        out += [f"rank {end.rank}: {line}" for line in end.own_lines if WRONG_SIZE.search(line)]
    return out


def hung(evidence: Evidence) -> list[str]:
    out = [f"rank {end.rank} had not ended after {evidence.seconds:.0f} s" for end in evidence.ranks if end.status is None]
    for end in evidence.ranks:
        out += [f"rank {end.rank}: {line}" for line in end.own_lines if STALLED.search(line)]
    return out


def silent(evidence: Evidence) -> list[str]:
    """Failures without a cause. One line of the plugin is enough: ztcp_perf tells ranks that are not connected to the dead rank."""
    survivors = [end for end in evidence.ranks if not end.is_victim and end.status != 0]
    out = [f"rank {end.rank} ended with {end.status} without any line" for end in survivors
           if not end.own_lines and not cause_lines(end)]
    if survivors and not any(cause_lines(end) for end in evidence.ranks):
        out.append(f"rank {survivors[0].rank} ended with {survivors[0].status}, and no line of the plugin says why")
    return out


def judge(evidence: Evidence) -> Judgement:
    """Reports the most severe verdict that applies. A crash is reported before the hang that it causes."""
    for verdict, find in ((Verdict.CRASH, crashed), (Verdict.WRONG, wrong), (Verdict.HANG, hung)):
        found = find(evidence)
        if found:
            return Judgement(verdict, "; ".join(found))
    if evidence.no_request_in_flight:
        return Judgement(Verdict.UNMET, "no request was under way when the rank died")
    found = silent(evidence)
    if found:
        return Judgement(Verdict.SILENT, "; ".join(found))
    failed = [end for end in evidence.ranks if end.status != 0 and not end.is_victim]
    causes = [line for end in evidence.ranks for line in cause_lines(end)]
    if failed and (not evidence.met or evidence.expect is Expect.FINISH):
        return Judgement(Verdict.FAILED, f"rank {failed[0].rank} ended with {failed[0].status}: {causes[0]}")
    if not evidence.met:
        return Judgement(Verdict.UNMET, "the fault met no moving job")
    if failed:
        return Judgement(Verdict.FAILED_AS_EXPECTED, causes[0])
    if evidence.expect is Expect.FAIL:
        return Judgement(Verdict.FAILED, "all survivors ended well although a peer or the network was lost for good")
    return Judgement(Verdict.OK, f"every rank ended well, {evidence.seconds:.1f} s after the fault")
