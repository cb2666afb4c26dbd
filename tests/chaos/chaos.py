#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Runs random ztcp_perf jobs over the built plugin, injects a fault into each while data moves, and judges how each ends."""
# plan.py draws a job from its seed, worlds.py and hosts.py make its network, job.py runs it,
# faults.py injects the fault, relay.py hides a dead rank from ztcp_perf, outputs.py and judge.py
# turn the results into a verdict.
from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import queue
import shutil
import signal
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator

sys.dont_write_bytecode = True
import hosts  # noqa: E402
from job import Job, Outcome  # noqa: E402
from plan import FAULTS, TRANSPORTS, Plan, faults_of, pairs, plan_of  # noqa: E402
from processes import Broken, Cancelled  # noqa: E402
from report import as_json, bad, job_line, table  # noqa: E402
from worlds import Tools, tools_of  # noqa: E402

INTERRUPTED_STATUS = 130


def epilog() -> str:
    def listed(names: dict[str, str]) -> str:
        return "\n".join(f"  {name:16}{text}" for name, text in names.items())
    return textwrap.dedent("""\
        A job is 2 to 4 ranks of ztcp_perf --check that move data for some seconds. The fault is injected once rows of
        results appear. The seed decides transport, fault, sizes, timers and whether the job must finish, must fail or
        may do either. It does not decide the timing of the machine: a failure may need a few runs of its seed.

        verdicts:
          ok                 every rank ended with status 0 and the right bytes
          failed-as-expected every surviving rank failed in time, and a warning of the plugin names the cause
          unmet              the fault took no effect while data moved: proves nothing, not counted as ok
          HANG               a rank did not end in time; rankN.stacks has its threads (gdb, else /proc)
          WRONG              wrong bytes or sizes
          CRASH              a process died of a signal that the harness did not send
          SILENT             the job failed and no warning of the plugin names the cause
          FAILED             the job failed though it had to finish, or finished though it had to fail
          BROKEN             the harness could not set up the job
        Exit status: 0, or 1 after a verdict in capitals, 77 where no network namespace can be made, 130 after Ctrl-C.

        transports:
        {transports}

        faults:
        {faults}

        examples:
          tests/chaos/chaos.py --build build-release --jobs 500
          tests/chaos/chaos.py --transport memif --fault kill --fault stop --jobs 20
          tests/chaos/chaos.py --only 4711 --keep /tmp/again --keep-all
        """).replace("{transports}", listed(TRANSPORTS)).replace("{faults}", listed(FAULTS))


def parse_options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, epilog=epilog(), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build-release"), metavar="FOLDER",
                        help="Meson build folder with the plugin and the tools (default build-release)")
    parser.add_argument("--jobs", type=int, default=len(pairs()), metavar="N",
                        help=f"number of jobs (default {len(pairs())}: each pair of a transport and a fault once)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first job; the next job has the next seed (default 1)")
    parser.add_argument("--parallel", type=int, default=2, metavar="N", help="jobs at a time (default 2)")
    parser.add_argument("--transport", action="append", choices=TRANSPORTS, metavar="NAME",
                        help="only jobs of this transport; may be repeated")
    parser.add_argument("--fault", action="append", choices=FAULTS, metavar="NAME",
                        help="only jobs with this fault; may be repeated")
    parser.add_argument("--only", type=int, metavar="SEED", help="run the job of this seed alone")
    parser.add_argument("--timeout-multiplier", type=float, default=1, metavar="FACTOR",
                        help="multiply the time allowed beyond the timers of the plugin, for a busy machine (default 1)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write plans, verdicts and evidence to FILE")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER",
                        help="keep configs, logs and stacks of bad jobs there (default chaos-kept in the build folder)")
    parser.add_argument("--keep-all", action="store_true", help="keep the files of all jobs")
    parser.add_argument("--list", action="store_true", help="print the jobs without running them")
    options = parser.parse_args(words)
    if options.only is not None:
        options.seed, options.jobs, options.transport, options.fault = options.only, 1, None, None
    if options.jobs < 1 or not 1 <= options.parallel <= 64 or options.timeout_multiplier <= 0 or options.seed < 0:
        parser.error("--jobs and --parallel (up to 64) are at least 1, --seed at least 0, --timeout-multiplier more than 0")
    if not any(matches(options, *pair) for pair in pairs()):
        parser.error(f"no such job: faults of {options.transport[0]} are {', '.join(faults_of(options.transport[0]))}")
    return options


