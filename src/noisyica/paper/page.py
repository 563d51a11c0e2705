"""Writes the result of an experiment as a Markdown page, a table (CSV) and figures (PNG)."""

from __future__ import annotations

import csv
import importlib
import io
import math
import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from noisyica.paper import NAMES, source
from noisyica.paper.common import Claim, Entry, Options, Picture, Reading, Result

QUICK = "This is a quick run: few repeats and iterations. The numbers of the full run differ."
ANEW = "sentences, tables and charts written anew"
"""What a page says of itself that was written anew by :func:`renew`."""
DPI = 110
LARGE, COLOURS = 190_000, 256
"""A PNG of more than so many bytes is reduced to so many colours."""


def write(name: str, result: Result, options: Options, folder: Path) -> list[Path]:
    """Write NAME.md, NAME.csv and a PNG for each figure into the folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = [_save(picture, folder / f"{name}-{picture.name}.png") for picture in result.pictures]
    table, page = folder / f"{name}.csv", folder / f"{name}.md"
    _write_table(result.entries, table)
    page.write_text(text(name, result, options), encoding="utf-8")
    return [page, table, *figures]


def text(name: str, result: Result, options: Options) -> str:
    """Return the text of the page."""
    parts = [f"# {result.title}", result.question, f"**Data.** {result.data}"]
    if options.quick:
        parts.append(QUICK)
    parts += ["## What we see", claims(result.claims), *result.notes]
    parts.append(
        f"## Tables\n\n{result.legend} Where the paper has this number too, it follows in "
        "brackets, and then the ratio of ours to the paper's."
    )
    parts.append(tables(result.entries))
    parts.append("## Figures")
    parts += [_figure(name, picture.name, picture.caption) for picture in result.pictures]
    parts.append("## How it was run\n\n" + _how_it_was_run(name, result, options))
    return "\n\n".join(parts) + "\n"


def _figure(name: str, of: str, caption: str) -> str:
    """Return a figure of a page, with its caption."""
    return f"![{caption}]({name}-{of}.png)\n\n*{caption}*"


def tables(entries: Sequence[Entry]) -> str:
    """Return all tables, each below its title."""
    parts = []
    for table in dict.fromkeys(entry.table for entry in entries):
        parts += [f"### {table}", markdown([e for e in entries if e.table == table])]
    return "\n\n".join(parts)


def claims(sentences: Sequence[Claim]) -> str:
    """Return the claims as a list.

    Each says first whether it agrees with the paper, or meets our own target, if there is either.
    """
    return "\n".join(f"- {verdict(claim)}{claim.text}" for claim in sentences)


def verdict(claim: Claim) -> str:
    """Return the words that stand before a claim."""
    if claim.holds is None:
        return ""
    if claim.target:
        return "**Meets our target.** " if claim.holds else "**Misses our target.** "
    return "**Agrees with the paper.** " if claim.holds else "**Does not agree with the paper.** "


def markdown(entries: Sequence[Entry]) -> str:
    """Return one table, with rows and columns in the order in which they first occur."""
    rows, columns = (
        list(dict.fromkeys(getattr(e, side) for e in entries)) for side in ("row", "column")
    )
    cells = {(e.row, e.column): cell(e) for e in entries}
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [
        f"| {row} | " + " | ".join(cells.get((row, column), "") for column in columns) + " |"
        for row in rows
    ]
    return "\n".join(lines)


def cell(entry: Entry) -> str:
    """Return the text of a cell, such as "0.0123 ± 0.0012 (paper 0.05; × 0.25)"."""
    shown = number(entry.ours)
    if math.isfinite(entry.spread):
        shown += f" ± {number(entry.spread, 2)}"
    if math.isfinite(entry.paper):
        shown += f" (paper {number(entry.paper)}; × {number(entry.ratio, 2)})"
    return shown


def number(value: float, digits: int = 3) -> str:
    """Return a number as people write it."""
    if not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    shown = f"{value:.{digits}g}"
    if "e" in shown:
        mantissa, exponent = shown.split("e")
        return f"{value:.0f}" if int(exponent) > 0 else f"{mantissa}e{int(exponent)}"
    return shown


def machine() -> str:
    """Return the number of cores, the processor, and the accelerator where JAX has one."""
    import jax

    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):  # not Linux, or a processor that does not say
        pass
    others = sorted(
        {str(device.device_kind) for device in jax.devices() if device.platform != "cpu"}
    )
    return ", ".join([f"{os.cpu_count()} cores", model, *others])


def duration(seconds: float) -> str:
    """Return a duration such as "2 h 5 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def _how_it_was_run(name: str, result: Result, options: Options) -> str:
    """Return the table with the command, the settings, the time, the machine and the versions."""
    flags = ["--quick"] if options.quick else []
    if options.data is not None:
        flags.append("--data PATH")  # pages are shared: they name no folder
    if options.repeats is not None:
        flags.append(f"--repeats {options.repeats}")
    if options.seed != 0:
        flags.append(f"--seed {options.seed}")
    versions = ", ".join(
        f"{package} {version(package)}"
        for package in ("noisyica", "jax", "numpy", "scipy", "scikit-learn")
    )
    rows = {
        "command": f"`{' '.join(['noisyica reproduce', name, *flags])}`",
        **{key: str(value) for key, value in result.settings.items()},
        "random seed": str(options.seed),
        "computing time": f"{duration(result.seconds)}, summed over all cases",
        "machine": machine(),
        "versions": f"{versions}, Python {platform.python_version()}",
        "code": f"{source.described()}; digest of the source files {source.digest()[:12]}",
    }
    return "| | |\n|---|---|\n" + "\n".join(f"| {key} | {value} |" for key, value in rows.items())


