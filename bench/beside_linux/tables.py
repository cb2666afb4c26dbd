# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Medians over rounds, and the tables of them in Markdown. Pure."""
import statistics

LINUX = ("bbr", "cubic")


def medians(results, value):
    """{(cell, kinds): median} of the runs that have a value."""
    values = {}
    for task, result in results:
        if value(result) is not None:
            values.setdefault((task.cell, task.kinds), []).append(value(result))
    return {key: statistics.median(found) for key, found in values.items()}


def text(number, digits):
    return "-" if number is None else "never" if number == float("inf") else f"{number:.{digits}f}"


def alone(results):
    """Mb/s of each flow, and the ratio of ztcp's to Linux's BBR and CUBIC."""
    found = {(cell, str(kinds[0])): number for (cell, kinds), number in medians(results, lambda r: r["goodput_mbit"]).items()}
    cells = list(dict.fromkeys(task.cell for task, _ in results))
    names = list(dict.fromkeys(str(task.kinds[0]) for task, _ in results))
    ours = [name for name in names if name.startswith("ztcp:")]
    theirs = [f"linux:{control}" for control in LINUX if f"linux:{control}" in names]
    head = ["round trip, loss", *names, *(f"{our[5:]} / {their}" for our in ours for their in theirs)]
    rows = [[cell.title, *(text(found.get((cell, name)), 1) for name in names),
             *(text(ratio(found.get((cell, our)), found.get((cell, their))), 2) for our in ours for their in theirs)]
            for cell in sorted(cells, key=lambda c: (c.round_trip_ms, c.loss_percent))]
    return markdown(head, rows)


def ratio(of, to):
    return of / to if of is not None and to else None


def beside(results):
    columns = {"first": lambda r: r["goodput_mbit"][0], "newcomer": lambda r: r["goodput_mbit"][1], "jain": lambda r: r["jain"],
               "windows": lambda r: statistics.median(r["jain_windows"]) if r["jain_windows"] else None,
               "share": lambda r: float("inf") if r["time_to_share_s"] is None else r["time_to_share_s"]}
    found = {name: medians(results, value) for name, value in columns.items()}
    keys = sorted(found["first"], key=lambda key: (key[0].round_trip_ms, key[0].loss_percent))
    rows = [[cell.title, str(kinds[0]), str(kinds[1]),
             *(text(found[name].get((cell, kinds)), digits) for name, digits in
               (("first", 0), ("newcomer", 0), ("jain", 3), ("windows", 3), ("share", 2)))] for cell, kinds in keys]
    return markdown(["round trip, loss", "first", "newcomer", "first Mb/s", "newcomer Mb/s", "Jain", "Jain of 0.5 s",
                     "share after s"], rows)


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
