"""The front page: its figure, its numbers and its map say what the book does."""

import gzip
import json
import re
import tomllib
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.errors import ExtensionError
from written import visit

from shardmath.draw import figures
from shardmath.draw.live import answer
from shardmath.exercises import answers
from shardmath.measured import RUNS, fit_rows
from shardmath.referee.compilers import golden_results
from shardmath.training.efficiencies import without
from shardmath_site import front
from shardmath_site import map as book_map
from shardmath_site.icons import ICONS, icon

ROOT = Path(__file__).parents[2]
PLAN = tomllib.loads((ROOT / "book" / "plan.toml").read_text("utf-8"))
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
FIGURE, RACE = figures.find("front"), figures.find("race")
SAYS = "(text) => document.querySelector('.sm-readout').textContent === text"
LINE = SAYS.replace(".sm-readout", "[data-figure=race] .sm-line")
MOST = 250_000  # bytes before a reader touches anything, as a server with gzip sends it
FIRST_SCREEN = ("h1", ".sm-readout", ".sm-picture svg", "[name=count]", ".sm-doors")


@pytest.fixture(scope="module")
def written(site):
    """The front page as it was built."""
    return (site / "index.html").read_text("utf-8")


def plain(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", "", html)).split())


# The figure ---------------------------------------------------------------------------


def test_the_figure_is_there_without_a_script(written):
    """With its sentence: the step on 4,096 chips, predicted."""
    said = plain(written.partition('class="sm-readout">')[2].partition("</p>")[0])
    assert said.startswith("On 4,096 H100, the step is predicted to take")
    assert said == FIGURE.draw().summary
    assert answer(FIGURE.name, {})["svg"] in written


def test_the_first_screen_answers_without_python(page, site_url):
    """Question, sentence, figure and doors; the point moves by hand and by key.

    What is asked for before is little, and Python is not asked for at all.
    """
    asked = {}

    def keep(response):
        if response.url.startswith(site_url):
            asked[response.url] = response

    page.on("response", keep)
    page.emulate_media(reduced_motion="reduce")
    visit(page, site_url)
    for selector in FIRST_SCREEN:
        box = page.locator(selector).first.bounding_box()
        assert box["y"] >= 0, selector
        assert box["y"] + box["height"] <= 900, selector
    page.wait_for_function("() => !document.querySelector('.sm-controls').disabled")
    page.wait_for_load_state("networkidle")
    sent = sum(len(gzip.compress(response.body(), 6)) for response in [*asked.values()])
    assert sent < MOST

    slider = page.locator("[name=count]")

    def says(**settings):
        page.wait_for_function(SAYS, arg=FIGURE.draw(**settings).summary)

    stops = FIGURE.control("count").stops
    box = page.locator("[data-drag]").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 120, y, steps=4)
    page.mouse.up()
    at = int(slider.input_value())
    assert stops[at] < 1024
    says(count=stops[at])
    slider.press("ArrowRight")
    says(count=stops[at + 1])
    page.locator("[name=chip]").select_option("B200")
    says(count=stops[at + 1], chip="B200")
    assert not [url for url in asked if "wasm" in url or url.endswith(".pack")]


def test_the_step_plays_once_and_can_be_paused(page, site_url):
    """From one chip on, without being asked, and never where motion is reduced."""
    visit(page, site_url)
    slider, play = page.locator("[name=count]"), page.locator("[data-play=play]").first
    page.wait_for_function("() => document.querySelector('[name=count]').value === '2'")
    play.click()  # it says "Pause" now
    stopped = int(slider.input_value())
    assert 2 <= stopped < 14
    page.wait_for_timeout(1500)
    assert int(slider.input_value()) == stopped
    page.wait_for_function(SAYS, arg=FIGURE.draw(count=2**stopped).summary)


def test_nothing_moves_where_motion_is_reduced(page, site_url):
    page.emulate_media(reduced_motion="reduce")
    visit(page, site_url)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1500)
    assert page.locator("[name=count]").input_value() == "12"  # 4,096 chips
    page.wait_for_function(SAYS, arg=FIGURE.draw().summary)


def test_on_a_phone_the_figure_follows_the_question(new_page, site_url):
    page = new_page(width=390, scripts=False)
    page.goto(site_url)
    question, sentence, picture = (
        page.locator(name).first.bounding_box()
        for name in ("h1", ".sm-readout", ".sm-picture svg")
    )
    assert 0 <= sentence["y"] - (question["y"] + question["height"]) < 40
    assert picture["y"] + picture["height"] < 844


