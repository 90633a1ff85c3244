"""Writes the hardware appendix, with every chip and NVSwitch, when the site is built.

The page's Markdown says ``{hardware} overview`` (or ``records``, ``switches``,
``disagreements``, ``sources``). Each word is replaced by HTML from the records, so the
page always agrees with them. ``hardware.js`` sorts and filters the overview, which also
reads well without it. Vendors and records are folds, with chips under their vendor. A
link to a fold, or the browser's search, opens it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from itertools import groupby
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from shardmath.base.facts import Fact, Source, Term, Unpublished, term
from shardmath.base.tables import MISSING, compare
from shardmath.base.units import GiB
from shardmath.hardware import chips
from shardmath.hardware.chips import Chip
from shardmath.hardware.networks import NVSWITCHES, NVSwitch, nvswitch
from shardmath.hardware.networks.switches import TERMS

from .facts import exact, printed

KINDS = ("vendor", "vendor-code", "paper", "secondary")  # closest to the maker first
ABSENT = (
    '<span aria-hidden="true">–</span>'
    '<span class="visually-hidden">not published</span>'
)
NONE = '<span aria-hidden="true">–</span><span class="visually-hidden">none</span>'


class fold(nodes.section):  # noqa: N801
    """A section that opens by its title, or by a link, because its `#id` is inside."""


def _open_fold(translator, node: fold) -> None:
    translator.section_level += 1
    translator.body.append(f'<details class="{" ".join(node["classes"])}"><summary>')


def _close_fold(translator, node: fold) -> None:
    translator.section_level -= 1
    translator.body.append("</div></details>\n")


def _anchor(what: Chip | NVSwitch | Source) -> str:
    if isinstance(what, Source):
        return nodes.make_id(f"source-{what.key}")
    return nodes.make_id(what.id)


def _link(to: Chip | NVSwitch | Source) -> str:
    text = to.title if isinstance(to, Source) else to.name
    return f'<a href="#{_anchor(to)}">{escape(text)}</a>'


def _table(name: str, header: Iterable[str], rows: Iterable[str]) -> str:
    """A table called `name`, in a box that scrolls sideways if necessary."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    body = "\n".join(rows)
    return (
        '<div class="pst-scrollable-table-container">'
        f'<table class="table" aria-label="{escape(name)}">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _row(first: str, *cells: str, attributes: str = "") -> str:
    rest = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr{attributes}><th scope="row">{first}</th>{rest}</tr>'


def _note(html: str) -> str:
    return f'<span class="sm-note">{html}</span>'


def _html(text: str, *classes: str) -> nodes.raw:
    return nodes.raw("", text, format="html", classes=list(classes))


def _precision(chip: Chip) -> str:
    """bf16, or fp16 if there is no bf16."""
    for precision in ("bf16", "fp16"):
        if precision in chip.flops:
            return precision
    raise Unpublished(f"{chip.name}: neither bf16 nor fp16 is published")


def _named(chip: Chip, value: float) -> float | tuple[float, str]:
    """`value`, followed by the precision if that is not bf16."""
    precision = _precision(chip)
    return value if precision == "bf16" else (value, precision)


# The columns of the overview: (heading, unit) → a function for the number in that unit.
COLUMNS = {
    ("bf16 peak", "TFLOPs/s"): lambda c: _named(c, c.flops[_precision(c)] / 1e12),
    ("fp8 peak", "TFLOPs/s"): lambda c: c.flops["fp8"] / 1e12,
    ("HBM", "GiB"): lambda c: c.hbm_bytes / GiB,
    ("HBM bandwidth", "TB/s"): lambda c: c.hbm_bandwidth / 1e12,
    ("Critical intensity", "FLOPs/byte"): lambda c: _named(
        c, c.intensity(_precision(c))
    ),
    ("Scale-up", "GB/s"): lambda c: c.scale_up_bandwidth / 1e9,
    ("Scale-out", "GB/s"): lambda c: c.scale_out_bandwidth / 1e9,
}
OVER_HBM = ("HBM", "HBM bandwidth", "Critical intensity")
FILTER = (
    '<p class="sm-filter" hidden><label>Filter by name, vendor or year '
    '<input type="search" autocomplete="off" spellcheck="false"></label> '
    '<span role="status"></span></p>'
)


def overview() -> list[nodes.Node]:
    """A row for each accelerator, and the field that filters them."""

    def absent(chip: Chip, column: int) -> str:
        heading, _ = list(COLUMNS)[column - 1]  # after the year
        return NONE if chip.without_hbm and heading in OVER_HBM else ABSENT

    def row(chip: Chip, cells: tuple[str, ...]) -> str:
        words = " ".join((chip.name, chip.vendor, str(chip.year), *chip.aliases))
        return _row(
            _link(chip),
            *(
                absent(chip, n) if cell == MISSING else escape(cell)
                for n, cell in enumerate(cells)
            ),
            attributes=f' data-words="{escape(words.lower())}"',
        )

    numbers = {name: (read, "", 4) for (name, _), read in COLUMNS.items()}
    shown = compare(chips.ALL, {"Year": "year"} | numbers)
    units = [f'{name}<br><span class="sm-unit">{unit}</span>' for name, unit in COLUMNS]
    rows = map(row, chips.ALL, shown.rows)
    table = _table("All accelerators", ("Chip", "Year", *units), rows)
    return [_html(FILTER + table, "sm-hardware")]


def records() -> list[nodes.Node]:
    """A fold for each vendor, containing a fold for each of its accelerators."""
    return [
        _fold(nodes.make_id(vendor), vendor, "sm-vendor", map(_record, group))
        for vendor, group in groupby(chips.ALL, key=lambda chip: chip.vendor)
    ]


def _fold(anchor: str, title: str, kind: str, content: Iterable[nodes.Node]) -> fold:
    inside = _html(f'</summary><div id="{anchor}">')
    return fold(
        "", nodes.title("", title), inside, *content, ids=[anchor], classes=[kind]
    )


def _record(chip: Chip) -> fold:
    """Every fact of `chip` with its source."""
    about = []
    if chip.aliases:
        about += [f"Also called {escape(', '.join(chip.aliases))}."]
    if "nvlink" in chip.facts:
        about += [f"Joined by {_link(nvswitch(chip))}."]
    about += [f"In code: <code>chips.{chip.id.upper()}</code>."]
    if chip.without_hbm:
        about += [f"It has no HBM: all of its memory is {escape(chip.onchip)}."]
    else:
        balance = ", ".join(f"{chip.intensity(p):.4g} in {p}" for p in chip.flops)
        about += [f"Critical intensity, in FLOPs per byte: {balance}."]
    return _facts(chip, about)


def switches() -> list[nodes.Node]:
    """A fold for each generation of NVSwitch."""
    return [*map(_switch, NVSWITCHES)]


def _switch(switch: NVSwitch) -> fold:
    """Every fact of `switch` with its source, and the chips that it joins."""
    joined = [c for c in chips.ALL if "nvlink" in c.facts and nvswitch(c) is switch]
    about = [f"Speaks NVLink {switch.nvlink}."]
    about += [f"Joins {', '.join(map(_link, joined))}."]
    if "ports" in switch.facts:
        each = printed(switch.port_bandwidth, "bytes/s")
        about += [f"One port, one-way: {each}."]
    if switch.aliases:
        about += [f"Also called {escape(', '.join(switch.aliases))}."]
    name = escape(switch.name)
    about += [f'In code: <code>networks.nvswitch("{name}")</code>.']
    return _facts(switch, about)


def _facts(record: Chip | NVSwitch, about: list[str]) -> fold:
    """A fold with the text `about`, and a row for each fact of `record`."""
    header = ("Fact", "Value", "Source")
    rows = (_fact(record, name, fact) for name, fact in record.facts.items())
    html = f"<p>{' '.join(about)}</p>\n{_table(record.name, header, rows)}"
    return _fold(_anchor(record), record.name, "sm-record", [_html(html)])


def _term(record: Chip | NVSwitch, name: str) -> Term:
    """The words and the unit of the fact `name` of a record."""
    if isinstance(record, NVSwitch):
        return TERMS[name]
    return term(name)._replace(words=record.words(name))


def _value(value: float | bool, unit: str) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else printed(value, unit)


def _fact(record: Chip | NVSwitch, name: str, fact: Fact) -> str:
    words, unit, _ = _term(record, name)
    value = str(fact.value) if name == "year" else _value(fact.value, unit)
    if unit and not value.startswith(exact(fact.value)):
        value += _note(exact(fact.value))
    source = _link(fact.source)
    if fact.note:
        source += _note(escape(fact.note))
    for other, its_source in fact.disagrees:
        source += _note(f"but {_value(other, unit)} in {_link(its_source)}")
    return _row(escape(words), value, source)


def _disputes() -> Iterator[tuple[float, Chip | NVSwitch, str, Fact, float, Source]]:
    """(ratio, record, name, fact, value, source) for each value that we don't take."""
    for record in (*chips.ALL, *NVSWITCHES):
        for name, fact in record.facts.items():
            for value, source in fact.disagrees:
                yield value / fact.value, record, name, fact, value, source


def disagreements() -> list[nodes.Node]:
    """All disagreements between sources, the largest first."""

    def row(ratio, record, name, fact, value, source) -> str:
        words, unit, _ = _term(record, name)
        ours = printed(fact.value, unit) + _note(_link(fact.source))
        theirs = printed(value, unit) + _note(_link(source))
        return _row(_link(record), escape(words), ours, theirs, f"{ratio:.4g}")

    header = ("Chip", "Fact", "This book takes", "Another prints", "Ratio")
    found = sorted(_disputes(), key=lambda dispute: -abs(math.log(dispute[0])))
    rows = (row(*dispute) for dispute in found)
    return [_html(_table("Disagreements", header, rows), "sm-disagreements")]


def sources() -> list[nodes.Node]:
    """All sources, with the chips' makers first, and how many values each provided."""
    of_switches = [fact for switch in NVSWITCHES for fact in switch.facts.values()]
    facts = [fact for chip in chips.ALL for fact in chip.facts.values()] + of_switches
    uses = Counter(fact.source.key for fact in facts)
    cited = chips.SOURCES | {
        source.key: source
        for fact in of_switches
        for source in (fact.source, *(other for _, other in fact.disagrees))
    }

    def row(source: Source) -> str:
        title = f'<a href="{escape(source.url)}">{escape(source.title)}</a>'
        title += _note(escape(urlsplit(source.url).netloc))
        cells = source.kind, source.read, str(uses[source.key])
        return _row(title, *cells, attributes=f' id="{_anchor(source)}"')

    by_kind = sorted(cited.values(), key=lambda s: (KINDS.index(s.kind), s.title))
    header = ("Source", "Kind", "Read on", "Values taken")
    return [_html(_table("Sources", header, map(row, by_kind)), "sm-sources")]


PARTS = {
    part.__name__: part
    for part in (overview, records, switches, disagreements, sources)
}


class Hardware(SphinxDirective):
    """``{hardware} overview`` inserts that part of the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        part = self.arguments[0]
        if part not in PARTS:
            raise self.error(f"hardware {part!r}: must be one of {', '.join(PARTS)}")
        # The page is rebuilt when a record changes.
        for table in ("hardware/chips.toml", "hardware/networks/networks.toml"):
            self.env.note_dependency(str(files("shardmath") / table))
        return PARTS[part]()


def _add_files(app, pagename, templatename, context, doctree) -> None:
    """Add the script and style to the page with the overview."""
    if doctree and any(
        "sm-hardware" in node["classes"] for node in doctree.findall(nodes.raw)
    ):
        app.add_css_file("hardware.css")
        app.add_js_file("hardware.js")


def setup(app) -> None:
    """Add the directive and its folds."""
    app.add_node(fold, html=(_open_fold, _close_fold))
    app.add_directive("hardware", Hardware)
    app.connect("html-page-context", _add_files)
