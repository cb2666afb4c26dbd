#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""One rank of bench/gpu/train over one network.

Loads PyTorch once and then takes jobs, a line of JSON each, from the standard input. Each job runs
in a fork, so that NCCL and the plugin start from the beginning and PyTorch is not loaded again. The
environment is the network's and stays the same. On the standard output: {"ready": ...}, then for
each job {"done": exit status}.
"""
import argparse
import contextlib
import ctypes
import datetime
import json
import os
import pathlib
import resource
import signal
import sys
import time

import torch
import torch.distributed
# Loads the parts that DistributedDataParallel needs, before the forks.
import torch.nn.parallel

import models

WHEEL = pathlib.Path(__file__).resolve().parents[2] / "packaging/wheel"
TASKS = {"resnet50": (models.ResNetTask, "ddp"), "transformer": (models.TransformerTask, "ddp"),
         "transformer-fsdp": (models.TransformerTask, "fsdp")}
PR_SET_PDEATHSIG = 1
SEED = 1


def end_with_parent(parent):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Training:
    def __init__(self, job, arguments, device):
        self.job, self.rank, self.ranks, self.device = job, arguments.rank, arguments.ranks, device
        self.is_gpu = device.type == "cuda"
        self.store = torch.distributed.FileStore(f"{job['meet']}/store", self.ranks)
        torch.manual_seed(SEED)
        task, kind = TASKS[job["model"]]
        self.task = task(job["tiny"], device)
        self.parameters = sum(p.numel() for p in self.task.model.parameters())
        self.is_sharded = kind == "fsdp"
        limit = datetime.timedelta(seconds=job["limit_s"])
        torch.distributed.init_process_group("nccl" if self.is_gpu else "gloo", rank=self.rank,
                                             world_size=self.ranks, store=self.store, timeout=limit)
        self.model = self.in_parallel(self.task.model)
        self.optimizer = self.task.optimizer(self.model.parameters())
        generator = torch.Generator(device).manual_seed(SEED + 100 + self.rank)
        self.batches = [self.task.make_batch(generator) for _ in range(models.BATCHES)]
        self.steps_done = 0

    def in_parallel(self, model):
        if self.is_sharded:
            return models.fully_sharded(model)
        devices = [self.device.index] if self.is_gpu else None
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=devices)
        if self.job["topk"]:
            sys.path.append(str(WHEEL))
            from _ztcp.topk import topk
            model.register_comm_hook(None, topk(self.job["topk"]))
        return model

    def precision(self):
        # FSDP sets its own precision.
        if not self.is_gpu or self.is_sharded:
            return contextlib.nullcontext()
        return torch.autocast("cuda", dtype=torch.bfloat16)

    def step(self):
        inputs, wanted = self.batches[self.steps_done % models.BATCHES]
        self.steps_done += 1
        self.optimizer.zero_grad(set_to_none=True)
        with self.precision():
            outputs = self.model(inputs)
        loss = self.task.loss(outputs, wanted)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def wait(self):
        if self.is_gpu:
            torch.cuda.synchronize()

    def agree(self, name, value):
        """Rank 0's value on every rank, not sent over the measured network."""
        if self.rank == 0:
            self.store.set(name, json.dumps(value))
        return json.loads(self.store.get(name))

    def losses(self):
        """Losses of the first steps, with deterministic kernels: the same over every network."""
        set_deterministic(True)
        found = [float(self.step()) for _ in range(self.job["loss_steps"])]
        set_deterministic(False)
        return found

    def warm_up(self):
        """Seconds of a step, over the later half of the steps."""
        steps = self.job["warmup_steps"]
        for number in range(steps):
            if number == steps // 2:
                self.wait()
                begin = time.perf_counter()
            self.step()
        self.wait()
        return (time.perf_counter() - begin) / (steps - steps // 2)

    def window(self, steps):
        marks = [self.mark() for _ in range(steps + 1)] if self.is_gpu else [0.0] * (steps + 1)
        self.wait()
        begin = time.perf_counter()
        self.set_mark(marks, 0)
        for number in range(steps):
            self.step()
            self.set_mark(marks, number + 1)
        self.wait()
        seconds = time.perf_counter() - begin
        return {"steps": steps, "seconds": seconds,
                "step_ms": [round(self.between(*pair), 3) for pair in zip(marks, marks[1:])]}

    @staticmethod
    def mark():
        return torch.cuda.Event(enable_timing=True)

    def set_mark(self, marks, place):
        if self.is_gpu:
            marks[place].record()
        else:
            marks[place] = time.perf_counter()

    def between(self, first, second):
        return first.elapsed_time(second) if self.is_gpu else (second - first) * 1e3

    def run(self):
        losses = self.losses()
        step_s = self.warm_up()
        steps = self.agree("steps", max(3, round(self.job["window_s"] / step_s)))
        cpu = cpu_seconds()
        windows = [self.window(steps) for _ in range(self.job["windows"])]
        return {"losses": losses, "windows": windows, "cpu_s": cpu_seconds() - cpu,
                "batch": self.task.size.batch, "parameters": self.parameters}


def set_deterministic(wanted):
    torch.use_deterministic_algorithms(wanted, warn_only=True)
    torch.backends.cudnn.deterministic = wanted
    torch.backends.cudnn.benchmark = not wanted
    # Only attention's plain kernel has a backward pass that adds in the same order each time.
    for name in ("enable_flash_sdp", "enable_cudnn_sdp", "enable_mem_efficient_sdp"):
        if hasattr(torch.backends.cuda, name):
            getattr(torch.backends.cuda, name)(not wanted)


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def run_job(job, arguments):
    begin = time.perf_counter()
    out = pathlib.Path(job["meet"]) / f"out{arguments.rank}.json"
    device = torch.device(arguments.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    training = Training(job, arguments, device)
    start_s = time.perf_counter() - begin
    result = training.run()
    result.update(rank=arguments.rank, start_s=start_s, torch=torch.__version__,
                  nccl=".".join(map(str, torch.cuda.nccl.version())) if training.is_gpu else "")
    part = out.with_suffix(".part")
    part.write_text(json.dumps(result))
    part.rename(out)
    torch.distributed.destroy_process_group()
    result["total_s"] = time.perf_counter() - begin


def fork_job(job, arguments):
    """The exit status of a fork that runs the job, with its output in the job's log."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        end_with_parent(parent)
        log = os.open(f"{job['meet']}/rank{arguments.rank}.txt",
                      os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        run_job(job, arguments)
        status = 0
    except BaseException:
        import traceback
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    if status == 0:
        sys.exit(0)  # Runs destructors, as at the end of a user's job.
    os._exit(status)


def say(message):
    print(json.dumps(message), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--device", required=True, help="cuda:N, or cpu")
    parser.add_argument("--parent", type=int, required=True, help="ends with this process")
    arguments = parser.parse_args()
    end_with_parent(arguments.parent)
    say({"ready": torch.__version__})
    for line in sys.stdin:
        say({"done": fork_job(json.loads(line), arguments)})


if __name__ == "__main__":
    main()
