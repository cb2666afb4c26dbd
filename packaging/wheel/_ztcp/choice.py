# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The environment variables with which NCCL uses ztcp on this host, each with its reason."""
import glob
import os
from dataclasses import dataclass, field
from importlib import metadata

DEFAULT_CONFIG = "/usr/local/tfabric/tools/config/ztcp.conf"
TRANSPORTS = ("sockets", "verbs", "ustack")
# NCCL takes a path in NCCL_NET_PLUGIN from here on, except in one release.
FIRST_WITH_PATH = (2, 21)
WITHOUT_PATH = ((2, 27, 3),)


@dataclass
class Choice:
    """`variables` are to be set; `notes` say why, a line each. `refused`: the user's variables
    choose another network, so nothing is to be set."""
    variables: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    refused: str = ""


def package_folder():
    return os.path.dirname(os.path.abspath(__file__))


def library_path():
    """The path of libnccl-net.so."""
    return os.path.join(package_folder(), "bin", "libnccl-net.so")


def config_path(environment):
    return environment.get("ZTCP_CONFIG") or DEFAULT_CONFIG


def active_rdma_ports(root="/sys/class/infiniband"):
    ports = []
    for path in sorted(glob.glob(f"{root}/*/ports/*/state")):
        try:
            with open(path, encoding="ascii") as file:
                if file.read().startswith("4:"):  # IB_PORT_ACTIVE
                    parts = path.split("/")
                    ports.append(f"{parts[-4]}/{parts[-2]}")
        except OSError:
            continue
    return ports


def installed_nccl():
    """The version of NCCL's wheel, as a tuple; None where NCCL was not installed as a wheel."""
    for cuda in (13, 12, 11):
        try:
            text = metadata.version(f"nvidia-nccl-cu{cuda}")
        except metadata.PackageNotFoundError:
            continue
        return tuple(int(part) for part in text.split(".") if part.isdigit())
    return None


def takes_path(nccl):
    return nccl is None or (nccl >= FIRST_WITH_PATH and nccl[:3] not in WITHOUT_PATH)


def choose(environment, transport=None, rdma_ports=None, nccl=None):
    """Decides from the environment and this host. Arguments other than `environment` replace facts
    of this host."""
    library = library_path()
    out = Choice()
    for name, ours in (("NCCL_NET_PLUGIN", ("ztcp", library)), ("NCCL_NET", ("ztcp",))):
        value = environment.get(name)
        # NCCL compares names without case.
        if value and value not in ours and value.lower() != "ztcp" and os.path.basename(value) != "libnccl-net.so":
            out.refused = f"{name}={value} chooses another network; unset {name}"
            return out

    nccl = nccl or installed_nccl()
    if environment.get("NCCL_NET_PLUGIN"):
        out.notes.append(f"NCCL_NET_PLUGIN={environment['NCCL_NET_PLUGIN']} is yours")
    elif takes_path(nccl):
        out.variables["NCCL_NET_PLUGIN"] = library
        out.notes.append("NCCL_NET_PLUGIN: the plugin of this package")
    else:
        folders = [os.path.dirname(library), environment.get("LD_LIBRARY_PATH", "")]
        out.variables["LD_LIBRARY_PATH"] = ":".join(f for f in folders if f)
        out.notes.append(f"LD_LIBRARY_PATH: NCCL {'.'.join(map(str, nccl))} takes no path in "
                         "NCCL_NET_PLUGIN")
    if environment.get("NCCL_NET"):
        out.notes.append("NCCL_NET=ztcp is yours")
    else:
        out.variables["NCCL_NET"] = "ztcp"
        out.notes.append("NCCL_NET: the job ends with the reason where ztcp can't start, instead "
                         "of going on without it")

    _choose_transport(environment, transport, rdma_ports, out)
    return out


def _choose_transport(environment, transport, rdma_ports, out):
    config = config_path(environment)
    if transport:
        out.variables["ZTCP_TRANSPORT"] = transport
        out.notes.append(f"ZTCP_TRANSPORT: --transport {transport}")
    elif environment.get("ZTCP_TRANSPORT"):
        out.notes.append(f"ZTCP_TRANSPORT={environment['ZTCP_TRANSPORT']} is yours")
    elif os.path.exists(config):
        out.notes.append(f"{config} chooses the transport")
    else:
        ports = active_rdma_ports() if rdma_ports is None else rdma_ports
        if ports:
            out.variables["ZTCP_TRANSPORT"] = "verbs"
            out.notes.append(f"ZTCP_TRANSPORT: RDMA, because {', '.join(ports)} is active and "
                             f"there is no {config}")
        else:
            out.variables["ZTCP_TRANSPORT"] = "sockets"
            out.notes.append("ZTCP_TRANSPORT: kernel sockets, because there is no RDMA port and "
                             f"no {config}")
