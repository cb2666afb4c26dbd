# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Runs one job: starts the ranks, injects the fault once data moves, waits for the end and collects the evidence."""
from __future__ import annotations

import contextlib
import dataclasses
import math
import pathlib
import signal
import threading
import time

import faults
import outputs
from judge import Evidence, Judgement, RankEnd, Verdict, judge
from plan import BY_ENVIRONMENT, ENDS_A_RANK, NICS, Plan
from processes import Broken, Cancelled, Process, free_port, wait_until
from relay import Relay
from worlds import Tools, World, world_of

# A row of results for each message size is the progress of a job. Data moves once there are so
# many.
ROWS_BEFORE_FAULT = 3
# ztcp_perf fits the iterations of a row to the time budget, by its warm-up. It stops early when an
# outage makes the mean of a row look too slow for the rest of the budget, so rows need many
# iterations; but a row with too many, planned by a lucky warm-up, takes too long on a busy machine.
ROWS_PER_S = 10
MOST_ITERATIONS = 4000
START_S = 60
STILL_MOVING_S = 15
MET_S = 1  # The fault counts as met if the job went on for so long after its start and ended well.
MOST_BOUNDS = 3  # A job that is slow but still moves gets more time.


@dataclasses.dataclass
class Outcome:
    """The result of a job, for the report."""
    plan: Plan
    judgement: Judgement
    evidence: Evidence | None = None
    rows_before_fault: int = 0
    rows: int = 0
    seconds: float = 0.0
    artefacts: pathlib.Path | None = None


