#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Several NICs as one device, RDMA and TCP among them: each carries its share, fails and comes
back."""
import json
import os
import re
import subprocess

from fabric import check, main, wait_until
from namespaces import enter, ip
from soft_fabric import (SHORT, SOCKET_NIC, SWEEP, TOLD_BOUND_S, VERBS_NIC, SoftFabric, by_config, done_count,
                         ends_with_error, gpu_streams, last_port, refused_at_both_ends, said, write_config)
from transfer import rows_are_right


ADDRESSES = ("10.68.0.1/24", "10.68.1.1/24")


def have_addresses():
    """Gives a host's NICs addresses in two networks."""
    enter()
    ip("link", "set", "lo", "up")
    for address in ADDRESSES:
        ip("address", "add", address, "dev", "lo")


def merge_two(fabric):
    write_config(fabric, *(VERBS_NIC.format(name=f"rail{i}", device=f"soft{i}", more='merge = "ib0"\n') for i in range(2)))


def both_carried(fabric):
    counted = fabric.counted()
    check(all(counted[f"sent_bytes_of_soft{i}"] > counted["sent_bytes"] / 4 for i in range(2)), f"one carried little: {counted}")


def merged():
    """One device of two NICs, in order and with everything reordered."""
    with SoftFabric() as fabric:
        merge_two(fabric)
        for faults in ("", "drop=80,rnr=10,delay=2000@5"):
            rows_are_right(fabric.run_perf("--op", "all_reduce", "--tags", "2", *SHORT,
                                           env=by_config(fabric, faults, SOFT_NIC_DEVICES="2", NCCL_IB_TIMEOUT="15")))
        both_carried(fabric)
        said(fabric, r"ib0: no connection is left; so far it sent \d+ messages \([1-9]\d+ bytes\), received \d+ messages \([1-9]\d+ bytes\); "
                     r"soft0 port 1 sent [1-9]\d+ bytes, received [1-9]\d+; soft1 port 1 sent [1-9]\d+ bytes, received [1-9]\d+")


def merged_gpu_memory():
    """Data that a NIC wrote becomes visible only after a read of the same NIC."""
    with SoftFabric() as fabric:
        merge_two(fabric)
        for peer in gpu_streams(fabric, receivers="hold", ZTCP_TRANSPORT="", SOFT_NIC_DEVICES="2"):
            check(peer.wait(60) == 0, f"{peer.name} failed:\n{peer.output()}")
        both_carried(fabric)


def merged_peers(fabric, faults, victim, *arguments, **more):
    """A receiver and a sender over two NICs, of which one of the victim's fails. The queue pairs'
    retry time is the default: delays of a peer's threads on a busy machine must not look like a
    failure of the other NIC."""
    merge_two(fabric)
    return [fabric.peer(role, "--size", "300000", *arguments, faults=faults if role == victim else "", ZTCP_TRANSPORT="",
                        SOFT_NIC_DEVICES="2", **more) for role in ("recv", "send")]


def rail_comes_back(victim):
    """A port goes down in mid-transfer and up again: the other NIC carries on, then both, on
    machines of any speed."""
    with SoftFabric() as fabric:
        peers = merged_peers(fabric, "down=300,up=100", victim)
        wait_until(lambda: "is back" in fabric.log() or not all(peer.running() for peer in peers), 40, "the rail being back")
        before = done_count(peers[0])
        wait_until(lambda: done_count(peers[0]) > before + 100 or not all(peer.running() for peer in peers), 30, "more messages")
        check(all(peer.running() for peer in peers), "a peer ended")
        said(fabric, r"ib0: the rail over soft\d port 1 has failed to .*: its port is down; messages go over the other 1 meanwhile",
             r"ib0: the rail over soft\d port 1 has failed to .*: the peer says so", r"ib0: the rail over soft\d port 1 to .* is back")


def rail_shown():
    """The statistics page shows the rail that is lost, and `ztcp_stat why` names it."""
    with SoftFabric() as fabric:
        env = {"XDG_RUNTIME_DIR": fabric.folder}
        sender = merged_peers(fabric, "down=300", "send", **env)[1]

        def stat(*arguments):
            return subprocess.run([os.environ["E2E_STAT"], *arguments, "--config", fabric.config], env={**os.environ, **env},
                                  capture_output=True, text=True, timeout=30, check=False).stdout

        def shown():
            text = stat("--once", "--json")  # Empty as long as there is no page.
            pages = [page for page in json.loads(text)["processes"] if page["pid"] == sender.pid] if text else []
            return pages[0] if pages else {"flows": []}

        wait_until(lambda: any(flow["failures"] > flow["recoveries"] for flow in shown()["flows"]), 40, "the lost rail")
        page = shown()
        check([flow["local"] for flow in page["flows"]] == ["soft0 port 1", "soft1 port 1"], page["flows"])
        check(all(flow["sent_bytes"] > 0 for flow in page["flows"]), f"a rail carried nothing: {page['flows']}")
        check({connection["peer"].split(":")[0] for connection in page["connections"]} == {"127.0.0.1"}, page["connections"])
        counters = page["lanes"][0]["counters"]
        check(counters["lost_rails"] > 0 and counters["completions"] > 0 and counters["sent_messages"] > 0, counters)
        told = stat("why")
        check(re.search(r"has lost the rail over soft\d port 1 to soft\d ", told), f"`why` does not name it:\n{told}")


