# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The plan of a job and its expected end. Both follow from the job's seed alone.

Consecutive seeds go through all pairs of a transport and a fault that the transport can have, in an order that differs
from round to round: len(pairs()) consecutive jobs try each pair once. All other properties of a job are drawn.
"""
from __future__ import annotations

import dataclasses
import enum
import functools
import math
import random


class Expect(enum.Enum):
    """How a job must end after its fault: within Plan.bound_s() and with the right bytes in each case."""
    FINISH = "finish"  # Every rank exits with status 0.
    FAIL = "fail"      # Every surviving rank fails, and a warning of the plugin names the cause.
    EITHER = "either"  # FINISH or FAIL.


@dataclasses.dataclass(frozen=True)
class Timers:
    """The settings of ztcp.conf that decide when a silent peer is given up."""
    user_timeout_s: float
    keepalive_idle_s: float
    keepalive_interval_s: float
    redial_window_s: float

    @property
    def silence_s(self) -> float:
        """A flow without any answer is closed after this time."""
        return min(self.user_timeout_s, self.keepalive_idle_s + 3 * self.keepalive_interval_s)


DEFAULT_TIMERS = Timers(8.0, 3.0, 1.5, 7.0)
SHORT_TIMERS = Timers(3.0, 0.8, 0.6, 5.0)
# The default ack_timeout of 20 is 4.096 us * 2^20. A NIC waits so long for each of 8 attempts.
RDMA_SILENCE_S = 8 * 4.096e-6 * (1 << 20)
# A job must survive outages up to this share of the documented limit: the rest is for a busy
# machine.
CERTAIN_SHARE = 0.6

SWITCHED = ("sockets", "sockets-merged", "memif")
MERGED = ("sockets-merged", "rdma-merged", "rdma-tcp")
RDMA = ("rdma", "rdma-merged", "rdma-tcp")
TRANSPORTS = {
    "sockets": "kernel sockets in network namespaces, over taps of ztcp_switch",
    "sockets-merged": "the same with two interfaces as one device, each on a switch of its own",
    "memif": "userspace TCP over memif through ztcp_switch",
    "mesh": "userspace TCP over shared memory",
    "rdma": "RDMA over software NICs, one for each rank",
    "rdma-merged": "the same with two NICs as one device",
    "rdma-tcp": "an RDMA NIC and the kernel's TCP as one device",
}

ANYWHERE = ("none", "stop", "kill", "exit")
NETWORK = ("loss", "duplicate", "reorder", "corrupt", "switch-stop", "switch-kill", "switch-restart")
HOSTS = ("partition", "flap", "blackhole", "sockets-kill", "mtu-shrink", "mtu-hole")
NICS = ("disorder", "port-flap", "port-down", "device-lost", "message-fail")
FAULTS = {
    "none": "no fault: the job must finish",
    "stop": "a rank is stopped for 1 to 30 s (SIGSTOP)",
    "kill": "a rank is killed (SIGKILL); the others learn of it through the plugin alone",
    "exit": "a rank closes its connections in mid-job and exits (SIGTERM)",
    "loss": "the switch drops up to 5 % of all frames during the whole job",
    "duplicate": "the switch duplicates up to 20 % of all frames",
    "reorder": "the switch delays up to 20 % of all frames behind later ones",
    "corrupt": "the switch flips a bit in up to 2 % of all frames",
    "switch-stop": "the switch of one network is stopped for 1 to 30 s (SIGSTOP)",
    "switch-kill": "the switch of one network is killed, which removes its taps",
    "switch-restart": "the switch of one network is killed and restarted within seconds",
    "partition": "the link of one host is down for 1 to 30 s",
    "flap": "the link of one host goes down and up six times",
    "blackhole": "all frames from one host are lost for 1 to 30 s while its link is up",
    "sockets-kill": "the kernel destroys the TCP connections of one host, three times (ss -K)",
    "mtu-shrink": "the MTU of one host is lowered",
    "mtu-hole": "frames above the MTU of the network are lost for 1 to 30 s, without an ICMP message",
    "disorder": "the NICs drop packets, delay queue pairs and find receives not ready",
    "port-flap": "a NIC's port is down for 0.1 to 1 s",
    "port-down": "a NIC's port goes down for good",
    "device-lost": "a NIC is lost",
    "message-fail": "a message of a NIC's ends with IBV_WC_RETRY_EXC_ERR",
}
# Injected by options or environment when processes start. Counters and logs say whether the fault
# took effect.
BY_ENVIRONMENT = NICS + ("loss", "duplicate", "reorder", "corrupt")
ENDS_A_RANK = ("kill", "exit")
# The length of these is Plan.duration_s.
LASTING = ("stop", "switch-stop", "partition", "blackhole", "mtu-hole")
# The longest that the injection of other faults takes.
INJECTION_S = {"flap": 8.0, "sockets-kill": 4.0, "switch-restart": 4.0}


def faults_of(transport: str) -> tuple[str, ...]:
    out = ANYWHERE
    if transport in SWITCHED:
        out += NETWORK
    if transport.startswith("sockets"):
        out += HOSTS
    if transport in RDMA:
        out += NICS
    if transport in ("rdma", "rdma-tcp"):
        out += ("sockets-kill",)
    return out


@functools.cache
def pairs() -> tuple[tuple[str, str], ...]:
    return tuple((transport, fault) for transport in TRANSPORTS for fault in faults_of(transport))


@dataclasses.dataclass(frozen=True)
class Plan:
    """One job. Data moves for `before_s` before the fault and `after_s` after it."""
    seed: int
    transport: str
    fault: str
    expect: Expect
    ranks: int
    victim: int
    op: str
    size_kib: int
    tags: int
    mtu: int
    timers: Timers
    before_s: float
    duration_s: float
    after_s: float
    impairments: dict[str, float]
    nic_faults: str

    @property
    def is_merged(self) -> bool:
        return self.transport in MERGED

    @property
    def budget_s(self) -> float:
        """ztcp_perf's --time-budget. A job that must fail is given more, so that it does not finish before the fault."""
        lasts = self.duration_s + INJECTION_S.get(self.fault, 0.0)
        return 3 + self.before_s + lasts + (20 if self.expect is Expect.FAIL else self.after_s)

    @property
    def silence_s(self) -> float:
        """A connection to a peer that does not answer ends after this time."""
        tcp_s = self.timers.silence_s + self.timers.redial_window_s
        return max(RDMA_SILENCE_S, tcp_s) if self.transport in RDMA else tcp_s

    def bound_s(self, timeout_multiplier: float) -> float:
        """All ranks must have ended this long after the end of the fault."""
        deaths = 3 if self.fault == "mtu-hole" else 1  # Redialled flows meet the same hole.
        return self.after_s + self.silence_s * deaths + 30 * timeout_multiplier

    def detection_bound_s(self, timeout_multiplier: float) -> float:
        """The plugin must have reported a dead rank this long after its death."""
        return self.silence_s + 15 * timeout_multiplier

    def describe(self) -> str:
        words = [f"{self.ranks} ranks", self.op, f"{self.size_kib} KiB"]
        if self.tags > 1:
            words.append(f"{self.tags} tags")
        if self.fault in LASTING:
            words.append(f"{self.duration_s:g} s")
        if self.fault in ANYWHERE[1:] + HOSTS + NICS:
            words.append(f"at rank {self.victim}")
        words += [f"{kind} {share:g}%" for kind, share in self.impairments.items()]
        if self.nic_faults:
            words.append(self.nic_faults)
        if self.timers is SHORT_TIMERS:
            words.append("short timers")
        return ", ".join(words)