def test_the_race_takes_a_bet_and_the_link_carries_it(page, site_url):
    """A lane runs only after the bet; whoever opens the link has the same race."""
    page.emulate_media(reduced_motion="reduce")
    visit(page, f"{site_url}#bet-on-a-race")
    race = page.locator(".sm-live[data-figure=race]")
    race.scroll_into_view_if_needed()
    bet = RACE.control("bet").options[-1]
    race.locator("[name=bet]").select_option(bet)
    line = race.locator(".sm-line")
    page.wait_for_function(LINE, arg=RACE.draw(bet=bet).summary)
    race.locator("[data-do=link]").click()
    page.wait_for_function("() => location.hash.startsWith('#race?bet=')")
    assert "finishes first by" not in line.inner_text()
    linked = page.url.replace("moment=0", "moment=24")
    other = page.context.new_page()
    visit(other, linked)
    other.wait_for_function(LINE, arg=RACE.draw(bet=bet, moment=24).summary)
    assert other.locator("[name=bet]").input_value() == bet
    other.close()


def test_a_race_is_run_without_python(page, site_url):
    """The page carries every moment of every bet on the first race."""
    page.route(re.compile(r"\.wasm"), lambda route: None)  # it never comes
    page.emulate_media(reduced_motion="reduce")
    visit(page, site_url)
    race = page.locator(".sm-live[data-figure=race]")
    race.scroll_into_view_if_needed()
    race.locator("[name=bet]").select_option("FSDP")
    page.wait_for_function(LINE, arg=RACE.draw(bet="FSDP").summary)
    race.locator("[name=moment]").press("End")
    page.wait_for_function(LINE, arg=RACE.draw(bet="FSDP", moment=24).summary)


# What it rests on ---------------------------------------------------------------------


def number(written: str, kind: str) -> tuple[str, str]:
    """The number of a proof, and all that it says."""
    proofs = written.partition('class="sm-proofs')[2].partition("</ul>")[0]
    (proof,) = (p for p in proofs.split("<li>") if kind in p)
    return plain(re.search("<strong>(.*?)</strong>", proof)[1]), plain(proof)


def section(site, page: str, anchor: str) -> str:
    """What the link leads to: a section, also by a name that it had before."""
    text = (site / page).read_text("utf-8").partition(f' id="{anchor}">')[2]
    assert text, anchor
    return text.partition("<section id=")[0]


def test_ledgers_hold_what_the_front_page_counts(site, written):
    """Counted in the tables of the pages; the one that is linked has such rows."""
    table = r"<th[^>]*>collective</th>(?:(?!</tr>).)*<th[^>]*>compiled</th>.*?</table>"
    shown = []
    for document in book_map.written(TOC).values():
        page = (site / f"{document}.html").read_text("utf-8")
        for ledger in re.findall(table, page, re.DOTALL):
            rows = [plain(row) for row in ledger.split("<tr>")[1:]]
            shown += [row for row in rows if not row.startswith("all")]
    same = [row for row in shown if "1.000" in row]
    ratio, said = number(written, "ledgers")
    assert ratio == "1.000"
    assert f"in {len(same)} of {len(shown)} rows" in said
    link = r'href="([^"#]+)#([^"]+)">(?:<[^>]*>)*the book.s ledgers'
    page, anchor = re.search(link, written).groups()
    assert ">1.000<" in section(site, page, anchor)


def test_targets_are_counted_in_the_tables_of_the_pages(site, written):
    """What compilers made for machines one does not have, the worst row included."""
    head = r"<th[^>]*>(?:target|compiled for)</th>(?:(?!</thead>).)*</thead>"
    ratios = []
    for document in book_map.written(TOC).values():
        page = (site / f"{document}.html").read_text("utf-8")
        for found in re.finditer(head, page, re.DOTALL):
            if ">derived<" in found[0] or ">compiled over derived<" in found[0]:
                body = page[found.end() : page.index("</table>", found.end())]
                cells = [
                    re.findall(r">(\d+\.\d{3})<", row) for row in body.split("<tr>")
                ]
                ratios += [row[-1] for row in cells if row]
    _, said = number(written, "ledgers")
    same = sum(ratio == "1.000" for ratio in ratios)
    assert f"in {same} of {len(ratios)} programs" in said
    assert f"the worst {max(ratios, key=float)}" in said
    linked = section(site, "chapters/09_fsdp.html", "on-a-machine-you-do-not-have")
    assert f">{max(ratios, key=float)}<" in linked