def rail_back():
    rail_comes_back("send")


def receivers_rail_back():
    """The receiver asks for the rail once its port is up, and the sender offers it."""
    rail_comes_back("recv")


def rail_lost():
    """A device dies, or a message fails: the rest goes over the other."""
    for faults, victim in (("fatal=300", "send"), ("fatal=300", "recv"), ("fail=12@300", "send")):
        with SoftFabric() as fabric:
            for peer in merged_peers(fabric, faults, victim, "--count", "1500"):
                check(peer.wait(90) == 0, f"{peer.name} failed:\n{peer.output()}")
            fabric.counted()
            said(fabric, r"ib0: the rail over soft\d port 1 has failed")


def first_path_ends(victim, *arguments, how=lambda: None, said_of_it=()):
    """The NICs have their own addresses: the path that the connection was negotiated over ends in
    mid-transfer; then a NIC fails and comes back, and the ends exchange that over the other
    address."""
    with SoftFabric() as fabric:
        nics = [VERBS_NIC.replace("127.0.0.1/8", address).format(name=f"rail{i}", device=f"soft{i}", more='merge = "ib0"\n')
                for i, address in enumerate(ADDRESSES)]
        first = write_config(fabric, *nics)[0]
        with open(fabric.config, "a", encoding="utf-8") as config:
            config.write("[tcp]\nuser_timeout_ms = 2000\nkeepalive_idle_ms = 500\nkeepalive_interval_ms = 300\n")
        cut = [word.format(first=first, last=last_port(first)) for word in arguments]
        peers = [fabric.peer(role, "--size", "300000", *(cut if role == victim else []), ZTCP_TRANSPORT="", SOFT_NIC_DEVICES="2",
                             faults="down=3000,up=100" if role == "send" else "") for role in ("recv", "send")]

        def goes_on(what, done):
            wait_until(lambda: done() or not all(peer.running() for peer in peers), 60, what)
            check(all(peer.running() for peer in peers), f"a peer ended before {what}")
        goes_on("messages", lambda: done_count(peers[0]) > 60)
        how()
        goes_on("the path's end", lambda: all(re.search(what, fabric.log()) for what in said_of_it))
        goes_on("the rail being back", lambda: "is back" in fabric.log())
        before = done_count(peers[0])
        goes_on("more messages", lambda: done_count(peers[0]) > before + 100)
        said(fabric, r"ib0: the rail over soft\d port 1 has failed to .*: the peer says so", r"ib0: the rail over soft\d port 1 to .* is back")


def path_cut():
    """The path is cut at either end, as a firewall between may do."""
    have_addresses()
    for victim in ("send", "recv"):
        first_path_ends(victim, "--cut-watches-after", "50", "--cut-ports", "{first}", "{last}")


def path_silent():
    """The link of the first NIC carries nothing any more, for longer than user_timeout_ms."""
    have_addresses()
    first_path_ends(None, how=lambda: ip("address", "del", ADDRESSES[0], "dev", "lo"),
                    said_of_it=[r"ib0: no path over soft0 port 1 to .*; 1 other serves"])


def merge_tcp(fabric):
    """Merges an RDMA device and the kernel's TCP. Returns the first port of the latter."""
    return write_config(fabric, VERBS_NIC.format(name="rail0", device="soft0", more='merge = "ib0"\nspeed_mbps = 10000\n'),
                        SOCKET_NIC + 'merge = "ib0"\nspeed_mbps = 40000\n')[1]


def bytes_by_tcp(fabric, sent_bytes):
    """The sent bytes that the software NICs did not carry."""
    counted = fabric.counted()
    check(counted["sent_bytes"] > 0, f"RDMA carried nothing: {counted}")
    return sent_bytes - counted["sent_bytes"]


def tcp_merged():
    """One device of RDMA and TCP: every size, groups, and with everything reordered."""
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        rows_are_right(fabric.run_perf("--op", "all_reduce", *SWEEP, env=by_config(fabric)))
        rows_are_right(fabric.run_perf("--op", "all_to_all", "--tags", "4", *SHORT,
                                       env=by_config(fabric, "drop=80,rnr=10,delay=2000@5", NCCL_IB_TIMEOUT="15")))
        said(fabric, r"ib0: RDMA verbs and TCP over 2 rails that .*ztcp\.conf merges: soft0 port 1, .*; TCP, of host memory alone, on lo 127")
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        for peer in [fabric.peer(role, "--size", "4000000", "--count", "200", ZTCP_TRANSPORT="") for role in ("recv", "send")]:
            check(peer.wait(90) == 0, f"{peer.name} failed:\n{peer.output()}")
        by_tcp = bytes_by_tcp(fabric, 200 * 4000000)
        check(by_tcp > 10 * 4000000, f"TCP carried {by_tcp} bytes")