def _write_table(entries: Sequence[Entry], path: Path) -> None:
    """Write the entries as a CSV file; a number that is not there is an empty cell."""

    def shown(value: float) -> str:
        return f"{value:.6g}" if math.isfinite(value) else ""

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "row", "column", "ours", "spread", "paper", "ratio"])
        writer.writerows(
            [e.table, e.row, e.column, *map(shown, (e.ours, e.spread, e.paper, e.ratio))]
            for e in entries
        )


def read_table(path: Path) -> list[Entry]:
    """Read the entries of a CSV file that :func:`write` has written."""

    def value(shown: str) -> float:
        return float(shown) if shown else math.nan

    with path.open(newline="", encoding="utf-8") as file:
        return [
            Entry(
                line["table"],
                line["row"],
                line["column"],
                value(line["ours"]),
                value(line["spread"]),
                value(line["paper"]),
            )
            for line in csv.DictReader(file)
        ]


def renew(name: str, folder: Path) -> list[Path]:
    """Write a page anew from its table, without a run, and return what was written.

    Sentences, notes, tables and charts are written anew. The data, the pictures of what was
    learnt and how it was run stay as they are, and the page says of which code its sentences are.
    """
    page, entries = folder / f"{name}.md", read_table(folder / f"{name}.csv")
    text = page.read_text(encoding="utf-8")
    experiment = importlib.import_module(f"noisyica.paper.{name}")
    reading: Reading = experiment.read(entries, "stand-in" not in _data(text))
    seen = "\n\n".join([claims(reading.claims), *reading.notes])
    text = _between(text, "## What we see\n\n", "\n\n## Tables\n", seen)
    before, after = text.split("\n\n### ", 1)
    text = f"{before}\n\n{tables(entries)}\n\n## Figures\n{after.split('## Figures', 1)[1][1:]}"
    for chart in reading.charts:
        place = re.compile(rf"!\[[^]]*\]\({name}-{chart.name}\.png\)\n\n\*.*\*")
        figure = _figure(name, chart.name, chart.caption)
        text = place.sub(figure.replace("\\", r"\\"), text)
    anew = f"| {ANEW} | from the numbers of this run by {source.described()} |\n"
    text = re.sub(rf"\| {ANEW} \|.*\n", "", text) + anew
    page.write_text(text, encoding="utf-8")
    drawn = [_save(chart, folder / f"{name}-{chart.name}.png") for chart in reading.charts]
    return [page, *drawn]


def _between(text: str, start: str, end: str, new: str) -> str:
    """Return the text with what stands between two marks replaced."""
    before, rest = text.split(start, 1)
    return before + start + new + end + rest.split(end, 1)[1]


def _data(text: str) -> str:
    """Return what a page says of its data."""
    return text.split("**Data.** ", 1)[1].split("\n", 1)[0]


def _save(picture: Picture, path: Path) -> Path:
    """Write a figure as a PNG file, with fewer colours if it would be large."""
    from PIL import Image

    buffer = io.BytesIO()
    picture.figure.savefig(buffer, dpi=DPI, format="png")
    with Image.open(buffer) as image:
        opaque = image.convert("RGB")
        opaque.save(path, optimize=True)
        if path.stat().st_size > LARGE:
            opaque.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
    return path


def write_index(folder: Path) -> Path:
    """Write README.md, with the claims of all pages in the folder and links to the pages."""
    parts = [
        "# The paper's experiments",
        "What we see in each of them, with a link to its tables, figures and settings.",
    ]
    for name in NAMES:
        if (folder / f"{name}.md").is_file():
            page = (folder / f"{name}.md").read_text(encoding="utf-8")
            title = page.split("\n", 1)[0].removeprefix("# ")
            quick = "\n\n" + QUICK if QUICK in page else ""
            seen = page.split("## What we see\n\n", 1)[1].split("\n\n", 1)[0]
            parts.append(f"## [{title}]({name}.md)\n\n{_data(page)}{quick}\n\n{seen}")
    path = folder / "README.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path
