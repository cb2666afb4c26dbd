# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The networks that run compares: NCCL's library for each, its name there, and its environment."""
import argparse
import dataclasses
import os
import pathlib

from fabric import SETUP

# For every rank over any network: a separate host, on loopback, without RDMA and NVLink multicast.
COMMON = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV", "NCCL_IB_DISABLE": "1",
          "NCCL_NVLS_ENABLE": "0"}

SOFT_NIC = "tests/support/verbs/soft_nic/libibverbs.so.1"  # In a build folder.


def has_mps():
    """True if CUDA's multi-process service runs, which lets ranks compute on one GPU at the same
    time."""
    return pathlib.Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"), "control").exists()


@dataclasses.dataclass(frozen=True)
class Network:
    title: str
    nccl_net: str  # NCCL's name for it: "via NET/..." in its log.
    library: str = ""  # "": NCCL's own; "ztcp": from --build; else from --peer NAME=FILE.
    has_fabric: bool = False
    # RDMA devices of --build's own libibverbs.so.1: for correctness, not for speed.
    has_soft_nic: bool = False
    has_topk: bool = False  # With the wheel's hook for PyTorch (docs/topk.md).
    environment: dict = dataclasses.field(default_factory=dict)

    @property
    def carrier(self):
        """In NCCL's log where it uses this network."""
        return f"{'COLLNET' if 'ZTCP_COLLNET' in self.environment else 'NET'}/{self.nccl_net}"

    @property
    def changes_losses(self):
        return self.has_topk or "ZTCP_COLLNET_WIRE" in self.environment


def sockets(threads, each, channels=0):
    """Settings of NCCL's sockets, which FastSocket shares, for threads and sockets, and NCCL's
    channels."""
    wanted = {"NCCL_SOCKET_NTHREADS": str(threads), "NCCL_NSOCKS_PERTHREAD": str(each)}
    return wanted | ({"NCCL_MIN_NCHANNELS": str(channels)} if channels else {})


# All-reduce by ztcp's CollNet for the sizes for which ztcp's tuner offers it, and for all.
OFFERED = {"ZTCP_COLLNET": "1", "NCCL_COLLNET_ENABLE": "1"}
COLLNET = OFFERED | {"NCCL_ALGO": "allreduce:collnetchain"}
BF16 = {"ZTCP_COLLNET_WIRE": "bf16"}
FP8 = {"ZTCP_COLLNET_WIRE": "fp8"}


NETWORKS = {
    "ztcp": Network("ztcp, shared memory", "ztcp", "ztcp", has_fabric=True),
    "ztcp-sockets": Network("ztcp, kernel sockets", "ztcp", "ztcp", environment={"ZTCP_TRANSPORT": "sockets"}),
    "ztcp-collnet": Network("ztcp's CollNet, shared memory", "ztcp", "ztcp", has_fabric=True, environment=COLLNET),
    "ztcp-collnet-bf16": Network("ztcp's CollNet, sums as bf16, shared memory", "ztcp", "ztcp", has_fabric=True,
                                 environment=COLLNET | BF16),
    "ztcp-collnet-fp8": Network("ztcp's CollNet, sums as fp8, shared memory", "ztcp", "ztcp", has_fabric=True,
                                environment=COLLNET | FP8),
    "ztcp-sockets-collnet": Network("ztcp's CollNet, kernel sockets", "ztcp", "ztcp",
                                    environment={"ZTCP_TRANSPORT": "sockets"} | COLLNET),
    "ztcp-sockets-collnet-bf16": Network("ztcp's CollNet, sums as bf16, kernel sockets", "ztcp", "ztcp",
                                         environment={"ZTCP_TRANSPORT": "sockets"} | COLLNET | BF16),
    "ztcp-sockets-collnet-fp8": Network("ztcp's CollNet, sums as fp8, kernel sockets", "ztcp", "ztcp",
                                        environment={"ZTCP_TRANSPORT": "sockets"} | COLLNET | FP8),
    "ztcp-sockets-offered-bf16": Network("ztcp, kernel sockets, CollNet where offered, sums as bf16", "ztcp", "ztcp",
                                         environment={"ZTCP_TRANSPORT": "sockets"} | OFFERED | BF16),
    "ztcp-sockets-offered-fp8": Network("ztcp, kernel sockets, CollNet where offered, sums as fp8", "ztcp", "ztcp",
                                        environment={"ZTCP_TRANSPORT": "sockets"} | OFFERED | FP8),
    "ztcp-topk": Network("ztcp, top-k gradients, shared memory", "ztcp", "ztcp", has_fabric=True, has_topk=True),
    "ztcp-sockets-topk": Network("ztcp, top-k gradients, kernel sockets", "ztcp", "ztcp", has_topk=True,
                                 environment={"ZTCP_TRANSPORT": "sockets"}),
    # Without the statistics page and the monitor of slow messages, to measure their cost.
    "ztcp-nostats": Network("ztcp, shared memory, no statistics", "ztcp", "ztcp", has_fabric=True,
                            environment={"ZTCP_STATISTICS": "off"}),
    "ztcp-sockets-nostats": Network("ztcp, kernel sockets, no statistics", "ztcp", "ztcp",
                                    environment={"ZTCP_TRANSPORT": "sockets", "ZTCP_STATISTICS": "off"}),
    # Another build of ztcp, an earlier revision for example. It reads the config of this one.
    "ztcp-base": Network("another ztcp, shared memory", "ztcp", "base", has_fabric=True),
    "ztcp-base-sockets": Network("another ztcp, kernel sockets", "ztcp", "base",
                                 environment={"ZTCP_TRANSPORT": "sockets"}),
    "ztcp-verbs": Network("ztcp, software RDMA NICs", "ztcp", "ztcp", has_soft_nic=True,
                          environment={"ZTCP_TRANSPORT": "verbs", "NCCL_IB_DISABLE": "0"}),
    "socket-stock": Network("NCCL's sockets, stock", "Socket"),
    "socket-tuned": Network("NCCL's sockets, 4 x 4", "Socket", environment=sockets(4, 4)),
    "socket-2x2-16": Network("NCCL's sockets, 2 x 2, 16 channels", "Socket", environment=sockets(2, 2, 16)),
    "fastsocket": Network("FastSocket", "FastSocket", "fastsocket"),
    # FastSocket uses these numbers only where it does not choose RX queues; loopback has none.
    "fastsocket-4x4-8": Network("FastSocket, 4 x 4, 8 channels", "FastSocket", "fastsocket",
                                environment=sockets(4, 4, 8) | {"NCCL_FLOW_PLACEMENT_ENABLE": "0"}),
}


