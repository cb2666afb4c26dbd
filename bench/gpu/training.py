# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Rates, tables and compared losses from the results of bench/gpu/train's ranks. Pure."""
import statistics

import spread

MODELS = {"resnet50": "ResNet-50, DDP", "transformer": "Transformer, DDP",
          "transformer-fsdp": "Transformer, FSDP"}
STOCK = "socket-stock"


def of_ranks(results):
    """One run: samples a second of all ranks for each window, the times of its steps, its losses.
    """
    windows = list(zip(*(result["windows"] for result in results), strict=True))
    samples = sum(result["batch"] for result in results)
    rates = [samples * window[0]["steps"] / max(one["seconds"] for one in window)
             for window in windows]
    step_ms = [time for window in windows
               for time in spread.slowest([one["step_ms"] for one in window])]
    losses = [statistics.fmean(step) for step in
              zip(*(result["losses"] for result in results), strict=True)]
    return {"samples_per_s": statistics.median(rates), "windows": rates, "step_ms": step_ms,
            "losses": losses, "cpu_s": sum(result["cpu_s"] for result in results),
            "start_s": max(result["start_s"] for result in results),
            "parameters": results[0]["parameters"], "batch": results[0]["batch"]}


def compare_losses(runs, tolerance):
    """Compares all runs of a model with its first one: the same seeds and data give the same losses,
    but over networks that round or leave out gradients."""
    good = [run for run in runs if not run["error"] and not run.get("changes_losses")]
    found = {"steps": 0, "runs": len(good), "largest": 0.0, "different": []}
    for run in good:
        reference = good[0]["losses"]
        found["steps"] = len(reference)
        for step, (loss, wanted) in enumerate(zip(run["losses"], reference, strict=True), 1):
            difference = abs(loss - wanted) / max(abs(wanted), 1e-30)
            if not difference <= tolerance:  # NaN counts as different, too.
                found["different"].append(
                    f"{run['model']} over {run['network']}, round {run['round']}, step {step}: loss "
                    f"{loss:.6g}, over {good[0]['network']} {wanted:.6g}")
                break
            found["largest"] = max(found["largest"], difference)
    return found


def losses_text(found, tolerance):
    if not found["steps"]:
        return "losses: none"
    first = f"losses of the first {found['steps']} steps"
    if found["different"]:
        return f"{first} DIFFER in {len(found['different'])} of {found['runs']} runs"
    if found["runs"] < 2:
        return f"{first}: one run alone, nothing to compare with"
    if found["largest"] == 0:
        return f"{first}: equal in all {found['runs']} runs"
    return (f"{first}: the same in all {found['runs']} runs but for {found['largest']:.1g} of them "
            f"(tolerance {tolerance:g})")


def loss_lines(runs):
    """The losses of each network's last run, at some of its steps."""
    lines = []
    for network in dict.fromkeys(run["network"] for run in runs):
        good = [run for run in runs if run["network"] == network and not run["error"]]
        if good:
            losses = good[-1]["losses"]
            steps = sorted({1 + round(part * (len(losses) - 1) / 5) for part in range(6)})
            lines.append(f"{good[-1]['title']}: " +
                         ", ".join(f"step {step} {losses[step - 1]:.4f}" for step in steps))
    return lines


def rows(runs):
    """One row for each network, in the order of their first runs."""
    found = []
    for network in dict.fromkeys(run["network"] for run in runs):
        mine = [run for run in runs if run["network"] == network]
        good = [run for run in mine if not run["error"]]
        row = {"network": network, "title": mine[0]["title"], "runs": len(mine),
               "failed": len(mine) - len(good)}
        if good:
            rates = [run["samples_per_s"] for run in good]
            row |= {"median": statistics.median(rates), "min": min(rates), "max": max(rates),
                    "cv": spread.variation(rates), "loss": good[-1]["losses"][-1],
                    "cpu_s": statistics.median(run["cpu_s"] for run in good),
                    "step_ms": spread.summarise([ms for run in good for ms in run["step_ms"]])}
        found.append(row)
    stock = next((row["median"] for row in found if row["network"] == STOCK and "median" in row), None)
    for row in found:
        row["of_stock"] = row["median"] / stock if stock and "median" in row else None
    return found


def number(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


HEADINGS = [("network", ""), ("median", "(/s)"), ("min", "(/s)"), ("max", "(/s)"), ("CV", "(%)"),
            ("x stock", ""), ("step p50", "(ms)"), ("p99", "(ms)"), ("max", "(ms)"), ("CPU", "(s)"),
            ("loss", ""), ("runs", "")]


def cells(row):
    count = str(row["runs"]) if not row["failed"] else f"{row['runs'] - row['failed']}/{row['runs']}"
    if "median" not in row:
        return [row["title"], *["-"] * (len(HEADINGS) - 2), count]
    step = row["step_ms"]
    return [row["title"], *(number(row[name]) for name in ("median", "min", "max")),
            number(row["cv"] * 100), number(row["of_stock"], 2),
            *(number(step[name]) for name in ("p50", "p99", "max")), number(row["cpu_s"]),
            number(row["loss"], 4), count]


def aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in
                                                   zip(line[1:], widths[1:]))]).rstrip()
            for line in lines]


def title(model, runs, ranks):
    known = next((run for run in runs if not run["error"]), None)
    of = f": {known['parameters'] / 1e6:.1f} M parameters, batch {known['batch']} a rank" if known else ""
    return f"{MODELS[model]}, {ranks} ranks{of}"


def table(model, runs, ranks):
    """Lines of text, at most 120 columns: samples a second over the rounds, then times of steps."""
    head = [[name for name, _ in HEADINGS], [unit for _, unit in HEADINGS]]
    return [title(model, runs, ranks) + "; samples a second of all ranks, then time of a step",
            *aligned(head + [cells(row) for row in rows(runs)])]


def markdown(model, runs, ranks):
    head = [f"{name} {unit}".strip() for name, unit in HEADINGS]
    lines = [f"**{title(model, runs, ranks)}**", "", "| " + " | ".join(head) + " |",
             "|---|" + "---:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(cells(row)) + " |" for row in rows(runs)]


def summary(by_model, ranks):
    """A row for each model, a column for each network, as Markdown: "median (min to max, CV)" of
    its runs."""
    tables = {model: rows(runs) for model, runs in by_model.items()}
    titles = list(dict.fromkeys(row["title"] for found in tables.values() for row in found))
    lines = [f"Samples a second of {ranks} ranks: median (min to max, coefficient of variation)", "",
             "| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for model, found in tables.items():
        of = {row["title"]: f"{row['median']:.0f} ({row['min']:.0f} to {row['max']:.0f}, "
                            f"{row['cv'] * 100:.1f} %)" for row in found if "median" in row}
        lines.append("| ".join([f"| {MODELS[model]} ", *(of.get(title, "-") + " " for title in titles)])
                     + "|")
    return lines


def progress(run):
    if run["error"]:
        return f"FAILED: {run['error'].splitlines()[0]}"
    step = spread.summarise(run["step_ms"])
    windows = " ".join(number(rate) for rate in run["windows"])
    return (f"{run['samples_per_s']:.1f} samples/s (windows {windows}), step p50 {step['p50']:.1f} "
            f"max {step['max']:.1f} ms, {run['wall_s']:.1f} s")
