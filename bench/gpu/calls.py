# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""NCCL's other calls over the network, one after the other, each in all ranks: communicators split,
shrunk, grown, revoked, aborted under load and made without blocking, and a CUDA graph.

Each checks every element of an all-reduce afterwards. A call that this NCCL lacks is left out by
name. The part `calls` of run starts them.
"""
import time

import torch

from nccl import IN_PROGRESS, SHRINK_ABORT, Nccl
from patterns import pattern

COUNT = 300_001  # Elements of a check: more than a chunk, and no multiple of anything.
LOAD_COUNT = 8 << 20  # Elements of an all-reduce that is still under way when it is ended.
LIMIT_S = 60


class Calls:
    """The ranks' side. Owner: one thread of each rank."""

    def __init__(self, nccl: Nccl, meeting, device):
        self.nccl, self.meeting, self.device = nccl, meeting, device
        self.rank, self.ranks = meeting.rank, meeting.ranks
        self.everyone = list(range(self.ranks))
        self.stream = torch.cuda.current_stream().cuda_stream

    def made(self, name):
        return self.nccl.init(self.ranks, self.meeting.unique_id(self.nccl, name), self.rank)

    def settled(self, comm, wanted=0):
        """Waits until the communicator is no longer in progress."""
        deadline = time.monotonic() + LIMIT_S
        while (code := self.nccl.async_error(comm)) == IN_PROGRESS:
            if time.monotonic() > deadline:
                raise TimeoutError(f"in progress for {LIMIT_S} s")
            time.sleep(0.001)
        if code != wanted:
            raise RuntimeError(f"asynchronous error {code}, not {wanted}")

    def wrong(self, comm, members):
        """An all-reduce over `members`; returns the number of wrong elements."""
        salt = len(members)
        data = pattern(COUNT, self.rank, salt, self.device)
        expected = sum(pattern(COUNT, member, salt, self.device) for member in members)
        self.nccl.all_reduce(comm, data.data_ptr(), data.data_ptr(), COUNT, self.stream)
        self.settled(comm)
        torch.cuda.synchronize()
        return int((data != expected).sum())

    def loaded(self, name, busy=None):
        """A communicator with all-reduces under way, queued by the ranks `busy` (default: all)."""
        comm = self.made(name)
        data = pattern(LOAD_COUNT, self.rank, 0, self.device)
        self.nccl.all_reduce(comm, data.data_ptr(), data.data_ptr(), LOAD_COUNT, self.stream)
        torch.cuda.synchronize()
        self.meeting.barrier(name)
        if self.rank in (busy or self.everyone):
            for _ in range(20):
                self.nccl.all_reduce(comm, data.data_ptr(), data.data_ptr(), LOAD_COUNT, self.stream)
        return comm, data

    def graph(self):
        """An all-reduce in a CUDA graph, replayed with other data."""
        comm = self.made("graph")
        wrong = self.wrong(comm, self.everyone)  # NCCL connects here, and not in the capture.
        source = torch.zeros(COUNT, device=self.device)
        target = torch.zeros(COUNT, device=self.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            stream = torch.cuda.current_stream().cuda_stream
            self.nccl.all_reduce(comm, source.data_ptr(), target.data_ptr(), COUNT, stream)
        for salt in range(20):
            source.copy_(pattern(COUNT, self.rank, salt, self.device))
            graph.replay()
            torch.cuda.synchronize()
            wrong += int((target != sum(pattern(COUNT, r, salt, self.device)
                                        for r in self.everyone)).sum())
        del graph
        self.nccl.destroy(comm)
        return wrong

    def split(self):
        """Halves of a communicator, both busy at the same time."""
        comm = self.made("split")
        half = self.nccl.split(comm, self.rank * 2 // self.ranks, self.rank)
        members = [r for r in self.everyone if r * 2 // self.ranks == self.rank * 2 // self.ranks]
        wrong = self.wrong(half, members) + self.wrong(comm, self.everyone)
        self.nccl.destroy(half)
        self.nccl.destroy(comm)
        return wrong

    def shrink(self):
        """The last rank leaves."""
        comm = self.made("shrink")
        wrong = self.wrong(comm, self.everyone)
        if self.rank < self.ranks - 1:
            smaller = self.nccl.shrink(comm, [self.ranks - 1])
            wrong += self.wrong(smaller, self.everyone[:-1])
            self.nccl.destroy(smaller)
        self.nccl.destroy(comm)
        return wrong

    def shrink_abort(self):
        """The last rank stands still; the others leave it behind, with all-reduces under way.
        (After an error of the network NCCL refuses to shrink a communicator.)"""
        comm, data = self.loaded("shrink-abort", self.everyone[:-1])
        wrong = 0
        if self.rank < self.ranks - 1:
            time.sleep(0.5)
            smaller = self.nccl.shrink(comm, [self.ranks - 1], SHRINK_ABORT)
            torch.cuda.synchronize()
            wrong = self.wrong(smaller, self.everyone[:-1])
            self.nccl.destroy(smaller)
        self.meeting.barrier("shrunk-abort")
        del data
        self.nccl.abort(comm)
        return wrong

    def grow(self):
        """The last rank joins."""
        identity = self.meeting.unique_id(self.nccl, "grow-before")
        wrong, comm, joining = 0, None, self.rank == self.ranks - 1
        if not joining:
            comm = self.nccl.init(self.ranks - 1, identity, self.rank)
            wrong = self.wrong(comm, self.everyone[:-1])
        grow_id = self.meeting.share("id-grow", lambda: self.nccl.unique_id_of(comm))
        larger = self.nccl.grow(comm, self.ranks, grow_id if self.rank == 0 or joining else None,
                                self.rank if joining else -1)
        wrong += self.wrong(larger, self.everyone)
        self.nccl.destroy(larger)
        if comm:
            self.nccl.destroy(comm)
        return wrong

    def revoke(self):
        """All-reduces under way end; a communicator made from the revoked one works."""
        comm, data = self.loaded("revoke")
        self.nccl.revoke(comm)
        self.settled(comm)
        torch.cuda.synchronize()
        del data
        child = self.nccl.split(comm, 0, self.rank)
        wrong = self.wrong(child, self.everyone)
        self.nccl.destroy(child)
        self.nccl.destroy(comm)
        return wrong

    def nonblocking(self):
        """Made, used, finalized and destroyed without a call that waits."""
        identity = self.meeting.unique_id(self.nccl, "nonblocking")
        comm = self.nccl.init_nonblocking(self.ranks, identity, self.rank)
        self.settled(comm)
        wrong = self.wrong(comm, self.everyone)
        self.nccl.finalize(comm)
        self.settled(comm)
        self.nccl.destroy(comm)
        return wrong

    def abort(self):
        """All ranks abort under load; the next communicator works."""
        comm, data = self.loaded("abort")
        self.nccl.abort(comm)
        torch.cuda.synchronize()
        del data
        comm = self.made("after-abort")
        wrong = self.wrong(comm, self.everyone)
        self.nccl.destroy(comm)
        return wrong


NEEDS = {"graph": "ncclAllReduce", "split": "ncclCommSplit", "shrink": "ncclCommShrink",
         "shrink_abort": "ncclCommShrink", "grow": "ncclCommGrow",
         "nonblocking": "ncclCommInitRankConfig", "abort": "ncclCommAbort", "revoke": "ncclCommRevoke"}


def calls(arguments, nccl, meeting, device):
    """Runs all; returns the outcome of each: wrong elements and seconds, or None where this NCCL
    has no such call."""
    del arguments
    runner, outcomes = Calls(nccl, meeting, device), {}
    for name, needed in NEEDS.items():
        if not nccl.has(needed):
            outcomes[name] = None
            continue
        print(f"call {name}", flush=True)
        begin = time.monotonic()
        wrong = getattr(runner, name)()
        outcomes[name] = {"wrong": wrong, "seconds": round(time.monotonic() - begin, 2)}
        meeting.barrier(f"done-{name}")
    return {"calls": outcomes}


def one_process(arguments, nccl, meeting, device):
    """One process with a communicator for each GPU; the environment keeps NCCL from the ways
    between them that are no network."""
    del arguments, meeting, device
    gpus = torch.cuda.device_count()
    comms = nccl.init_all(gpus)
    wrong = 0
    for salt in range(10):
        data = [pattern(COUNT, gpu, salt, torch.device("cuda", gpu)) for gpu in range(gpus)]
        with nccl.group():
            for gpu, comm in enumerate(comms):
                with torch.cuda.device(gpu):
                    nccl.all_reduce(comm, data[gpu].data_ptr(), data[gpu].data_ptr(), COUNT,
                                    torch.cuda.current_stream(gpu).cuda_stream)
        for gpu in range(gpus):
            torch.cuda.synchronize(gpu)
            device = torch.device("cuda", gpu)
            wrong += int((data[gpu] != sum(pattern(COUNT, r, salt, device) for r in range(gpus))).sum())
    for comm in comms:
        nccl.destroy(comm)
    return {"wrong": wrong, "gpus": gpus}