def library_folder(network, build, peers, folder):
    """The folder where NCCL finds libnccl-net.so, as users install it. (NCCL 2.28 forgets a path
    given by name when it loads the library again.)"""
    if network.library == "ztcp":
        return build / "plugin"
    place = pathlib.Path(folder) / network.library
    place.mkdir(exist_ok=True)
    link = place / "libnccl-net.so"
    if not link.is_symlink():
        link.symlink_to(peers[network.library])
    return place


def environment(network, rank, folder, build, peers, fabric):
    """The environment of one rank. `folder` is for logs and links; `fabric` the config of a local
    fabric, or None."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ZTCP_")}
    env.pop("NCCL_NET_PLUGIN", None)
    env.update(COMMON, NCCL_HOSTID=f"host{rank}", NCCL_NET=network.nccl_net, CUBLAS_WORKSPACE_CONFIG=":4096:8",
               PYTHONPATH=str(pathlib.Path(__file__).resolve().parent))
    if network.library:
        place = library_folder(network, build, peers, folder)
        env.update(NCCL_NET_PLUGIN_REF_COUNT="0", LD_LIBRARY_PATH=f"{place}:{env.get('LD_LIBRARY_PATH', '')}")
    else:
        env["NCCL_NET_PLUGIN"] = "none"
    if network.nccl_net == "ztcp":
        config = fabric if network.has_fabric else pathlib.Path(folder) / "no-config"
        env.update(ZTCP_CONFIG=str(config), ZTCP_LOCAL_RANK=str(rank), ZTCP_LOG=f"{folder}/rank{rank}.log")
    if network.has_soft_nic:
        env.update(LD_LIBRARY_PATH=f"{(build / SOFT_NIC).parent}:{env['LD_LIBRARY_PATH']}", SOFT_NIC_FOLDER=str(folder))
    return env | network.environment


def peer(text):
    """Parses NAME=FILE of a library that is not in --build."""
    name, _, file = text.partition("=")
    known = {n.library for n in NETWORKS.values()} - {"", "ztcp"}
    if name not in known or not pathlib.Path(file).is_file():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=FILE with a NAME of {', '.join(sorted(known))} and a file")
    return name, str(pathlib.Path(file).resolve())


def missing(names, build, peers):
    """A sentence that names a missing requirement of the networks; None: there is none."""
    for name in names:
        if name not in NETWORKS:
            return f"no network {name}: there are {', '.join(NETWORKS)}"
        library = NETWORKS[name].library
        if library not in ("", "ztcp", *peers):
            return f"{name} needs --peer {library}=FILE: see bench/README.md, \"A peer's library\""
    networks = [NETWORKS[name] for name in names]
    needed = [("plugin/libnccl-net.so", any(n.library == "ztcp" for n in networks)),
              (SOFT_NIC, any(n.has_soft_nic for n in networks)),
              (SETUP, any(n.has_fabric for n in networks))]
    for file, is_needed in needed:
        if is_needed and not (build / file).exists():
            return f"{build / file} does not exist: build first, or name the folder with --build"
    return None