def matches(options: argparse.Namespace, transport: str, fault: str) -> bool:
    return transport in (options.transport or [transport]) and fault in (options.fault or [fault])


def chosen(options: argparse.Namespace) -> Iterator[Plan]:
    """The plan of a seed does not depend on the filters: they skip seeds."""
    plans = map(plan_of, itertools.count(options.seed))
    return itertools.islice((plan for plan in plans if matches(options, plan.transport, plan.fault)), options.jobs)


def no_sockets(folder: str, names: list[str]) -> list[str]:
    """For copytree: skips sockets and FIFOs."""
    paths = {name: pathlib.Path(folder, name) for name in names}
    return [name for name, path in paths.items() if not path.is_file() and not path.is_dir()]


class Run:
    """The jobs of one call, in --parallel threads."""

    def __init__(self, options: argparse.Namespace, tools: Tools, folder: pathlib.Path) -> None:
        self.options = options
        self.tools = tools
        self.folder = folder
        self.keep = (options.keep or options.build / "chaos-kept").resolve()
        self.cancelled = threading.Event()
        self.plans: queue.SimpleQueue[Plan] = queue.SimpleQueue()
        for plan in chosen(options):
            self.plans.put(plan)
        self.outcomes: list[Outcome] = []
        self.failures: list[BaseException] = []
        self.lock = threading.Lock()

    def run(self) -> None:
        threads = [threading.Thread(target=self._work, args=(slot,)) for slot in range(self.options.parallel)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _work(self, slot: int) -> None:
        try:
            while not self.cancelled.is_set():
                plan = self.plans.get_nowait()
                folder = self.folder / str(plan.seed)  # Paths of sockets have at most 107 bytes.
                folder.mkdir()
                self._add(Job(plan, self.tools, folder, slot, self.options.timeout_multiplier, self.cancelled).run(), folder)
        except (queue.Empty, Cancelled):
            pass
        except BaseException as error:  # A bug of the harness ends the run.
            self.failures.append(error)
            self.cancelled.set()

    def _add(self, outcome: Outcome, folder: pathlib.Path) -> None:
        if bad([outcome]) or self.options.keep_all:
            outcome.artefacts = self.keep / f"seed-{outcome.plan.seed}"
            shutil.rmtree(outcome.artefacts, ignore_errors=True)
            (folder / "job.json").write_text(as_json([outcome]))
            shutil.copytree(folder, outcome.artefacts, ignore=no_sockets)
        shutil.rmtree(folder, ignore_errors=True)
        with self.lock:
            self.outcomes.append(outcome)
            print(job_line(outcome, len(self.outcomes), self.options.jobs), flush=True)


def main() -> int:
    options = parse_options(sys.argv[1:])
    if options.list:
        for plan in chosen(options):
            print(f"seed {plan.seed}: {plan.transport}, {plan.fault} ({plan.describe()}): must {plan.expect.value}")
        return 0
    try:
        tools = tools_of(options.build.resolve())
    except Broken as broken:
        sys.exit(f"chaos: {broken}")
    hosts.enter()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="zc.", dir="/tmp"))
    run = Run(options, tools, folder)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: run.cancelled.set())
    try:
        run.run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcomes = sorted(run.outcomes, key=lambda outcome: outcome.plan.seed)
    if options.json:
        options.json.write_text(as_json(outcomes))
    print(f"\n{table(outcomes)}")
    for outcome in bad(outcomes):
        print(f"{outcome.judgement.verdict.value}: run again with {os.path.relpath(sys.argv[0])} --build {options.build} "
              f"--only {outcome.plan.seed}")
    if run.cancelled.is_set():
        print(f"interrupted after {len(outcomes)} of {options.jobs} jobs")
        return INTERRUPTED_STATUS
    return 1 if bad(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
