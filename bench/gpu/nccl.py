# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The part of NCCL that the benchmark needs, through ctypes, with errors as exceptions."""
import ctypes
import glob
import os
import sysconfig

FLOAT32 = 7
SUM = 0
IN_PROGRESS = 7
SHRINK_ABORT = 1  # ncclCommShrink ends the parent's operations first.
RESULTS = {0: "success", 1: "unhandled CUDA error", 2: "system error", 3: "internal error",
           4: "invalid argument", 5: "invalid usage", 6: "remote error", 7: "in progress"}


class NcclError(RuntimeError):
    def __init__(self, call, code):
        super().__init__(f"{call}: {RESULTS.get(code, code)}")
        self.code = code


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


class Config(ctypes.Structure):
    """ncclConfig_t of NCCL 2.14, which all later ones read."""
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("blocking", ctypes.c_int)]

    @classmethod
    def nonblocking(cls):
        return cls(ctypes.sizeof(cls), 0xCAFEBEEF, 21400, 0)


def find_library():
    """The NCCL of PyTorch's wheels, or the system's."""
    site = sysconfig.get_paths()["purelib"]
    found = glob.glob(os.path.join(site, "nvidia", "nccl", "lib", "libnccl.so.2"))
    return found[0] if found else "libnccl.so.2"


class Nccl:
    def __init__(self, library=""):
        """`library`: another file than find_library()'s."""
        self.library = ctypes.CDLL(library or find_library())

    def has(self, call):
        return hasattr(self.library, call)

    def version(self):
        value = ctypes.c_int()
        self._call("ncclGetVersion", ctypes.byref(value))
        return f"{value.value // 10000}.{value.value // 100 % 100}.{value.value % 100}"

    def unique_id(self):
        identity = UniqueId()
        self._call("ncclGetUniqueId", ctypes.byref(identity))
        return bytes(identity)

    def init(self, ranks, identity, rank):
        comm = ctypes.c_void_p()
        self._call("ncclCommInitRank", ctypes.byref(comm), ctypes.c_int(ranks),
                   UniqueId.from_buffer_copy(identity), ctypes.c_int(rank))
        return comm

    def init_nonblocking(self, ranks, identity, rank):
        """The communicator, which is in progress."""
        comm, config = ctypes.c_void_p(), Config.nonblocking()
        self._call("ncclCommInitRankConfig", ctypes.byref(comm), ctypes.c_int(ranks),
                   UniqueId.from_buffer_copy(identity), ctypes.c_int(rank), ctypes.byref(config))
        return comm

    def init_all(self, gpus):
        """A communicator for each GPU of this process."""
        comms = (ctypes.c_void_p * gpus)()
        self._call("ncclCommInitAll", comms, ctypes.c_int(gpus), (ctypes.c_int * gpus)(*range(gpus)))
        return [ctypes.c_void_p(comm) for comm in comms]

    def split(self, comm, color, key):
        child = ctypes.c_void_p()
        self._call("ncclCommSplit", comm, ctypes.c_int(color), ctypes.c_int(key), ctypes.byref(child), None)
        return child

    def shrink(self, comm, without, flags=0):
        child, excluded = ctypes.c_void_p(), (ctypes.c_int * len(without))(*without)
        self._call("ncclCommShrink", comm, excluded, ctypes.c_int(len(without)), ctypes.byref(child), None,
                   ctypes.c_int(flags))
        return child

    def unique_id_of(self, comm):
        """For ncclCommGrow."""
        identity = UniqueId()
        self._call("ncclCommGetUniqueId", comm, ctypes.byref(identity))
        return bytes(identity)

    def grow(self, comm, ranks, identity, rank):
        """`identity`: of rank 0 and of new ranks, else None; `rank`: of new ranks, else -1."""
        larger = ctypes.c_void_p()
        known = ctypes.byref(UniqueId.from_buffer_copy(identity)) if identity else None
        self._call("ncclCommGrow", comm, ctypes.c_int(ranks), known, ctypes.c_int(rank), ctypes.byref(larger), None)
        return larger

    def revoke(self, comm):
        self._call("ncclCommRevoke", comm, ctypes.c_int(0))

    def finalize(self, comm):
        self._call("ncclCommFinalize", comm)

    def destroy(self, comm):
        self._call("ncclCommDestroy", comm)

    def abort(self, comm):
        self._call("ncclCommAbort", comm)

    def async_error(self, comm):
        state = ctypes.c_int()
        self._call("ncclCommGetAsyncError", comm, ctypes.byref(state))
        return state.value

    def register(self, comm, address, size_bytes):
        handle = ctypes.c_void_p()
        self._call("ncclCommRegister", comm, ctypes.c_void_p(address), ctypes.c_size_t(size_bytes), ctypes.byref(handle))
        return handle

    def deregister(self, comm, handle):
        self._call("ncclCommDeregister", comm, handle)

    def all_reduce(self, comm, source, target, count, stream):
        self._call("ncclAllReduce", ctypes.c_void_p(source), ctypes.c_void_p(target),
                   ctypes.c_size_t(count), FLOAT32, SUM, comm, ctypes.c_void_p(stream))

    def all_gather(self, comm, source, target, count, stream):
        """`count` elements of each rank."""
        self._call("ncclAllGather", ctypes.c_void_p(source), ctypes.c_void_p(target), ctypes.c_size_t(count), FLOAT32,
                   comm, ctypes.c_void_p(stream))

    def reduce_scatter(self, comm, source, target, count, stream):
        """`count` elements for each rank."""
        self._call("ncclReduceScatter", ctypes.c_void_p(source), ctypes.c_void_p(target), ctypes.c_size_t(count),
                   FLOAT32, SUM, comm, ctypes.c_void_p(stream))

    def broadcast(self, comm, source, target, count, root, stream):
        self._call("ncclBroadcast", ctypes.c_void_p(source), ctypes.c_void_p(target), ctypes.c_size_t(count), FLOAT32,
                   root, comm, ctypes.c_void_p(stream))

    def reduce(self, comm, source, target, count, root, stream):
        self._call("ncclReduce", ctypes.c_void_p(source), ctypes.c_void_p(target), ctypes.c_size_t(count), FLOAT32, SUM,
                   root, comm, ctypes.c_void_p(stream))

    def send(self, comm, source, count, peer, stream):
        self._call("ncclSend", ctypes.c_void_p(source), ctypes.c_size_t(count), FLOAT32, peer, comm,
                   ctypes.c_void_p(stream))

    def receive(self, comm, target, count, peer, stream):
        self._call("ncclRecv", ctypes.c_void_p(target), ctypes.c_size_t(count), FLOAT32, peer, comm,
                   ctypes.c_void_p(stream))

    def group(self):
        return Group(self)

    def _call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code not in (0, IN_PROGRESS):
            raise NcclError(name, code)


class Group:
    def __init__(self, nccl):
        self.nccl = nccl

    def __enter__(self):
        self.nccl._call("ncclGroupStart")

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.nccl._call("ncclGroupEnd")
