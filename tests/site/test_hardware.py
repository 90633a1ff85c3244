"""The hardware appendix in a browser: sorted and filtered by keyboard, light, whole."""

import gzip
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from shardmath.hardware import chips
from shardmath.hardware.networks import NVSWITCHES

PAGE = "book/hardware.html"
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
NAMES = [chip.name for chip in chips.ALL]


@pytest.fixture
def opened(page, site_url):
    page.goto(site_url + PAGE)
    page.get_by_role("button", name="Chip").wait_for()
    return page


def names(page) -> list[str]:
    """The chips that the overview shows, from top to bottom."""
    shown = page.locator(".sm-hardware tbody tr:not([hidden]) th")
    return shown.all_inner_texts()


def test_sorts_by_keyboard(opened):
    """Largest first, then smallest; chips without the value stay last."""
    button = opened.get_by_role("button", name="Scale-up")
    head = opened.get_by_role("columnheader", name="Scale-up")
    published = [c for c in chips.ALL if "scale_up_bandwidth" in c.facts]
    missing = [c.name for c in chips.ALL if c not in published]
    button.focus()
    for key, order, largest_first in (
        ("Enter", "descending", True),
        ("Space", "ascending", False),
        ("Enter", "descending", True),
    ):
        opened.keyboard.press(key)
        assert head.get_attribute("aria-sort") == order
        assert button.evaluate("button => button === document.activeElement")
        ordered = sorted(
            published, key=lambda c: c.scale_up_bandwidth, reverse=largest_first
        )
        assert names(opened) == [chip.name for chip in ordered] + missing


def test_one_column_is_sorted_at_a_time(opened):
    """Names go from A, and only the column in charge says so."""
    assert opened.locator("[aria-sort]").count() == 0
    opened.get_by_role("button", name="Year").click()
    opened.get_by_role("button", name="Chip").click()
    assert opened.locator("[aria-sort]").count() == 1
    head = opened.locator("th[aria-sort=ascending]")
    assert head.inner_text().startswith("Chip")
    found = names(opened)
    assert found[0] == "A100 40GB"
    assert found.index("TPU v2") < found.index("TPU v5e") < found.index("V100")
    assert sorted(found) == sorted(NAMES)


def test_every_column_sorts_by_its_numbers(opened):
    """Thousands and powers of ten are told apart, whatever the column."""
    for column in range(1, opened.locator(".sm-hardware thead th").count()):
        opened.locator(".sm-hardware thead button").nth(column).click()
        cells = opened.locator(f".sm-hardware tbody tr > :nth-child({column + 1})")
        texts = [text.split()[0].replace(",", "") for text in cells.all_inner_texts()]
        numbers = [float(text) for text in texts if text[0].isdigit()]
        assert len(numbers) > 10
        assert numbers == sorted(numbers, reverse=True), column


def test_filters_by_keyboard(opened):
    """Every word must match a name, a nickname, the vendor or the year."""
    field = opened.get_by_role("searchbox", name="Filter by name, vendor or year")
    status = opened.locator(".sm-filter [role=status]")
    field.focus()
    for typed, expected in (
        ("nvidia", [c.name for c in chips.ALL if c.vendor == "NVIDIA"]),
        ("NVIDIA  2024 ", ["H200", "H200 NVL", "B200"]),
        ("trillium", ["TPU v6e (Trillium)"]),
        ("trn2", ["Trainium2"]),
        ("no such chip", []),
        ("", NAMES),
    ):
        field.press("Control+a")
        opened.keyboard.press("Backspace")
        opened.keyboard.type(typed)
        assert names(opened) == expected, typed
        assert status.inner_text() == f"{len(expected)} of {len(NAMES)} shown"


def test_sorting_keeps_the_filter(opened):
    opened.get_by_role("searchbox", name="Filter").fill("amd")
    opened.get_by_role("button", name="HBM bandwidth").click()
    assert names(opened) == ["MI355X", "MI325X", "MI300X", "MI250X"]


def test_reads_without_scripts(new_page, site_url):
    """The whole table in the records' order; no field, no button that does nothing."""
    page = new_page(scripts=False)
    page.goto(site_url + PAGE)
    assert names(page) == NAMES
    assert not page.locator(".sm-filter").is_visible()
    assert page.locator(".sm-hardware button").count() == 0


