# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Runs several measurements at a time, each with its own part of the CPUs, and begins them in the
order given."""
import os
import queue
import sys
import threading


class Schedule:
    def __init__(self, jobs):
        cpus = sorted(os.sched_getaffinity(0))
        jobs = max(1, min(jobs, len(cpus)))
        self.parts = [cpus[i * len(cpus) // jobs:(i + 1) * len(cpus) // jobs] for i in range(jobs)]
        self.cancelled = threading.Event()

    def run(self, tasks, measure):
        """Calls measure(task, slot, cancelled) for each and returns the results in the order of
        their ends; after Ctrl-C, those so far."""
        waiting = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        results = []

        def work(slot):
            os.sched_setaffinity(0, self.parts[slot])  # This thread, and the processes it starts.
            while not self.cancelled.is_set():
                try:
                    task = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    results.append(measure(task, slot, self.cancelled))
                except KeyboardInterrupt:
                    return

        threads = [threading.Thread(target=work, args=(slot,)) for slot in range(len(self.parts))]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)
        except KeyboardInterrupt:
            print("interrupted: ending the runs", file=sys.stderr)
            self.cancelled.set()
            for thread in threads:
                thread.join()
        return results