def survived_s(transport: str, fault: str, timers: Timers) -> float:
    """The longest outage of all paths that the documentation says a connection survives."""
    if transport == "sockets" and fault == "stop":  # The kernel of the stopped process answers.
        return math.inf
    if transport in RDMA:  # Silence of TCP ends nothing while an RDMA rail is left.
        return RDMA_SILENCE_S
    # A connection ends with its last rail: there is no redial window.
    if transport == "sockets-merged":
        return timers.silence_s
    return timers.silence_s + timers.redial_window_s


def expected(transport: str, fault: str, duration_s: float, timers: Timers) -> Expect:
    if fault in ENDS_A_RANK:
        return Expect.FAIL
    if fault == "stop":
        certain_s = CERTAIN_SHARE * survived_s(transport, fault, timers)
        return Expect.FINISH if duration_s <= certain_s else Expect.EITHER
    if transport in MERGED:
        return Expect.FINISH  # All other faults hit one rail of two.
    if fault in ("port-down", "device-lost", "message-fail", "switch-kill"):
        return Expect.FAIL
    # The tap is the host's interface: the restart of the switch removes the interface and its
    # address.
    if fault == "mtu-hole" or (fault == "switch-restart" and transport == "sockets"):
        return Expect.EITHER
    if fault in LASTING:
        certain_s = CERTAIN_SHARE * survived_s(transport, fault, timers)
        return Expect.FINISH if duration_s <= certain_s else Expect.EITHER
    return Expect.FINISH