def test_fits_a_phone(new_page, site_url):
    """The page stays within 390 px; the overview scrolls in its box, by keyboard too,
    and keeps the names in view; records need no scrolling."""
    page = new_page(width=390)
    page.goto(site_url + PAGE)
    page.get_by_role("button", name="Chip").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator(".sm-hardware .pst-scrollable-table-container")
    assert box.evaluate(
        "box => box.scrollWidth > box.clientWidth && box.tabIndex === 0"
    )
    box.evaluate("box => { box.scrollLeft = 200 }")
    name = box.get_by_role("link", name="TPU v2").bounding_box()
    assert 0 <= name["x"] < 100
    overflow = "boxes => boxes.filter(b => b.scrollWidth > b.clientWidth + 1).length"
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    records = page.locator(".sm-record .pst-scrollable-table-container")
    assert records.count() == len(NAMES) + len(NVSWITCHES)
    assert records.evaluate_all(overflow) == 0


def test_nothing_scrolls_sideways_on_a_desk(opened):
    overflow = "boxes => boxes.filter(b => b.scrollWidth > b.clientWidth + 1).length"
    boxes = opened.locator(".pst-scrollable-table-container")
    assert boxes.evaluate_all(overflow) == 0


def test_accessible(new_page, site_url):
    """axe finds nothing, sorted and filtered; other views are those of every page."""
    page = new_page(width=390, scheme="dark")
    page.goto(site_url + PAGE)
    page.get_by_role("button", name="Year").click()
    page.get_by_role("searchbox", name="Filter").fill("tpu")
    page.evaluate(AXE.read_text("utf-8"))
    options = "{resultTypes: ['violations'], preload: false}"
    found = page.evaluate(f"axe.run(document, {options})")
    assert not found["violations"], json.dumps(found["violations"])[:2000]


def test_a_name_leads_to_its_record_and_a_value_to_its_source(opened):
    """Two clicks: from the overview to the record, from there to the source."""
    assert opened.locator("article details[open]").count() == 0
    opened.locator(".sm-hardware").get_by_role("link", name="Trainium2").click()
    heading = opened.get_by_role("heading", name="Trainium2")
    expect(heading).to_be_in_viewport()
    summaries = opened.locator("article details[open] > summary")
    assert summaries.all_inner_texts() == ["AWS", "Trainium2"]
    fact = chips.TRAINIUM2.fact("hbm_bytes")
    row = opened.get_by_role("table", name="Trainium2").locator(
        "tr", has_text="HBM capacity"
    )
    row.get_by_role("link").click()
    target = opened.locator("tr:target")
    assert target.get_by_role("link").get_attribute("href") == fact.source.url
    expect(target).to_be_in_viewport()


def test_a_gpu_leads_to_its_switch_and_the_switch_to_its_gpus(opened):
    """From the record of an H200 to that of its NVSwitch, and on to the H800's."""
    opened.goto(opened.url.partition("#")[0] + "#h200")
    opened.get_by_role("link", name="NVSwitch 3", exact=True).first.click()
    expect(opened.get_by_role("heading", name="NVSwitch 3")).to_be_in_viewport()
    ports = opened.get_by_role("table", name="NVSwitch 3").get_by_role("row").nth(1)
    assert ports.locator("td").first.inner_text() == "64"
    record = opened.locator("#nvswitch-3")
    record.get_by_role("link", name="H800", exact=True).click()
    expect(opened.get_by_role("heading", name="H800")).to_be_in_viewport()


def test_one_click_shows_the_values_of_a_switch(opened):
    assert opened.get_by_role("table", name="NVSwitch 1").count() == 0
    opened.get_by_role("heading", name="NVSwitch 1").click()
    ports = opened.get_by_role("table", name="NVSwitch 1").get_by_role("row").nth(1)
    assert ports.locator("td").first.inner_text() == "18"
    assert opened.locator("article details[open]").count() == 1


def test_a_link_from_elsewhere_opens_the_record_without_scripts(new_page, site_url):
    page = new_page(scripts=False)
    page.goto(f"{site_url}{PAGE}#h100")
    expect(page.get_by_role("heading", name="H100", exact=True)).to_be_in_viewport()
    expect(page.get_by_role("table", name="H100")).to_be_visible()
    assert page.get_by_role("table", name="H200").count() == 0


def test_search_finds_the_page_by_the_name_of_a_chip(page, site_url):
    page.goto(f"{site_url}search.html?q=Trainium3")
    page.locator("main [role=option]").first.wait_for()
    found = page.locator(f"main a[role=option][href*='{PAGE}']")
    assert found.count()


def test_is_light_and_loads_its_script_alone(site):
    """The page stays below 150 kB as sent; only the runs sort by the same script."""
    assert len(gzip.compress((site / PAGE).read_bytes())) < 150_000
    for page in site.rglob("*.html"):
        links = re.findall(r'src="[^"]*hardware\.js', page.read_text("utf-8"))
        assert len(links) == (page in (site / PAGE, site / "book/runs.html")), page
