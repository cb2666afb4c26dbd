#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the layers: the folders that each folder may include (docs/architecture.md, "Layers").
Also that no catch-all swallows the end of a thread, which would abort the process.

usage: check_includes.py [ROOT]     exit 1 and a line per offence when a rule is broken
       check_includes.py --drawing  prints the layers from the table below, as the documents show them
       check_includes.py --users    lists headers with one user or none, besides their source and tests
"""
import pathlib
import re
import sys
import textwrap

# Folder -> folders whose files it may include, besides its own. A folder stands for its files, and
# for its subfolders that have no line of their own.
LAYERS = {
    "core": [],
    "transport/wire": ["core"],
    "transport/tcp": ["core", "transport/wire"],
    "transport/msg": ["core", "transport/stats"],
    "transport/reduce": ["core"],
    "transport/stats": ["core"],
    "transport/plan": ["core", "config", "config/machine"],
    "transport/link/xdp": ["core", "transport/wire", "hugepage"],
    "transport/link": ["core", "transport/wire", "transport/link/xdp", "hugepage"],
    "transport/watch": ["core"],
    "transport/comms/clients": ["core"],
    "transport/comms": ["transport", "core", "transport/stats", "transport/msg", "transport/watch", "transport/comms/clients", "config"],
    "transport/ustack/engine": ["core", "transport/stats", "transport/tcp", "transport/msg", "transport/link",
                                "transport/comms/clients"],
    "transport/ustack": ["transport", "core", "transport/stats", "transport/comms", "transport/link", "transport/plan",
                         "transport/tcp", "transport/ustack/engine", "hugepage", "config", "config/machine"],
    "transport/sockets/kernel": ["core", "config"],
    "transport/sockets": ["transport", "core", "transport/stats", "transport/sockets/kernel", "transport/comms", "transport/msg",
                          "transport/plan", "config", "config/machine"],
    "transport/verbs/session": ["transport", "core"],
    "transport/verbs": ["transport", "core", "transport/stats", "transport/verbs/session", "transport/comms", "transport/msg",
                        "transport/sockets/kernel", "config", "config/machine"],
    "transport": ["core"],
    "hugepage": ["core"],
    "config": ["core"],
    "config/file": ["core", "config", "config/machine"],
    "config/machine": ["core", "hugepage"],
    "config/check": ["core", "transport/plan", "hugepage", "config", "config/file", "config/machine"],
    "config/network": ["core", "config", "config/machine"],
    "config/topology": ["core", "config", "config/network", "config/machine"],
    "plugin": ["transport", "core", "transport/stats", "transport/reduce", "transport/ustack", "transport/sockets", "transport/sockets/kernel",
               "transport/verbs", "config", "config/file", "config/machine", "config/check"],
}
# Each folder of ztcp_setup -> other folders that it may include, besides those that all may.
SETUP_ROOMS = {
    "host": [],  # The interface. Only run/ knows the live host behind it.
    "live": ["host"],
    "resources": ["host"],
    "plan": ["host", "resources"],
    "check": ["host"],
    "local": [],
    "report": ["resources", "plan", "local"],
    "run": ["host", "live", "resources", "plan", "check", "local", "report"],
}
LAYERS["tools/common"] = ["core", "config", "config/file", "transport/msg"]
# Those that all of ztcp_setup may include.
FOR_SETUP = ["core", "transport/plan", "hugepage", "config", "config/file", "config/machine", "config/check",
             "config/network", "config/topology", "tools/common"]
LAYERS |= {f"tools/ztcp_setup/{room}": [*FOR_SETUP, *(f"tools/ztcp_setup/{other}" for other in others)]
           for room, others in SETUP_ROOMS.items()}
# This machine's XDP programs are attached by the link's own code.
LAYERS["tools/ztcp_setup/live"].append("transport/link/xdp")
# The command line, above these folders.
LAYERS["tools/ztcp_setup"] = [*FOR_SETUP, "tools/ztcp_setup/report", "tools/ztcp_setup/run"]
# Patterns of system headers -> the only folders or files that may include them.
CONFINED = [
    (r"rte_|ethdev_driver|bus_.*driver", ["transport/link", "hugepage", "tests/unit/link"]),
    (r"infiniband/", ["transport/verbs", "tests/support/verbs"]),
    (r"pcap/", ["tools/ztcp_stat/capture/filter.cc"]),
    (r"toml", ["config/file/table_reader.h"]),
    (r"hwloc", ["config/topology/topology.cc"]),
    (r"CLI/", ["tools", "bench"]),
    (r"nlohmann/", ["tools", "bench", "tests"]),
    (r"cuda", ["bench/gpu"]),
    (r"(iostream|cstdio|stdio\.h)", ["tools", "bench", "tests", "config", "hugepage", "transport/link"]),
]
# The pure folders: no clock, thread, lock, system call or text formatting.
PURE = ["transport/plan", "transport/wire", "transport/tcp", "transport/msg", "transport/reduce", "transport/ustack/engine",
        "transport/verbs/session",
        "transport/comms/suspects.h", "transport/comms/clients"]
IMPURE_HEADERS = (r"thread|mutex|condition_variable|shared_mutex|future|atomic|unistd\.h|sys/.*|pthread\.h|time\.h|"
                  r"ctime|fmt/.*|random|iostream|fstream")
IMPURE_CALLS = r"(steady_clock|system_clock|high_resolution_clock|clock_gettime|rdtsc|std::random_device|core/log\.h)"
# Timeouts and deadlines use the monotonic clock: a step of the machine's time (NTP, a resumed
# virtual machine) changes only the stamps of log lines, and the clocks that a probe compares.
WALL_CLOCK = (r"\b(CLOCK_REALTIME\w*|CLOCK_TAI|system_clock|gettimeofday|sem_timedwait|pthread_cond_timedwait|"
              r"pthread_mutex_timedlock|std::time|time\((?:nullptr|NULL|0)\))")
WALL_CLOCK_ALLOWED = ["core/log.cc", "transport/stats/page_writer.cc",
                      "tools/ztcp_perf/probe/wall_clock.cc"]
NCCL_NAMES = r"\bnccl[A-Z]\w*|ncclNetPlugin"
# pthread_exit() and pthread_cancel() unwind as an exception that must be rethrown.
CATCH_ALL = re.compile(r'catch\s*\(\s*\.\.\.\s*\)\s*\{')
LETS_THREADS_END = re.compile(r'catch\s*\(\s*(?:::)?abi::__forced_unwind\s*&\s*\)\s*\{\s*throw;\s*\}\s*$')
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def inside(path, places):
    return any(path == place or path.startswith(place + "/") for place in places)


def layer_of(path):
    fitting = [folder for folder in LAYERS if path.startswith(folder + "/")]
    return max(fitting, key=len, default=None)


def block_at(code, begin):
    """The text of a block; its opening brace ends before `begin`."""
    depth, at = 1, begin
    while at < len(code) and depth:
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        at += 1
    return code[begin:at]


def catches_thread_ends(text):
    code = re.sub(r"//.*", "", text)
    return any(not re.search(r"\bthrow;", block_at(code, found.end())) and
               not LETS_THREADS_END.search(code[:found.start()]) for found in CATCH_ALL.finditer(code))


def offences(root):
    for file in sorted(root.rglob("*")):
        path = file.relative_to(root).as_posix()
        if file.suffix not in (".h", ".cc", ".c") or not inside(
                path, ["plugin", "transport", "core", "hugepage", "config", "tools", "bench", "tests"]):
            continue
        text = file.read_text()
        layer = layer_of(path)
        if catches_thread_ends(text):
            yield path, "catch (...) without catch (abi::__forced_unwind&) { throw; } just before it"
        for kind, name in INCLUDE.findall(text):
            if kind == '"' and layer is not None:
                if "/" not in name:
                    yield path, f'includes "{name}" without its folder'
                elif layer_of(name) not in [layer, *LAYERS[layer]]:
                    yield path, f'{layer} must not include "{name}"'
            if kind == "<":
                for pattern, places in CONFINED:
                    if re.match(pattern, name) and not inside(path, places):
                        yield path, f"<{name}> belongs only in {', '.join(places)}"
        if inside(path, PURE):
            for kind, name in INCLUDE.findall(text):
                if kind == "<" and re.fullmatch(IMPURE_HEADERS, name):
                    yield path, f"<{name}> in a pure layer"
            for match in re.finditer(IMPURE_CALLS, text):
                yield path, f"{match.group(0)} in a pure layer"
        if inside(path, ["transport", "core", "hugepage", "config", "plugin"]) and path not in WALL_CLOCK_ALLOWED:
            for match in re.finditer(WALL_CLOCK, text):
                yield path, f"{match.group(0)}: the machine's adjustable clock; use the monotonic one"
        if inside(path, ["transport", "core", "hugepage", "config"]):
            code = re.sub(r"//.*|/\*.*?\*/|\"[^\"\n]*\"", "", text)
            for match in re.finditer(NCCL_NAMES, code):
                yield path, f"{match.group(0)}: NCCL's names stay in plugin/"


# The drawings: document -> the layers that it shows.
DRAWINGS = {
    "docs/architecture.md": [layer for layer in LAYERS if not layer.startswith("tools/")],
    "docs/setup.md": [layer for layer in LAYERS if layer.startswith("tools/ztcp_setup")],
}


def layers_below(layer):
    return {other for other in LAYERS[layer] if other in LAYERS}


def level_of(layer, above=()):
    """How high a layer stands: 0 includes no other. Two layers that include each other have no level."""
    if layer in above:
        sys.exit(f"layers include each other: {' -> '.join([*above, layer])}")
    return max((level_of(other, (*above, layer)) + 1 for other in layers_below(layer)), default=0)


def drawing(layers):
    """A line for each layer, the highest first: its level, its folder, the folders that it may include."""
    home = "tools/ztcp_setup/" if layers[0].startswith("tools/") else "transport/"

    def name(layer):
        if layer in ("transport", "tools/ztcp_setup"):
            return {"transport": "transport.h", "tools/ztcp_setup": "(command line)"}[layer]
        return layer.removeprefix(home)

    # Folders that every shown layer may include are listed once.
    common = set.intersection(*(layers_below(layer) for layer in layers))
    width = max(len(name(layer)) for layer in layers) + 2
    lines = [f"level  {'folder':{width}}may include"]
    for level, layer in sorted(((level_of(layer), layer) for layer in layers),
                               key=lambda pair: (-pair[0], layers.index(pair[1]))):
        below = [name(other) for other in LAYERS if other in layers_below(layer) - common]
        text = textwrap.wrap(", ".join(below) or "-", 98 - 7 - width)
        lines.append(f"{level:>5}  {name(layer):{width}}{text[0]}")
        lines += [" " * (7 + width) + more for more in text[1:]]
    if common:
        lines += textwrap.wrap("every one of them: " + ", ".join(name(other) for other in LAYERS if other in common), 98)
    return "```\n" + "\n".join(lines) + "\n```\n"


def wrong_drawings(root):
    for document, layers in DRAWINGS.items():
        path = root / document
        if path.exists() and drawing(layers) not in path.read_text():
            yield document, "does not show the layers as tools/check_includes.py --drawing prints them"


def headers_with_few_users(root):
    users = {}
    for file in [*root.rglob("*.h"), *root.rglob("*.cc")]:
        path = file.relative_to(root).as_posix()
        for kind, name in INCLUDE.findall(file.read_text()):
            if kind == '"' and not path.startswith("tests/") and path != name.removesuffix(".h") + ".cc":
                users.setdefault(name, []).append(path)
    for header in sorted(root.rglob("*.h")):
        path = header.relative_to(root).as_posix()
        if layer_of(path) is not None and len(users.get(path, [])) < 2:
            yield path, ", ".join(users.get(path, ["no user"]))


def main():
    if "--users" in sys.argv:
        for header, user in headers_with_few_users(pathlib.Path(".").resolve()):
            print(f"{header}: {user}")
        return 0
    if "--drawing" in sys.argv:
        for document, layers in DRAWINGS.items():
            print(f"{document}:\n{drawing(layers)}")
        return 0
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = sorted({*offences(root), *wrong_drawings(root)})
    for path, what in found:
        print(f"{path}: {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
