#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Stands in for bench/gpu/train_rank.py: speaks its protocol and trains nothing. STAND_IN in the
environment names the fault."""
import argparse
import json
import os
import pathlib
import sys
import time

BEHAVIOUR = os.environ["STAND_IN"]


def main():
    parser = argparse.ArgumentParser()
    for name in ("rank", "ranks", "parent"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--device")
    arguments = parser.parse_args()
    if BEHAVIOUR == "does not start":
        raise ModuleNotFoundError("No module named 'torch'")
    marks = pathlib.Path(__file__).resolve().parent  # Marks that outlive this process.
    print(json.dumps({"ready": "0"}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        mark = marks / f"rank{arguments.rank}"
        count = int(mark.read_text()) + 1 if mark.exists() else 1
        mark.write_text(str(count))
        if BEHAVIOUR == "hangs" and arguments.rank == 1:
            time.sleep(1000)
        if BEHAVIOUR == "second run fails" and arguments.rank == 1 and count == 2:
            print(json.dumps({"done": 3}), flush=True)
            continue
        losses = [2.0, 1.5 if BEHAVIOUR == "losses differ" and count == 2 else 1.0]
        window = {"steps": 2, "seconds": 0.1, "step_ms": [50.0, 50.0]}
        result = {"windows": [window] * job["windows"], "losses": losses, "batch": 8, "cpu_s": 0.1,
                  "start_s": 0.1, "parameters": 1000, "torch": "0", "nccl": ""}
        pathlib.Path(job["meet"], f"out{arguments.rank}.json").write_text(json.dumps(result))
        network = "Other" if BEHAVIOUR == "another network" else os.environ.get("NCCL_NET")
        pathlib.Path(job["meet"], f"rank{arguments.rank}.txt").write_text(
            f"0 -> 1 [send] via NET/{network}/0 host {os.environ.get('NCCL_HOSTID')} "
            f"library {os.environ.get('LD_LIBRARY_PATH', '').split(':')[0]}\nNCCL WARN of it\n")
        time.sleep(0.05)
        print(json.dumps({"done": 0}), flush=True)


if __name__ == "__main__":
    main()
