#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""One rank of bench/gpu/run and verbs: a sweep, a loop of communicators, NCCL's other calls, a
failure, or a DDP training.

Started by them; writes its results as JSON to --out. Ranks meet through files in --meet.
"""
import argparse
import gc
import json
import os
import pathlib
import resource
import signal
import sys
import time

import torch

from calls import calls, one_process
from nccl import Nccl, RESULTS
from patterns import pattern

MEET_SECONDS = 120
ROOT = 0  # The root of broadcast and reduce.


def wait_for(path, seconds=MEET_SECONDS):
    deadline = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > deadline:
            sys.exit(f"{path.name} did not appear within {seconds} s: a rank is missing")
        time.sleep(0.005)
    return path


class Meeting:
    """Unique ids and barriers over files, so that only NCCL uses the network."""

    def __init__(self, folder, rank, ranks):
        self.folder, self.rank, self.ranks = pathlib.Path(folder), rank, ranks

    def unique_id(self, nccl, name):
        return self.share(f"id-{name}", nccl.unique_id)

    def agree(self, name, value):
        """Rank 0's number on every rank."""
        return int(self.share(f"agreed-{name}", lambda: str(value).encode()))

    def share(self, name, make):
        """The bytes that rank 0 makes, on every rank."""
        path = self.folder / name
        if self.rank == 0:
            part = path.with_suffix(".part")
            part.write_bytes(make())
            part.rename(path)
        return wait_for(path).read_bytes()

    def barrier(self, name):
        (self.folder / f"at-{name}-{self.rank}").touch()
        for rank in range(self.ranks):
            wait_for(self.folder / f"at-{name}-{rank}")