def tcp_merged_gpu_memory():
    """No GPU memory goes over TCP."""
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        for peer in gpu_streams(fabric, receivers="hold", ZTCP_TRANSPORT=""):
            check(peer.wait(60) == 0, f"{peer.name} failed:\n{peer.output()}")
        check(fabric.counted()["gpu_written_bytes"] == 300 * 300000, f"not all of it: {fabric.counted()}")


def tcp_rail_cut():
    """The stream is cut twice, at either end, and dialled again."""
    for victim in ("send", "recv"):
        with SoftFabric() as fabric:
            first = merge_tcp(fabric)
            cut = ["--cut-watches-after", "50", "--cut-ports", str(first), str(last_port(first))]
            peers = [fabric.peer(role, "--size", "1000000", *(cut if role == victim else []), ZTCP_TRANSPORT="") for role in ("recv", "send")]
            wait_until(lambda: "is back" in fabric.log() or not all(peer.running() for peer in peers), 40, "the rail being back")
            before = done_count(peers[0])
            wait_until(lambda: done_count(peers[0]) > before + 50 or not all(peer.running() for peer in peers), 30, "more messages")
            check(all(peer.running() for peer in peers), "a peer ended")
            said(fabric, r"ib0: the rail over TCP on lo has failed to .*; messages go over the other 1 meanwhile", r"ib0: the rail over TCP on lo to .* is back")


def tcp_carries_on():
    """The RDMA NIC's port goes down and up again: TCP carries on, then both. GPU memory has no
    other rail."""
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        peers = [fabric.peer(role, "--size", "300000", faults="down=300,up=100" if role == "send" else "", ZTCP_TRANSPORT="")
                 for role in ("recv", "send")]
        wait_until(lambda: "is back" in fabric.log() or not all(peer.running() for peer in peers), 40, "the rail being back")
        before = done_count(peers[0])
        wait_until(lambda: done_count(peers[0]) > before + 100 or not all(peer.running() for peer in peers), 30, "more messages")
        check(all(peer.running() for peer in peers), "a peer ended")
        said(fabric, r"ib0: the rail over soft0 port 1 has failed to .*: its port is down; messages go over the other 1 meanwhile",
             r"ib0: the rail over soft0 port 1 to .* is back")
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        receiver, sender = gpu_streams(fabric, senders="down=300", ZTCP_TRANSPORT="")
        ends_with_error(sender, 30)
        ends_with_error(receiver, TOLD_BOUND_S)
        said(fabric, r"sending to .* failed: .*GPU memory with no RDMA rail left: TCP carries host memory alone.*NCCL_NET_GDR_LEVEL=LOC")


def without_rdma():
    """The RDMA device of one host is gone: its connections go over TCP, and a line says so."""
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        receiver = fabric.peer("recv", "--size", "300000", "--count", "300", ZTCP_TRANSPORT="")
        sender = fabric.peer("send", "--size", "300000", "--count", "300", ZTCP_TRANSPORT="", NCCL_IB_DISABLE="1")
        for peer in (receiver, sender):
            check(peer.wait(60) == 0, f"{peer.name} failed:\n{peer.output()}")
        said(fabric, r"ib0: goes without rail0, over the rest of its rails alone: NCCL_IB_DISABLE=1 forbids")


def host_without_rdma():
    """A host's config names an RDMA device that it lacks, merged with TCP: all traffic goes over
    TCP. Where its TCP is a separate device, the connection is refused with the reason at both ends.
    """
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        lacking = os.path.join(fabric.folder, "lacking.conf")
        write_config(fabric, VERBS_NIC.format(name="rail0", device="soft7", more='merge = "ib0"\n'), SOCKET_NIC + 'merge = "ib0"\n',
                     path=lacking)
        for rank in fabric.start_ranks("--op", "all_reduce", *SHORT, configs={1: lacking}, env=by_config(fabric)):
            check(rank.wait(100) == 0, f"{rank.name} failed:\n{rank.output()[-2000:]}")
        check(fabric.counted()["sent_bytes"] == 0, f"RDMA carried something: {fabric.counted()}")
        said(fabric, "ib0: goes without rail0, over the rest of its rails alone: no RDMA device soft7 is here; this host has soft0")
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        refused_at_both_ends(fabric, "ib0", carries="RDMA verbs and TCP")


if __name__ == "__main__":
    main({f.__name__: f for f in (merged, merged_gpu_memory, rail_shown, rail_back, receivers_rail_back, rail_lost, path_cut, path_silent,
                                  tcp_merged, tcp_merged_gpu_memory, tcp_rail_cut, tcp_carries_on,
                                  without_rdma, host_without_rdma)})
