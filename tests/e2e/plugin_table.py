# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The plugin's v8 table through ctypes, and NCCL's kinds of memory: for processes that act as
NCCL's proxy."""
import ctypes
import os

SUCCESS = 0
HANDLE_BYTES = 128
PTR_HOST, PTR_CUDA = 1, 2

voidp, c_int, c_size_t = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
MEMBERS = (
    ("init", [voidp]),
    ("devices", [voidp]),
    ("getProperties", [c_int, voidp]),
    ("listen", [c_int, voidp, voidp]),
    ("connect", [c_int, voidp, voidp, voidp]),
    ("accept", [voidp, voidp, voidp]),
    ("regMr", [voidp, voidp, c_size_t, c_int, voidp]),
    ("regMrDmaBuf", [voidp, voidp, c_size_t, c_int, ctypes.c_uint64, c_int, voidp]),
    ("deregMr", [voidp, voidp]),
    ("isend", [voidp, voidp, c_int, c_int, voidp, voidp]),
    ("irecv", [voidp, c_int, voidp, voidp, voidp, voidp, voidp]),
    ("iflush", [voidp, c_int, voidp, voidp, voidp, voidp]),
    ("test", [voidp, voidp, voidp]),
    ("closeSend", [voidp]),
    ("closeRecv", [voidp]),
    ("closeListen", [voidp]),
    ("getDeviceMr", None),
    ("irecvConsumed", None),
)
LOGGER = ctypes.CFUNCTYPE(None, c_int, ctypes.c_ulong, ctypes.c_char_p, c_int, ctypes.c_char_p,
                          ctypes.c_char_p)
# Called as logger(level, flags, file, line, "%s", text), by the plugin's threads until the process
# ends: a logger must outlive the table that it came with.
LOGGERS = []


class PluginError(Exception):
    pass


class Table:
    def __init__(self, path):
        self.library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        words = (voidp * (1 + len(MEMBERS))).in_dll(self.library, "ncclNetPlugin_v8")
        for word, (name, arguments) in zip(words[1:], MEMBERS):
            if arguments is not None:
                setattr(self, "_" + name, ctypes.CFUNCTYPE(c_int, *arguments)(word))
        self.logger = LOGGER(lambda level, flags, file, line, form, text: say(
            "log " + (text or b"").decode(errors="replace")))
        LOGGERS.append(self.logger)

    def reloaded(self):
        """dlclose, as NCCL does when the last communicator is gone, and dlopen again."""
        close = ctypes.CDLL(None).dlclose
        close.argtypes = [voidp]
        close(self.library._handle)
        return Table(self.library._name)

    def call(self, name, *arguments):
        code = getattr(self, "_" + name)(*arguments)
        if code != SUCCESS:
            raise PluginError(f"{code} from {name}")


def say(text):
    print(text, flush=True)


def pattern(index, size):
    return bytes((index * 131 + i * 7 + 3) & 0xff for i in range(min(size, 4096)))


class Buffer:
    """Aligned memory with a marker of its message at both ends."""

    def __init__(self, size):
        self.size = size
        self.memory = ctypes.create_string_buffer(max(size, 1))
        self.address = ctypes.addressof(self.memory)
        # Posted memory outlives Python, as NCCL's pinned buffers do: the interpreter frees its own
        # before the process's destructors run, while a NIC may still write to it.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.memory))

    def fill(self, index):
        head = pattern(index, self.size)
        ctypes.memmove(self.address, head, len(head))
        ctypes.memmove(self.address + self.size - len(head), head, len(head))

    def holds(self, index):
        head = pattern(index, self.size)
        raw = self.memory.raw
        return (self.size <= 4096 or raw[:len(head)] == head) and \
            raw[self.size - len(head):self.size] == head


class GpuBuffer(Buffer):
    """Memory of a simulated GPU (tests/support/verbs/paper_gpu): only its driver reaches the bytes.
    """

    driver = None

    def __init__(self, size):
        super().__init__(size)
        if GpuBuffer.driver is None:
            GpuBuffer.driver = ctypes.CDLL(os.environ["E2E_PAPER_GPU"])
            GpuBuffer.driver.paper_gpu_alloc.restype = GpuBuffer.driver.paper_gpu_seen.restype = voidp
        # Not at the allocation's beginning, so that the offset matters.
        self.offset = 4096
        fd = c_int(-1)
        base = GpuBuffer.driver.paper_gpu_alloc(c_size_t(self.offset + size), ctypes.byref(fd))
        self.fd = fd.value
        self.address = base + self.offset
        self.seen = GpuBuffer.driver.paper_gpu_seen(voidp(self.address))

    def fill(self, index):
        head = pattern(index, self.size)
        ctypes.memmove(self.seen, head, len(head))
        ctypes.memmove(self.seen + self.size - len(head), head, len(head))

    def holds(self, index):
        ctypes.memmove(self.memory, self.seen, self.size)
        return super().holds(index)