def nic_faults(fault: str, size_kib: int, draw: random.Random) -> str:
    """The value of SOFT_NIC_FAULTS. Large messages are few in the time of a job."""
    at = draw.randrange(60, 250) if size_kib >= 256 else draw.randrange(500, 1500)
    return {
        "disorder": f"seed={draw.randrange(1000)},drop={draw.choice((60, 200))},rnr={draw.choice((10, 40))},delay=2000@5",
        "port-flap": f"down={at},up={draw.choice((100, 300, 1000))}",
        "port-down": f"down={at}",
        "device-lost": f"fatal={at}",
        "message-fail": f"fail=12@{at}",
    }.get(fault, "")


def impairments(transport: str, fault: str, draw: random.Random) -> dict[str, float]:
    """Options of ztcp_switch in percent: the fault itself, or sometimes mild impairments beside another fault."""
    if transport not in SWITCHED:
        return {}
    heavy = {"loss": (0.5, 1, 2, 5), "duplicate": (1, 5, 20), "reorder": (1, 5, 20), "corrupt": (0.1, 0.5, 2)}
    light = {"loss": (0.1, 0.5, 1), "duplicate": (1, 5), "reorder": (1, 5), "corrupt": (0.1, 0.3)}
    if fault in heavy:
        return {fault: draw.choice(heavy[fault])}
    # The MTU hole is proven by retransmissions, which must have no other cause.
    if fault in ("none", "mtu-hole") or draw.random() < 0.65:
        return {}
    return {kind: draw.choice(shares) for kind, shares in light.items() if draw.random() < 0.5}


def plan_of(seed: int) -> Plan:
    turn, place = divmod(seed, len(pairs()))
    order = list(pairs())
    random.Random(f"turn {turn}").shuffle(order)
    transport, fault = order[place]
    draw = random.Random(seed)
    timers = draw.choice((DEFAULT_TIMERS, SHORT_TIMERS))
    duration_s = draw.choice((1, 2, 4, 8, 15, 30)) if fault in LASTING else 0
    ranks = draw.choice((2, 2, 2, 3, 4))
    size_kib = draw.choice((4, 64, 256, 1024, 4096))
    if fault == "mtu-hole":  # Only full segments meet the hole.
        size_kib = max(size_kib, 256)
    return Plan(
        seed=seed, transport=transport, fault=fault,
        expect=expected(transport, fault, duration_s, timers),
        ranks=ranks, victim=draw.randrange(ranks),
        op=draw.choice(("all_reduce", "all_reduce", "all_to_all", "sendrecv")),
        size_kib=size_kib, tags=draw.choice((1, 1, 4)),
        mtu=draw.choice((1500, 9000)), timers=timers,
        before_s=round(draw.uniform(0, 2), 2), duration_s=duration_s, after_s=6,
        impairments=impairments(transport, fault, draw), nic_faults=nic_faults(fault, size_kib, draw))