def test_values_are_those_of_the_hardware_page(site, written):
    page = (site / "book" / "hardware.html").read_text("utf-8")
    records, _, rest = page.partition('class="sm-disagreements"')
    records = records.split('<details class="sm-record">')[1:]
    rows = [row for record in records for row in record.split("<tr>")[2:]]
    count, said = number(written, "accelerators")
    assert int(count) == len([row for row in rows if "#source-" in row])
    kinds = re.search(r"of (\d+) accelerators and (\d+) switches", said)
    assert sum(map(int, kinds.groups())) == len(records)
    differ = rest.partition("</table>")[0].count("<tr>") - 1
    assert f"disagree, {differ} times" in said


def test_slips_are_those_of_the_questions(site, written):
    count, said = number(written, "slips")
    found = [len(getattr(q, "slips", ())) for q in answers.questions().values()]
    assert (count, f"{len(found)} questions" in said) == (f"{sum(found):,}", True)
    asked = section(site, "exercises/01_rooflines.html", "the-least-time-on-an-h100")
    assert 'data-question="01.3"' in asked
    assert answers.find("01.3").slips


def test_all_runs_stand_where_the_link_leads(site, written):
    """With their sources. Nobody was faster than the bound; ratios have two digits."""
    count, said = number(written, "training runs")
    nearest = re.search(r"took ([\d.]+) times", said)[1]
    page = BeautifulSoup((site / "book/runs.html").read_text("utf-8"), "html.parser")
    tables = [table for table in page.select("table") if table.th.text == "model"]
    rows = [row for table in tables for row in table.select("tr")]
    ratios = [row.select("td")[2].text for row in rows if row.td]
    assert {row.select("th")[2].text for row in rows if row.th} == {"ratio"}
    timed = [float(ratio) for ratio in ratios if ratio != "–"]
    assert (len(ratios), len(timed)) == (len(RUNS), int(count))
    assert min(timed) == round(float(nearest), 2) > 1
    linked = {link["href"] for link in page.select("article a[href^=http]")}
    assert {run.source.url for run in RUNS} <= linked


def test_ledgers_are_found_in_what_a_notebook_stores(tmp_path):
    """A row is a line between the head of a ledger and its sum."""
    head = "collective  axes  devices   runs  predicted  compiled  dtype  ratio  same"
    rows = ["AllGather   X  8  1 → 1  9 kB  9 kB  f32  1.000  yes", "AllReduce   X  8"]
    told = "\n".join(["✓ fine", head, *rows, "all  –  2 → 1  9 kB", "after"])
    outputs = [
        {"text": ["✓ no collective here, predicted or compiled\n"]},
        {"data": {"text/plain": told}},
        {"text": ["compiled for  derived  ratio\n", "v5e:2x4  1.50 GB  1.045\n"]},
    ]
    file = tmp_path / "01_a.ipynb"
    cells = [{"cell_type": "markdown"}, {"outputs": outputs}]
    file.write_text(json.dumps({"cells": cells}), "utf-8")
    assert [*front.rows([file])] == rows
    found = front.counts([file], 1.2, 3)
    said = ["ledger rows", "ledger rows as predicted", "runs", "nearest run"]
    assert [found[name] for name in said] == ["2", "1", "3", "1.200"]
    said = ["target rows", "target rows as predicted", "target at worst"]
    assert [found[name] for name in said] == ["1", "0", "1.045"]


def test_the_front_page_is_counted_anew_when_something_changes(monkeypatch):
    """The package, whose bounds are then forgotten, or which chapters there are."""
    app = SimpleNamespace(config=SimpleNamespace(root_doc="book/index"))
    env = SimpleNamespace()

    def look(added=(), removed=()):
        return front._look(app, env, set(added), set(), set(removed))

    assert look() == ["book/index"]
    env.shardmath_front["bounds"] = (1.2, 3)
    assert look() == []
    assert look(added=["chapters/15_new"]) == look(removed=["x"]) == ["book/index"]
    assert env.shardmath_front["bounds"] == (1.2, 3)
    monkeypatch.setattr(front, "_digest", lambda folder: "another")
    assert look() == ["book/index"]
    assert "bounds" not in env.shardmath_front


