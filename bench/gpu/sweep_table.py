# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The table of a sweep: all ranks' rows together, as run prints them."""
import spread


def take_together(results):
    """Combines all ranks' times of single iterations in each row, "iteration_us": the slowest rank
    of an iteration counts, since a collective is done when all are."""
    for rows in zip(*(result["rows"] for result in results)):
        times = spread.slowest([row.pop("one_by_one_us") for row in rows])
        for row in rows:
            row["iteration_us"] = spread.summarise(times) | {"samples": len(times)} if times else None


COLUMNS = [("op", "", 14), ("bytes", "", 11), ("time", "us", 10), ("algbw", "GB/s", 8), ("busbw", "GB/s", 8),
           ("min", "us", 9), ("p50", "us", 9), ("p99", "us", 9), ("p99.9", "us", 9), ("max", "us", 9), ("CV", "%", 7),
           ("wrong", "", 6)]


def us_text(us):
    return "-" if us is None else f"{us:.{2 if us < 100 else 1 if us < 10_000 else 0}f}"


def sweep_line(cells):
    return "  " + cells[0].ljust(COLUMNS[0][2]) + "".join(
        cell.rjust(width) for cell, (_, _, width) in zip(cells[1:], COLUMNS[1:]))


def sweep_table(title, results):
    """Its text; also sums the ranks' wrong elements in each row of rank 0."""
    lines = [f"\n{title}\n  time and bandwidth: all iterations together; min to CV: iterations one by one",
             sweep_line([name for name, _, _ in COLUMNS]), sweep_line([unit for _, unit, _ in COLUMNS])]
    for index, row in enumerate(results[0]["rows"]):
        wrong = sum(r["rows"][index]["wrong"] for r in results)
        row["wrong"] = wrong
        found = row["iteration_us"] or dict.fromkeys(spread.FIELDS)
        lines.append(sweep_line(
            [row["op"], str(row["size_bytes"]), us_text(row["time_us"]), f"{row['algbw_gb_per_s']:.3f}",
             f"{row['busbw_gb_per_s']:.3f}", *(us_text(found[name]) for name in spread.FIELDS[:5]),
             "-" if found["cv"] is None else f"{found['cv'] * 100:.1f}", str(wrong)]))
    return "\n".join([*lines, f"  CPU seconds of all ranks: {sum(r['cpu_s'] for r in results):.1f}"])