class Sweep:
    def __init__(self, nccl, comm, meeting, device, registers=False):
        self.nccl, self.comm, self.meeting, self.device = nccl, comm, meeting, device
        self.rank, self.ranks = meeting.rank, meeting.ranks
        self.registers, self.registered = registers, []
        self.stream = torch.cuda.current_stream().cuda_stream

    def all_reduce(self, source, target):
        self.nccl.all_reduce(self.comm, source.data_ptr(), target.data_ptr(), source.numel(), self.stream)

    def all_to_all(self, source, target):
        part = source.numel() // self.ranks
        with self.nccl.group():
            for peer in range(self.ranks):
                offset = peer * part * 4
                self.nccl.send(self.comm, source.data_ptr() + offset, part, peer, self.stream)
                self.nccl.receive(self.comm, target.data_ptr() + offset, part, peer, self.stream)

    def sendrecv(self, source, target):
        count = source.numel()
        with self.nccl.group():
            self.nccl.send(self.comm, source.data_ptr(), count, (self.rank + 1) % self.ranks, self.stream)
            self.nccl.receive(self.comm, target.data_ptr(), count, (self.rank - 1) % self.ranks, self.stream)

    def all_gather(self, source, target):
        part = source.numel() // self.ranks
        self.nccl.all_gather(self.comm, source.data_ptr(), target.data_ptr(), part, self.stream)

    def reduce_scatter(self, source, target):
        part = source.numel() // self.ranks
        self.nccl.reduce_scatter(self.comm, source.data_ptr(), target.data_ptr(), part, self.stream)

    def broadcast(self, source, target):
        self.nccl.broadcast(self.comm, source.data_ptr(), target.data_ptr(), source.numel(), ROOT, self.stream)

    def reduce(self, source, target):
        self.nccl.reduce(self.comm, source.data_ptr(), target.data_ptr(), source.numel(), ROOT, self.stream)

    def buffer(self, values):
        """A buffer with `values`; with --register a registered one that does not begin at a page.
        """
        if not self.registers:
            return values
        inner = torch.empty(values.numel() + 3, dtype=values.dtype, device=self.device)[3:]
        inner.copy_(values)
        self.registered.append((self.nccl.register(self.comm, inner.data_ptr(), inner.numel() * 4), inner))
        return inner

    def deregister_all(self):
        for handle, _ in self.registered:
            self.nccl.deregister(self.comm, handle)
        self.registered.clear()

    def used(self, op, count):
        """The number of elements of the target that this rank is given."""
        if op in ("all_to_all", "all_gather"):
            return count // self.ranks * self.ranks
        if op == "reduce_scatter":
            return count // self.ranks
        return 0 if op == "reduce" and self.rank != ROOT else count

    def expected(self, op, count, salt):
        if op == "broadcast":
            return pattern(count, ROOT, salt, self.device)
        peers = [pattern(count, peer, salt, self.device) for peer in range(self.ranks)] \
            if op != "sendrecv" else []
        if op in ("all_reduce", "reduce", "reduce_scatter"):
            total = torch.stack(peers).sum(0) if count < 1 << 24 else sum(peers)
            part = count // self.ranks
            return total[self.rank * part:(self.rank + 1) * part] if op == "reduce_scatter" else total
        if op == "all_gather":
            return torch.cat([peer[:count // self.ranks] for peer in peers])
        if op == "all_to_all":
            part = count // self.ranks
            return torch.cat([peer[self.rank * part:(self.rank + 1) * part] for peer in peers])
        return pattern(count, (self.rank - 1) % self.ranks, salt, self.device)

    def bus_factor(self, op):
        return {"all_reduce": 2 * (self.ranks - 1) / self.ranks,
                "all_to_all": (self.ranks - 1) / self.ranks, "all_gather": (self.ranks - 1) / self.ranks,
                "reduce_scatter": (self.ranks - 1) / self.ranks, "sendrecv": 1.0, "broadcast": 1.0, "reduce": 1.0}[op]

    def one_by_one(self, run, samples):
        """Microseconds of each of `samples` iterations for a caller that waits for each: from
        before the call until the stream is done."""
        stream = torch.cuda.current_stream()
        times = []
        run()  # Ranks leave the agreement one after the other.
        stream.synchronize()
        gc.disable()  # Pauses of the collector are no network time.
        for _ in range(samples):
            begin = time.perf_counter()
            run()
            stream.synchronize()
            times.append((time.perf_counter() - begin) * 1e6)
        gc.enable()
        return times

    def measure(self, op, size_bytes, warmup, budget_s, samples=0):
        """One row. time_us is the mean of iterations that are queued one after the other."""
        count = max(self.ranks, size_bytes // 4 // self.ranks * self.ranks)
        if op not in ("all_to_all", "all_gather", "reduce_scatter"):
            count = max(1, size_bytes // 4)
        run = getattr(self, op)
        wrong = 0
        for salt in (size_bytes % 97, size_bytes % 89 + 1):
            source = self.buffer(pattern(count, self.rank, salt, self.device))
            target = self.buffer(torch.full_like(source, float("nan")))
            run(source, target)
            torch.cuda.synchronize()
            used = self.used(op, count)
            wrong += int((target[:used] != self.expected(op, count, salt)[:used]).sum())
        for _ in range(warmup):
            run(source, target)
        torch.cuda.synchronize()
        # Every rank must run the same number of iterations, so the count follows from the size
        # only.
        iterations = max(3, min(200 if size_bytes <= 1 << 16 else 20, int(budget_s * 2e9 / max(size_bytes, 1))))
        begin = time.perf_counter()
        for _ in range(iterations):
            run(source, target)
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - begin) / iterations
        one_by_one_us = []
        if samples:
            fit = max(3, min(samples, int(budget_s / seconds)))
            samples = self.meeting.agree(f"{op}-{size_bytes}", fit)
            one_by_one_us = self.one_by_one(lambda: run(source, target), samples)
        self.deregister_all()
        return {"op": op, "one_by_one_us": [round(us, 2) for us in one_by_one_us], "size_bytes": count * 4, "time_us": seconds * 1e6, "iterations": iterations,
                "algbw_gb_per_s": count * 4 / seconds / 1e9,
                "busbw_gb_per_s": count * 4 / seconds / 1e9 * self.bus_factor(op), "wrong": wrong}


def sweep(arguments, nccl, meeting, device):
    comm = nccl.init(arguments.ranks, meeting.unique_id(nccl, "sweep"), arguments.rank)
    runner = Sweep(nccl, comm, meeting, device, arguments.register)
    rows = []
    for op in arguments.ops.split(","):
        size = arguments.min
        while size < arguments.max:
            rows.append(runner.measure(op, size, 3, arguments.budget, arguments.samples))
            size *= arguments.factor
        rows.append(runner.measure(op, arguments.max, 3, arguments.budget, arguments.samples))
    nccl.destroy(comm)
    return {"rows": rows}


def communicators(arguments, nccl, meeting, device):
    stream = torch.cuda.current_stream().cuda_stream
    wrong, seconds = 0, []
    for index in range(arguments.count):
        begin = time.perf_counter()
        comm = nccl.init(arguments.ranks, meeting.unique_id(nccl, f"comm{index}"), arguments.rank)
        data = pattern(1000 + index, arguments.rank, index, device)
        expected = sum(pattern(1000 + index, r, index, device) for r in range(arguments.ranks))
        nccl.all_reduce(comm, data.data_ptr(), data.data_ptr(), data.numel(), stream)
        torch.cuda.synchronize()
        wrong += int((data != expected).sum())
        nccl.destroy(comm)
        seconds.append(time.perf_counter() - begin)
    return {"communicators": arguments.count, "wrong": wrong, "median_s": sorted(seconds)[len(seconds) // 2]}


def until_it_fails(arguments, nccl, meeting, device, dies):
    """All-reduces until this rank gets an error, or dies in mid-transfer."""
    stream = torch.cuda.current_stream()
    comm = nccl.init(arguments.ranks, meeting.unique_id(nccl, "failing"), arguments.rank)
    data = pattern(8 << 20, arguments.rank, 0, device)
    nccl.all_reduce(comm, data.data_ptr(), data.data_ptr(), data.numel(), stream.cuda_stream)
    torch.cuda.synchronize()
    meeting.barrier("failing")
    for _ in range(20):
        nccl.all_reduce(comm, data.data_ptr(), data.data_ptr(), data.numel(), stream.cuda_stream)
    if dies:
        time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    code = 0
    while code in (0, 7) and time.monotonic() - begin < arguments.timeout:
        code = nccl.async_error(comm)
        time.sleep(0.01)
    seconds = time.monotonic() - begin
    nccl.abort(comm)
    return {"async_error": RESULTS.get(code, str(code)), "heard_after_s": seconds,
            "aborted_after_s": time.monotonic() - begin, "in_time": code not in (0, 7)}


def killed(arguments, nccl, meeting, device):
    """The last rank kills itself; the others must get the error, in time, with the cause in the
    log."""
    return until_it_fails(arguments, nccl, meeting, device, dies=arguments.rank == arguments.ranks - 1)


def broken(arguments, nccl, meeting, device):
    """The environment makes a part of one rank fail; all ranks must get the error."""
    return until_it_fails(arguments, nccl, meeting, device, dies=False)


def train(arguments, nccl, meeting, device):
    """DistributedDataParallel on made-up data; the losses of every step must be equal over any
    network."""
    del nccl
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    torch.distributed.init_process_group(
        "nccl", rank=arguments.rank, world_size=arguments.ranks,
        store=torch.distributed.FileStore(str(meeting.folder / "store"), arguments.ranks))
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096),
                                torch.nn.GELU(), torch.nn.Linear(4096, 10)).to(device)
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(100 + arguments.rank)
    losses = []
    begin = time.perf_counter()
    for _ in range(arguments.steps):
        inputs = torch.randn(64, 1024, generator=generator).to(device)
        labels = (inputs[:, :10].argmax(1)).to(device)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(parallel(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    seconds = time.perf_counter() - begin
    torch.distributed.destroy_process_group()
    return {"losses": losses, "seconds": seconds}


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    modes = {call.__name__: call for call in
             (sweep, communicators, calls, one_process, killed, broken, train)}
    parser.add_argument("mode", choices=modes)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--gpu", type=int, required=True)
    parser.add_argument("--meet", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--nccl", default="", help="another NCCL than PyTorch's: its file")
    parser.add_argument("--ops", default="all_reduce")
    parser.add_argument("--min", type=int, default=8)
    parser.add_argument("--max", type=int, default=128 << 20)
    parser.add_argument("--factor", type=int, default=8)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds a size may take at 2 GB/s")
    parser.add_argument("--samples", type=int, default=0,
                        help="iterations timed one by one, as many as --budget seconds allow")
    parser.add_argument("--register", action="store_true", help="the buffers of a sweep, by ncclCommRegister")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--timeout", type=float, default=60)
    arguments = parser.parse_args()

    device = torch.device("cuda", arguments.gpu)
    torch.cuda.set_device(device)
    torch.zeros(1, device=device)
    nccl = Nccl(arguments.nccl)
    meeting = Meeting(arguments.meet, arguments.rank, arguments.ranks)
    # The time to load PyTorch and CUDA is no network time.
    before = cpu_seconds()
    result = modes[arguments.mode](arguments, nccl, meeting, device)
    result.update(rank=arguments.rank, nccl=nccl.version(), cpu_s=cpu_seconds() - before)
    pathlib.Path(arguments.out).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