def test_what_is_not_counted_is_named():
    """With what is, so that a page with a wrong word does not build."""
    env = SimpleNamespace(temp_data={"counts": {"chips": "30", "slips": "952"}})
    role = front.Counted()
    role.inliner = SimpleNamespace(
        document=SimpleNamespace(settings=SimpleNamespace(env=env)),
        reporter=SimpleNamespace(error=lambda said, line: said),
    )
    role.lineno = 1
    role.text = "chips"
    assert [one.astext() for one in role.run()[0]] == ["30"]
    role.text = "pages"
    said = "'pages' is not counted: must be one of chips, slips"
    assert role.run() == ([], [said])


def test_the_error_is_that_of_runs_left_out(site, written):
    """Counted again from the rows, each with the numbers fitted without its source."""
    rows = list(fit_rows.rows())
    off = [abs(row.predicted(without(row.source)) / row.measured - 1) for row in rows]
    error, said = number(written, "mean error")
    assert error == f"{sum(off) / len(off):.1%}"
    assert f"{len(rows):,} published measurements" in said


def test_what_the_page_says_first_comes_first(written):
    """The figure, what the book is, the map, the race, then why to trust it."""
    marks = ('data-figure="front"', "<strong>Shardmath</strong> is", 'id="the-map"',
             'id="bet-on-a-race"', 'data-figure="race"', 'id="what-it-rests-on"',
             'id="clone-and-run"', 'id="reference"', 'id="licence"')  # fmt: skip
    places = [written.index(mark) for mark in marks]
    assert places == sorted(places)
    about = written.partition("<strong>Shardmath</strong> is")[2].partition("</p>")[0]
    assert len(re.findall(r"[.?!](?=\s|$)", plain(about))) == 3


# The map ------------------------------------------------------------------------------


def test_the_map_has_a_card_for_every_chapter_that_is_written(site, written):
    """With number, title, picture, the chapter's own question, and its exercises."""
    cards = written.split('<li class="sm-card"')[1:]
    assert len(cards) == len(book_map.written(TOC))
    for card, document in zip(cards, book_map.written(TOC).values(), strict=True):
        chapter = (site / f"{document}.html").read_text("utf-8")
        title = re.search('<h4><a href="(.*?)">(.*?)</a></h4>', card)
        assert title[1] == f"{document}.html"
        assert plain(title[2]) == plain(re.search("<h1>(.*?)<a", chapter)[1])
        number = int(plain(title[2]).split()[0])
        assert f"{icon(number)}<h4>" in card
        exercises = document.replace("chapters", "exercises")
        assert f'data-exercises="{exercises}"' in card.partition(">")[0]
        assert f'href="{exercises}.html"' in card
        assert '<span class="sm-progress" hidden></span>' in card
        asked = plain(card.partition("</h4>")[2].partition("</p>")[0])
        lead = chapter.partition("sm-lead-question")[2].partition("</blockquote>")[0]
        lead = re.sub('<span class="sm-tip".*?</span>', "", lead)  # of a term
        opening = plain(re.sub('<span class="katex.*', "", lead.partition(">")[2]))
        first = opening.removeprefix("Question. ")[:40].strip()
        assert asked.startswith(first)
        assert asked.endswith("?")


def test_what_is_to_come_is_a_line_for_each_part(written):
    lines = [plain(line) for line in re.findall('<p class="sm-soon">.*?</p>', written)]
    left = [
        [
            f"{name.split()[0]:0>2} {name.partition(' ')[2]}"
            for name, file in rows
            if not file
        ]
        for _, rows in book_map.rows(PLAN, TOC)
    ]
    assert lines == [f"To come: {' · '.join(names)}" for names in left if names]


def test_every_part_has_its_heading(written):
    captions = [caption for caption, _ in book_map.rows(PLAN, TOC)]
    assert [
        plain(h) for h in re.findall("<h3>(.*?)</h3>", written, re.DOTALL)
    ] == captions


def test_a_question_that_cannot_be_shown_is_named():
    document = nodes.section()
    assert book_map.question(document) == ""
    lead = nodes.paragraph("", "", nodes.strong("", "Question."), nodes.Text(" Is "))
    lead += nodes.math("", r"\frac{a}{b}")
    document += nodes.block_quote("", lead, classes=["sm-lead-question"])
    with pytest.raises(ExtensionError, match="cannot show the formulas of: Is"):
        book_map.question(document)


