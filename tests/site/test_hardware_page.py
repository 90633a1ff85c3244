"""The hardware appendix holds every fact of every record, and nothing typed."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from docutils import nodes

from shardmath.base.facts import term
from shardmath.base.units import show
from shardmath.hardware import chips
from shardmath.hardware.networks import NVSWITCHES, nvswitch
from shardmath.hardware.networks.switches import TERMS
from shardmath_site import facts, hardware

PAGE = Path(__file__).parents[2] / "book" / "hardware.md"
EVERY_CHIP = pytest.mark.parametrize("chip", chips.ALL, ids=lambda chip: chip.id)
RECORDS = (*chips.ALL, *NVSWITCHES)
DISPUTES = [
    (record, name, fact, value, source)
    for record in RECORDS
    for name, fact in record.facts.items()
    for value, source in fact.disagrees
]


def soup(parts) -> BeautifulSoup:
    """The HTML that `parts` of the page hold."""
    raws = (raw.astext() for part in parts for raw in part.findall(nodes.raw))
    return BeautifulSoup("".join(raws), "html.parser")


def rows(part) -> list:
    return soup(part).select("tbody tr")


def section(chip) -> nodes.section:
    """The section that the overview's link to `chip` leads to."""
    [link] = [a for a in soup(hardware.overview())("a") if a.text == chip.name]
    vendors = (found for part in hardware.records() for found in part.children)
    [found] = [s for s in vendors if f"#{(s.get('ids') or [''])[0]}" == link["href"]]
    return found


def section_of(switch) -> nodes.section:
    """The section of an NVSwitch; the record of each chip that it joins leads there."""
    [found] = [
        s for s in hardware.switches() if s["ids"] == [switch.id.replace("_", "-")]
    ]
    return found


def said(record, name):
    """What the fact `name` of a chip or switch is called, its unit, its section."""
    if record in NVSWITCHES:
        return TERMS[name].words, TERMS[name].unit, section_of(record)
    return record.words(name), term(name).unit, section(record)


def number(text) -> float:
    return float(text.replace(",", ""))


SOURCES = {row["id"]: row for row in rows(hardware.sources())}


def is_link_to(source, link) -> bool:
    """Does `link` lead to the entry of `source` in the list, and say its title?"""
    entry = SOURCES[link["href"].removeprefix("#")]
    return link.text == source.title and entry.a["href"] == source.url


@EVERY_CHIP
def test_every_fact_stands_with_its_value_source_and_note(chip):
    """A row for each fact; the value in full, its source a link, its note beside."""
    found = section(chip)
    assert found.next_node(nodes.title).astext() == chip.name
    table = rows([found])
    assert len(table) == len(chip.facts)
    for row, fact in zip(table, chip.facts.values(), strict=True):
        _, value, source = row(["th", "td"])
        in_full = value.span or value
        assert number(in_full.text.split()[0]) == fact.value
        assert is_link_to(fact.source, source.a)
        notes = [note.text for note in source(class_="sm-note")]
        assert notes[: bool(fact.note)] == [fact.note] * bool(fact.note)
        assert len(notes) == bool(fact.note) + len(fact.disagrees)


def test_records_are_folded_under_their_vendor():
    """A fold in a fold, closed; the place that links lead to is inside."""
    vendors = hardware.records()
    titles = [vendor.next_node(nodes.title).astext() for vendor in vendors]
    assert titles == list(dict.fromkeys(chip.vendor for chip in chips.ALL))
    for chip in chips.ALL:
        record = section(chip)
        assert isinstance(record, hardware.fold)
        assert isinstance(record.parent, hardware.fold)
        assert record.parent[0].astext() == chip.vendor
        assert record[1].astext() == f'</summary><div id="{record["ids"][0]}">'


def test_records_of_switches_are_folded_once():
    """One click shows a value; chips, which are many, lie under their vendor."""
    found = hardware.switches()
    assert [s.next_node(nodes.title).astext() for s in found] == [
        switch.name for switch in NVSWITCHES
    ]
    for record in found:
        assert [*record.findall(hardware.fold)] == [record]


@EVERY_CHIP
def test_facts_are_told_apart_and_have_their_unit(chip):
    """No two rows of a chip have one name; rates and sizes are printed with a unit."""
    names = [chip.words(name) for name in chip.facts]
    assert len(set(names)) == len(names)
    assert not any("{" in name or name.startswith(" ") for name in names)
    text = soup([section(chip)]).text
    for precision, rate in chip.flops.items():
        unit = "OPs/s" if precision.startswith("int") else "FLOPs/s"
        assert show(rate, unit, digits=4) in text
        if not chip.without_hbm:
            assert f"{chip.intensity(precision):.4g} in {precision}" in text
    if chip.without_hbm:
        assert "It has no HBM: all of its memory is SRAM." in text
        assert show(chip.onchip_bandwidth, "bytes/s", digits=4) in text
        return
    assert show(chip.hbm_bytes, "capacity", digits=4) in text
    assert show(chip.hbm_bandwidth, "bytes/s", digits=4) in text


