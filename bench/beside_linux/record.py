# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""A receiver's progress, as lines "TIME BYTES": the monotonic clock, and all bytes so far."""
import time

STEP_S = 0.005


class Record:
    """Prints at most one line each STEP_S."""

    def __init__(self):
        self.bytes = 0
        self.next_s = 0.0

    def add(self, count):
        self.bytes += count
        now = time.monotonic()
        if now >= self.next_s:
            self.next_s = now + STEP_S
            print(f"{now:.6f} {self.bytes}", flush=True)


def read(text):
    """The (time, bytes) of a receiver's output."""
    return [(float(words[0]), int(words[1])) for words in map(str.split, text.splitlines())
            if len(words) == 2 and words[1].isdigit()]