def test_every_chapter_of_the_plan_has_an_icon_of_its_own():
    """In a square without words, of lines that are seen at 48 px, in named colours."""
    numbers = [
        int(name.split()[0]) for part in PLAN["parts"] for name in part["chapters"]
    ]
    assert sorted(ICONS) == sorted(numbers)
    drawn = [icon(number) for number in numbers]
    assert len(set(drawn)) == len(drawn)
    for one in drawn:
        assert 'viewBox="0 0 48 48"' in one
        assert 'aria-hidden="true"' in one
        assert not re.search(r"<text|data-key|(?:fill|stroke)=.#", one)
        widths = map(float, re.findall(r'stroke-width="([\d.]+)"', one))
        assert min(widths, default=1.5) >= 1.5
    assert icon(99).count("<") > 4  # a page with lines


def test_icons_are_shown_in_the_size_they_are_drawn_for(page, site_url):
    visit(page, site_url)
    for one in page.locator(".sm-card .sm-icon").all():
        box = one.bounding_box()
        assert (box["width"], box["height"]) == (48, 48)


def test_parts_are_called_the_same_in_plan_and_contents():
    """The contents list the parts that have a written chapter, in the plan's order."""
    rows = book_map.rows(PLAN, TOC)
    begun = [part for part, chapters in rows if any(address for _, address in chapters)]
    assert [part["caption"] for part in TOC["parts"]] == [*begun, "Reference"]


def test_the_plan_counts_from_one_without_a_gap():
    names = [name for part in PLAN["parts"] for name in part["chapters"]]
    assert [int(name.split()[0]) for name in names] == list(range(1, len(names) + 1))


def contents(*files):
    return {"parts": [{"chapters": [{"file": file} for file in files]}]}


def test_a_chapter_is_linked_from_the_day_it_is_listed():
    plan = {"parts": [{"caption": "I", "chapters": ["1 A", "2 B"]}]}
    assert list(book_map.rows(plan, contents("chapters/02_b", "book/notation"))) == [
        ("I", [("1 A", ""), ("2 B", "chapters/02_b")])
    ]


@pytest.mark.parametrize(
    ("file", "said"), [("chapters/03_c", "no chapter"), ("chapters/c", "NN_slug")]
)
def test_a_chapter_outside_the_plan_is_named(file, said):
    plan = {"parts": [{"caption": "I", "chapters": ["1 A"]}]}
    with pytest.raises(ValueError, match=said):
        list(book_map.rows(plan, contents(file)))


# Adding a chapter ---------------------------------------------------------------------

NAMED_IN = ("_toc.yml", "prose_numbers.toml", "plan.toml")
NAMED_IN += ("index.md", "step.md")  # by their doors
KINDS = ("*.py", "*.js", "*.mjs", "*.css", "*.html", "*.md", "*.toml", "*.yml")


def test_nothing_else_names_the_chapters_one_by_one():
    """A new one touches its notebook, its answers and `_toc.yml`."""
    stems = [file.removeprefix("chapters/") for file in book_map.written(TOC).values()]
    tops = ("book", "tests", "tools", "benchmarks")
    files = [f for top in tops for kind in KINDS for f in (ROOT / top).rglob(kind)]
    files += [f for kind in KINDS for f in ROOT.glob(kind)] + [ROOT / "Makefile"]
    for file in files:
        if file.name in NAMED_IN or "node_modules" in file.parts:
            continue
        text = file.read_text("utf-8")
        named = [stem for stem in stems if stem in text]
        assert len(named) <= 2, f"{file}: {named}"
        modules = set(re.findall(r"\bch(\d\d)\b", text))
        assert len(modules) <= 2, f"{file}: ch{sorted(modules)}"


def test_a_changed_golden_result_is_noticed(tmp_path):
    """The digest that decides whether numbers are counted again covers them."""
    package = Path(front.__file__).parents[1] / "shardmath"
    folder = tmp_path / Path(str(golden_results.FOLDER)).relative_to(package)
    folder.mkdir(parents=True)
    file = folder / "h100-2.step.json"
    file.write_text("{}")
    before = front._digest(tmp_path)
    file.write_text('{"seconds": 1}')
    assert front._digest(tmp_path) != before
