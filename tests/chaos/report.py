# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The report of a run: one line per job, a table at the end, and JSON."""
from __future__ import annotations

import collections
import dataclasses
import enum
import json
import pathlib

from job import Outcome
from judge import GOOD, Verdict
from plan import FAULTS, TRANSPORTS


def job_line(outcome: Outcome, done: int, jobs: int) -> str:
    plan = outcome.plan
    line = (f"[{done}/{jobs}] seed {plan.seed}: {plan.transport}, {plan.fault} ({plan.describe()}): "
            f"{outcome.judgement.verdict.value}, {outcome.seconds:.0f} s: {outcome.judgement.reason[:240]}")
    return line + (f"\n    kept in {outcome.artefacts}" if outcome.artefacts else "")


def table(outcomes: list[Outcome]) -> str:
    """Verdicts by transport and fault, with a row of totals."""
    counts: dict[tuple[str, str], collections.Counter[Verdict]] = collections.defaultdict(collections.Counter)
    for outcome in outcomes:
        counts[outcome.plan.transport, outcome.plan.fault][outcome.judgement.verdict] += 1
    shown = [verdict for verdict in Verdict if verdict in GOOD or any(verdict in counter for counter in counts.values())]
    header = ["transport", "fault", "jobs", *(verdict.value for verdict in shown)]
    rows = [[transport, fault, str(counter.total()), *(str(counter[verdict] or "") for verdict in shown)]
            for transport in TRANSPORTS for fault in FAULTS if (counter := counts.get((transport, fault)))]
    total = sum(counts.values(), collections.Counter())
    rows.append(["all", "", str(total.total()), *(str(total[verdict]) for verdict in shown)])
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def text(row: list[str]) -> str:
        return "  ".join(cell.ljust(width) if column < 2 else cell.rjust(width)
                         for column, (cell, width) in enumerate(zip(row, widths))).rstrip()
    return "\n".join(text(row) for row in [header, *rows])


def bad(outcomes: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.judgement.verdict not in GOOD]


def plain(value: object) -> object:
    """Converts the types that json does not serialise."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, pathlib.Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} in a report")


def as_json(outcomes: list[Outcome]) -> str:
    verdicts = collections.Counter(outcome.judgement.verdict.value for outcome in outcomes)
    document = {"tool": "chaos", "verdicts": dict(verdicts), "jobs": [dataclasses.asdict(outcome) for outcome in outcomes]}
    return json.dumps(document, indent=2, default=plain) + "\n"