class Job:
    """`slot`: number of the parallel worker. Names of interfaces and networks contain it."""

    def __init__(self, plan: Plan, tools: Tools, folder: pathlib.Path, slot: int, timeout_multiplier: float,
                 cancelled: threading.Event) -> None:
        self.plan = plan
        self.tools = tools
        self.folder = folder
        self.timeout_multiplier = timeout_multiplier
        self.cancelled = cancelled
        self.world: World = world_of(plan, tools, folder, slot, cancelled)
        self._relay: Relay | None = None
        self.ranks: list[Process] = []
        self.no_request_in_flight = False
        self.log_sizes = [0] * plan.ranks  # Sizes of ZTCP_LOG when the fault began.

    def run(self) -> Outcome:
        began = time.monotonic()
        try:
            outcome = self._run()
        except Broken as broken:
            outcome = Outcome(self.plan, Judgement(Verdict.BROKEN, str(broken)))
        finally:
            self._close()
        outcome.seconds = time.monotonic() - began
        return outcome

    @property
    def relay(self) -> Relay:
        assert self._relay is not None, "ranks are not started"
        return self._relay

    def pause(self, seconds: float) -> None:
        """Waits, but not longer than ranks other than the victim run."""
        others = [rank for number, rank in enumerate(self.ranks) if number != self.plan.victim]
        wait_until(lambda: not any(rank.running() for rank in others), seconds, self.cancelled)

    def _run(self) -> Outcome:
        self.world.start()
        self._start_ranks()
        is_moving = self._wait_for_data()
        rows_before = self._row_count()
        was_injected = is_moving and self.plan.fault in faults.INJECT and self._inject()
        seconds = self._wait_for_end()
        ends = [self._end_of(rank) for rank in range(self.plan.ranks)]
        for process in self.ranks:
            if process.running():
                process.snapshot(self.folder)
        evidence = Evidence(expect=self.plan.expect, ranks=ends, wrong_elements=outputs.wrong_elements(self.ranks[0].output()),
                            unexpected_ends=self.world.unexpected_ends(), seconds=seconds,
                            no_request_in_flight=self.no_request_in_flight)
        evidence.met = self._was_met(was_injected, rows_before, ends)
        return Outcome(self.plan, judge(evidence), evidence, rows_before, self._row_count())

    def _start_ranks(self) -> None:
        plan = self.plan
        self._relay = Relay(plan.ranks, self.world.harness_addresses(), (self.world.first_address(), free_port()))
        rows = max(20, round(plan.budget_s * ROWS_PER_S))
        smallest = plan.size_kib << 10
        # Later than the harness's bound.
        stall_s = MOST_BOUNDS * plan.bound_s(self.timeout_multiplier) + plan.duration_s + 60
        for rank in range(plan.ranks):
            command = [str(self.tools.perf), "--plugin", str(self.tools.plugin), "--ranks", str(plan.ranks), "--rank", str(rank),
                       "--rendezvous", self.relay.rendezvous(rank), "--op", plan.op, "--tags", str(plan.tags),
                       "--min", str(smallest), "--max", str(smallest * 3 // 2), "--factor", f"{1.5 ** (1 / rows):.8f}",
                       "--iters", str(MOST_ITERATIONS), "--warmup", "1", "--check", "--check-iters", "1",
                       "--time-budget", f"{plan.budget_s:g}", "--stall-timeout", f"{stall_s:g}",
                       "--connect-timeout", f"{START_S * self.timeout_multiplier:g}", "--log", "none"]
            self.ranks.append(Process(f"rank{rank}", self.world.inside(rank, command), self.folder, self.world.environment(rank)))

    def _wait_for_data(self) -> bool:
        """True once data has moved for as long as the plan says and every rank still runs."""
        def is_over() -> bool:
            return not all(rank.running() for rank in self.ranks)
        wait_until(lambda: self._row_count() >= ROWS_BEFORE_FAULT or is_over(), (START_S + 10) * self.timeout_multiplier,
                   self.cancelled)
        wait_until(is_over, self.plan.before_s, self.cancelled)
        return self._row_count() >= ROWS_BEFORE_FAULT and not is_over()

    def _inject(self) -> bool:
        """Returns false when every rank ended well as soon as the fault began: the fault came too late."""
        self.log_sizes = [self._log_size(rank) for rank in range(self.plan.ranks)]
        began = time.monotonic()
        faults.INJECT[self.plan.fault](self)
        return any(rank.status() != 0 for rank in self.ranks) or time.monotonic() - began > MET_S

    def _wait_for_end(self) -> float:
        bound_s = self.plan.bound_s(self.timeout_multiplier)
        if self.plan.fault not in faults.INJECT:
            bound_s += self.plan.budget_s
        began = moved = time.monotonic()
        rows = -1
        reports_due_s = self.plan.detection_bound_s(self.timeout_multiplier) if self.plan.fault in ENDS_A_RANK else math.inf
        while any(rank.running() for rank in self.ranks):
            now = time.monotonic()
            if self._row_count() != rows:
                rows, moved = self._row_count(), now
            if now - began > bound_s and (now - moved > STILL_MOVING_S or now - began > MOST_BOUNDS * bound_s):
                break
            if now - began > reports_due_s:
                reports_due_s = math.inf
                self._end_idle_survivors()
            if self.cancelled.wait(0.1):
                raise Cancelled
        return time.monotonic() - began

    def _end_idle_survivors(self) -> None:
        """Ends survivors that wait for the dead rank in ztcp_perf. Survivors that wait for the plugin run on into the bound.

        Behind a muted rank 0 survivors do not hear from each other: one may have failed by its request in flight.
        """
        survivors = [rank for number, rank in enumerate(self.ranks) if number != self.plan.victim]
        idle = [rank for rank in survivors if rank.running()]
        if idle and not any(rank.is_polling() for rank in idle):
            self.no_request_in_flight = len(idle) == len(survivors)
            self.relay.end_muted()

    def _was_met(self, was_injected: bool, rows_before: int, ends: list[RankEnd]) -> bool:
        # They count messages, so data has moved, perhaps for less than a row.
        if self.plan.fault in NICS:
            return self.world.was_met()
        if self.plan.fault in BY_ENVIRONMENT:
            return self._row_count() > 0 and self.world.was_met()
        if self.plan.fault == "none":
            return self._row_count() >= ROWS_BEFORE_FAULT
        if self.plan.fault == "sockets-kill" and not self.world.has_killed_sockets:
            return False
        if self.plan.fault == "mtu-hole" and not self.world.has_lost_segments:
            return False
        has_failed = any(end.status != 0 and not end.is_victim for end in ends)
        return was_injected and (has_failed or self._row_count() > rows_before)

    # --- Output of the ranks ----------------------------------------------------------------------
    def _row_count(self) -> int:
        return len(outputs.rows(self.ranks[0].output()))

    def _log_size(self, rank: int) -> int:
        path = self.world.plugin_log(rank)
        return path.stat().st_size if path.exists() else 0

    def _end_of(self, rank: int) -> RankEnd:
        lines: list[str] = []
        with contextlib.suppress(FileNotFoundError):
            with self.world.plugin_log(rank).open("rb") as log:
                log.seek(self.log_sizes[rank])
                lines = outputs.warnings(log.read().decode(errors="replace"))
        return RankEnd(rank, self.ranks[rank].status(), self.plan.fault in ENDS_A_RANK and rank == self.plan.victim,
                       lines, outputs.other_lines(self.ranks[rank].output()))

    def _close(self) -> None:
        for process in self.ranks:
            process.send(signal.SIGCONT)
            process.end()
        if self._relay:
            self._relay.close()
        self.world.close()