@pytest.mark.parametrize("switch", NVSWITCHES, ids=lambda switch: switch.id)
def test_a_switch_has_its_facts_and_links_with_the_chips_that_it_joins(switch):
    found = soup([section_of(switch)])
    joined = [c for c in chips.ALL if "nvlink" in c.facts and nvswitch(c) is switch]
    links = [(link.text, link["href"]) for link in found.p("a")]
    assert links == [(c.name, "#" + c.id.replace("_", "-")) for c in joined]
    for chip in joined:
        [back] = soup([section(chip)]).p("a")
        assert back["href"] == "#" + switch.id.replace("_", "-")
        assert back.text == switch.name
    for row, (name, fact) in zip(
        found.select("tbody tr"), switch.facts.items(), strict=True
    ):
        _, value, source = row(["th", "td"])
        if name == "adds":
            assert value.text == {True: "yes", False: "no"}[fact.value]
        else:
            assert number((value.span or value).text.split()[0]) == fact.value
        assert is_link_to(fact.source, source.a)
        notes = [note.text for note in source(class_="sm-note")]
        assert len(notes) == bool(fact.note) + len(fact.disagrees)
    if "ports" in switch.facts:
        each = show(switch.port_bandwidth, "bytes/s")
        assert f"One port, one-way: {each}." in found.text


def test_a_year_is_printed_as_one_with_its_source():
    fact, fact_words = chips.H100.fact("year"), "Year of release"
    [row] = [row for row in rows([section(chips.H100)]) if row.th.text == fact_words]
    assert row.td.text == "2022"
    assert is_link_to(fact.source, row.a)


def test_all_disagreements_are_listed():
    """Each other value with its source, on its own and beside the record's value."""
    listed = rows(hardware.disagreements())
    assert len(listed) == len(DISPUTES) > 60
    for record, name, fact, value, source in DISPUTES:
        words, unit, where = said(record, name)
        theirs = facts.printed(value, unit)
        [row] = [
            row
            for row in listed
            if (row.th.text, row.td.text) == (record.name, words)
            and is_link_to(source, row("a")[2])
            and row("td")[2].text.startswith(theirs)
        ]
        assert is_link_to(fact.source, row("a")[1])
        assert row("td")[1].text.startswith(facts.printed(fact.value, unit))
        ratio = float(row("td")[-1].text)
        assert ratio == pytest.approx(value / fact.value, rel=1e-3)
        beside = soup([where]).text
        assert f"but {theirs} in {source.title}" in beside


def test_the_furthest_apart_come_first():
    """int8 of the chips where NVIDIA cut it leads the list."""
    ratios = [float(row("td")[-1].text) for row in rows(hardware.disagreements())]
    apart = [max(ratio, 1 / ratio) for ratio in ratios]
    printed = 5e-4  # a ratio is printed to four digits, such as 1.333
    assert all(a > b * (1 - printed) for a, b in pairwise(apart))
    assert apart[0] > 10


def test_every_source_is_listed_with_address_kind_and_date():
    facts = [fact for record in RECORDS for fact in record.facts.values()]
    others = {fact.source for fact in facts} - {*chips.SOURCES.values()}
    others |= {source for *_, source in DISPUTES} - {*chips.SOURCES.values()}
    assert len(SOURCES) == len(chips.SOURCES) + len(others) > len(chips.SOURCES)
    for source in (*chips.SOURCES.values(), *others):
        [row] = [row for row in SOURCES.values() if row.a["href"] == source.url]
        kind, read, uses = (cell.text for cell in row("td"))
        assert row.a.text == source.title
        assert kind == source.kind
        assert read == source.read
        assert int(uses) == sum(fact.source is source for fact in facts)


def test_the_overview_has_every_chip_and_says_what_is_missing():
    table = {row.th.text: row for row in rows(hardware.overview())}
    assert list(table) == [chip.name for chip in chips.ALL]
    for chip in chips.ALL:
        cells = [cell.text for cell in table[chip.name]("td")]
        facts = {name: fact.value for name, fact in chip.facts.items()}
        peak = facts.get("flops.bf16", facts.get("flops.fp16"))
        wanted = [
            chip.year,
            peak and peak / 1e12,
            facts.get("flops.fp8", 0) / 1e12,
            facts.get("hbm_bytes", 0) / 2**30,
            facts.get("hbm_bandwidth", 0) / 1e12,
            peak and "hbm_bandwidth" in facts and peak / facts["hbm_bandwidth"],
            facts.get("scale_up_bandwidth", 0) / 1e9,
            facts.get("scale_out_bandwidth", 0) / 1e9,
        ]
        for cell, value in zip(cells, wanted, strict=True):
            if value:
                shown = number(cell.removesuffix(" fp16"))
                assert shown == pytest.approx(value, rel=5e-4), chip.name
            else:
                assert cell in ("–not published", "–none"), chip.name
        only_fp16 = "flops.fp16" in facts and "flops.bf16" not in facts
        assert cells[1].endswith("fp16") == only_fp16
        if chip.without_hbm:  # which is another thing than not published
            assert cells[3:6] == ["–none"] * 3
        else:
            assert cells[5].endswith("fp16") == only_fp16
            assert "–none" not in cells


def test_no_number_is_typed():
    """The Markdown holds words and the four places that the records fill."""
    text = PAGE.read_text(encoding="utf-8")
    assert not re.findall(r"\b\d", text)
    assert re.findall(r"^```\{hardware\} (\w+)$", text, re.M) == list(hardware.PARTS)


def test_a_fact_without_words_stops_the_build():
    with pytest.raises(AttributeError, match=r"no fact is called 'colour'"):
        chips.H100.words("colour")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (989.4e12, "9.894e14"),
        (76.5e9, "7.65e10"),
        (102_005_473_280, "102,005,473,280"),
        (1024, "1,024"),
        (2_199_023_255_552, "2,199,023,255,552"),
        (262, "262"),
    ],
)
def test_values_are_printed_in_full(value, text):
    assert facts.exact(value) == text
    assert number(text) == value
