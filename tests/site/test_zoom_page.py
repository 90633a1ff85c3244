"""The page that zooms into one step: whole without a script, and sticky with one."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from written import AXE, visit
from written import written as read

from shardmath.base.units import show
from shardmath.draw.objects.zoomed_step import zoomed_step
from shardmath.draw.pictures.zooms import ZOOMS, zoom
from shardmath_site import zooming

NAME = "book/step.html"
SOURCE = Path(__file__).parents[2] / "book" / "step.md"
TOLD = "section:has(> .sm-zoom) > .sm-told"


@pytest.fixture(scope="module")
def article(site):
    """The page as it was built."""
    page = BeautifulSoup((site / NAME).read_text("utf-8"), "html.parser")
    return page.select_one("article")


def visible(page) -> list[int]:
    """Which pictures can be seen, by opacity and place."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".sm-zoom")].flatMap((one, n) => {
          const { opacity, visibility, display } = getComputedStyle(one);
          return opacity > 0.9 && visibility === "visible" && display !== "none"
            ? [n] : [];
        })"""
    )


def test_every_section_has_its_picture_its_words_and_a_door(article):
    """In the order in which the step is taken apart."""
    sections = article.select("section:has(> .sm-zoom)")
    assert len(sections) == len(ZOOMS) == 12
    for section, name in zip(sections, ZOOMS, strict=True):
        (svg,) = section.select(".sm-zoom svg")
        picture = zoom(name, zoomed_step())
        assert svg.title.text == picture.title
        assert svg.desc.text == picture.desc
        told = section.select_one(".sm-told")
        assert len(told.select("p")) >= 2
        door = told.select("p")[-1].a
        assert door["href"].startswith("../chapters/")


def test_doors_lead_to_what_there_is(site, article):
    """To a page, and to a place in it where a link names one."""
    doors = [p.a["href"] for p in article.select(".sm-told > p:last-child")]
    assert len(set(doors)) == len(doors) == 12
    for door in doors:
        page, _, anchor = door.partition("#")
        found = read(site, f"book/{page}".replace("book/../", ""))
        assert not anchor or anchor in found.ids, door


def test_its_numbers_are_those_of_the_package(article):
    """Every number with a unit in the text is one that `numbers` prints."""
    known = zooming.numbers(zoomed_step())
    used = set(re.findall(r"\{zoomed\}`([^`]+)`", SOURCE.read_text("utf-8")))
    assert used <= set(known)
    text = " ".join(article.get_text(" ").split())
    for name in used:
        assert known[name] in text, name
    prose = " ".join(one.get_text(" ") for one in article.select(".sm-told"))
    unit = r"\d[\d,.]*\s(?:s|ms|µs|MB|GB|kB|TFLOPs)\b(?:/s)?"
    found = {" ".join(one.split()) for one in re.findall(unit, prose)}
    assert found
    assert found <= set(known.values())


def test_numbers_are_read_from_the_prediction():
    one = zoomed_step()
    said = zooming.numbers(one)
    assert said["predicted"] == show(one.step.prediction.seconds, "s")
    assert (said["stages"], said["hops"], said["exchanges"]) == ("16", "7", "4")
    assert said["card slower"] == f"{450 / 50:.0f}"
    # What headings and sentences say in words.
    parts = one.prediction.parts
    assert parts["math"] < 2 / 3 * one.prediction.seconds
    assert one.prediction.bound < 0.5 * one.prediction.seconds
    assert one.passes[1] == pytest.approx(2 * one.passes[0], rel=0.05)
    fewer = [sum(stage.passes) for stage in one.stages]
    assert max(fewer[0], fewer[-1]) < fewer[one.stage]


def test_without_a_script_it_is_a_sequence_of_figures(new_page, site_url):
    page = new_page(scripts=False)
    page.goto(f"{site_url}{NAME}")
    assert visible(page) == list(range(12))
    boxes = [one.bounding_box() for one in page.locator(".sm-zoom").all()]
    told = [one.bounding_box() for one in page.locator(TOLD).all()]
    for n in range(12):
        assert boxes[n]["y"] + boxes[n]["height"] <= told[n]["y"] + 1
        if n:
            assert told[n - 1]["y"] + told[n - 1]["height"] <= boxes[n]["y"]


def test_scrolling_changes_the_picture_that_stays(page, site_url):
    """One at a time, that of the words in the middle; and back again."""
    page.emulate_media(reduced_motion="reduce")
    visit(page, f"{site_url}{NAME}")
    assert visible(page) == [0]
    told = page.locator(TOLD)
    places = set()
    for n in (0, 4, 8, 11, 3):
        told.nth(n).evaluate("(one) => one.scrollIntoView({ block: 'center' })")
        page.wait_for_function(
            "(n) => document.querySelectorAll('section:has(> .sm-zoom)')[n]"
            ".hasAttribute('data-shown')",
            arg=n,
        )
        assert visible(page) == [n]
        box = page.locator(".sm-zoom").nth(n).bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900
        if n not in (0, 11):
            places.add(round(box["y"]))
    assert len(places) == 1  # it stays where it is, whatever is scrolled


def test_a_link_to_a_section_shows_its_picture(page, site_url):
    page.emulate_media(reduced_motion="reduce")
    visit(page, f"{site_url}{NAME}#one-hop-takes-microseconds")
    page.wait_for_function(
        "() => document.querySelector('#one-hop-takes-microseconds')"
        ".hasAttribute('data-shown')"
    )
    assert visible(page) == [list(ZOOMS).index("hop")]


def test_nothing_fades_where_motion_is_reduced(page, site_url):
    visit(page, f"{site_url}{NAME}")
    fades = (
        "() => getComputedStyle(document.querySelector('.sm-zoom')).transitionDuration"
    )
    assert page.evaluate(fades) == "0.25s"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(fades) == "0s"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_the_picture_stays_above_its_words(new_page, site_url, scheme):
    page = new_page(width=390, height=844, scheme=scheme)
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)
    visit(page, f"{site_url}{NAME}")
    assert visible(page) == list(range(12))
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    assert wide == 390
    told = page.locator(TOLD).nth(6)
    told.evaluate("(one) => scrollBy(0, one.getBoundingClientRect().top - 300)")
    picture = page.locator(".sm-zoom").nth(6).bounding_box()
    assert 40 <= picture["y"] <= 60  # under the header, while the words move on
    door = told.locator("p:last-child a")
    door.focus()
    box, picture = door.bounding_box(), page.locator(".sm-zoom").nth(6).bounding_box()
    assert box["y"] >= picture["y"] + picture["height"]
    assert box["y"] + box["height"] <= 844


def test_all_doors_can_be_reached_by_keyboard(page, site_url):
    page.emulate_media(reduced_motion="reduce")
    visit(page, f"{site_url}{NAME}")
    for n, door in enumerate(page.locator(f"{TOLD} > p:last-child a").all()):
        door.focus()
        box = door.bounding_box()
        assert 0 <= box["y"] <= 900, n
        covered = door.evaluate(
            "(one) => { const { left, top } = one.getClientRects()[0];"
            " return !one.contains(document.elementFromPoint(left + 5, top + 5)); }"
        )
        assert not covered, n


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nobody_is_left_out(new_page, site_url, width, scheme):
    """axe finds nothing, with the pictures that are not shown as well."""
    page = new_page(width=width, scheme=scheme)
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)
    visit(page, f"{site_url}{NAME}")
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("() => axe.run().then(({ violations }) => violations)")
    assert not [(one["id"], one["nodes"][0]["html"]) for one in found]


def test_a_wrong_name_is_told_with_those_that_there_are():
    role = zooming.Zoomed()
    role.inliner = SimpleNamespace(
        document=SimpleNamespace(
            settings=SimpleNamespace(env=SimpleNamespace(temp_data={}))
        ),
        reporter=SimpleNamespace(error=lambda said, line: said),
    )
    role.lineno = 1
    role.text = "hop"
    assert role.run()[0][0].astext().endswith("µs")
    role.text = "hopp"
    ((), (said,)) = role.run()
    assert said.startswith("'hopp' is not a number of the step: must be one of predic")
