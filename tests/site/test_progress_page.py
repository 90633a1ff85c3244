"""Progress on the site: what is reached is seen everywhere, and can be taken along."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from written import AXE, visit

from shardmath.exercises import answers, progress

STORE = "shardmath.answers.v1"
GUESSES = "shardmath.guesses.v1"
PAGE = "exercises/01_rooflines.html"
OWN = answers.chapter("01")
PUT = "([question, entry]) => Shardmath.answers.put(question, entry)"
REFUSED = """for (const name of ["getItem", "setItem"]) {
    const act = Storage.prototype[name];
    Storage.prototype[name] = function (key, ...rest) {
        if (key.startsWith("shardmath.")) throw new DOMException("denied");
        return act.call(this, key, ...rest); }; }"""
# What screen readers are told: every change of a status, from the first moment on.
LISTEN = """globalThis.told = [];
    new MutationObserver((changes) => {
        for (const { target } of changes) {
            const status = target.closest?.(".sm-score [role=status]");
            if (status && status.textContent) told.push(status.textContent); }
    }).observe(document, { childList: true, subtree: true });"""


def entry(text="1", verdict="right", **more):
    return {"text": text, "attempts": 0, "verdict": verdict, **more}


SECOND = {question: entry() for question in answers.chapter("02")}  # all of it


def keep(page, entries, key=STORE):
    """As if an earlier visit had kept them."""
    page.evaluate(
        "([key, text]) => localStorage.setItem(key, text)", [key, json.dumps(entries)]
    )


def kept(page, key=STORE):
    return json.loads(page.evaluate("(key) => localStorage.getItem(key)", key) or "{}")


def score(page) -> str:
    return " ".join(page.locator(".sm-score-line").first.inner_text().split())


def marked(page) -> list[str]:
    """The questions with a ✓ in their heading; the contents say the same."""
    named = "all => all.map((e) => e.textContent.slice(0, 5).trim())"
    headings = page.locator("article h2:has(.sm-done)").evaluate_all(named)
    contents = page.locator("#pst-page-toc-nav a:has(.sm-done)").evaluate_all(named)
    assert headings == contents
    return headings


def beside(page, chapter) -> str:
    """What the sidebar says beside the link to a chapter's exercises."""
    links = page.locator("nav.bd-links .toctree-l2 > a")
    return links.nth(int(chapter) - 1).locator(".sm-count").text_content() or ""


def axe(page) -> str:
    """What axe finds where progress is shown."""
    page.evaluate(AXE.read_text("utf-8"))
    places = [".sm-score", "nav.bd-links", "#pst-page-toc-nav", "h2"]
    found = page.evaluate("(include) => axe.run({ include })", places)
    return "\n".join(f"{v['id']}: {v['nodes'][0]['html']}" for v in found["violations"])


@pytest.mark.parametrize("number", answers.chapters())
def test_a_page_says_how_much_there_is_to_reach(site, number):
    """From the records, and for no more questions than its page judges."""
    [file] = (site / "exercises").glob(f"{number}_*.html")
    html, own = file.read_text("utf-8"), answers.chapter(number)
    plain = " ".join(re.sub(r"<[^>]+>", "", html).split())
    points = sum(record.points for record in own.values())
    assert f"0 of {points} points 0 of {len(own)} questions right" in plain
    here = html.count('class="sm-check"')
    assert re.search(rf"\b{here} (of the {len(own)} )?can be answered on this", plain)
    script = (site / "_static/questions.js").read_text("utf-8")
    told = json.loads(script.removeprefix("Shardmath.questions = ").rstrip(";\n"))
    assert told[f"exercises/{file.stem}"] == {q: r.points for q, r in own.items()}


def test_what_is_right_is_seen_everywhere_at_once(new_page, site_url):
    """Heading, contents, sidebar and score; for good, and in every view."""
    page = new_page()
    page.add_init_script(LISTEN)
    visit(page, site_url + PAGE)
    most = sum(record.points for record in OWN.values())
    empty = f"0 of {most} points 0 of {len(OWN)} questions right"
    assert (score(page), marked(page)) == (empty, [])
    keep(page, {"01.12": entry()} | SECOND)
    page.reload()
    begun = f"{OWN['01.12'].points} of {most} points 1 of {len(OWN)} questions right"
    assert (score(page), marked(page)) == (begun, ["01.12"])
    assert page.evaluate("told") == []  # nothing is announced on load
    assert beside(page, "01") == f"1 of {len(OWN)}"
    assert beside(page, "02") == "✓"

    page.evaluate(PUT, ["01.1", entry("soon", "wrong")])
    assert score(page) == f"{begun}, 1 begun"
    page.evaluate(PUT, ["01.1", entry()])
    points = OWN["01.1"].points + OWN["01.12"].points
    both = f"{points} of {most} points 2 of {len(OWN)} questions right"
    assert (score(page), marked(page)) == (both, ["01.1", "01.12"])
    assert [" ".join(line.split()) for line in page.evaluate("told")] == [both]
    page.evaluate(PUT, ["01.1", entry("2", "wrong")])
    assert (score(page), marked(page)) == (both, ["01.1", "01.12"])

    page.get_by_text("Your progress").click()
    assert not axe(page)
    page.set_viewport_size({"width": 390, "height": 900})
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    page.wait_for_timeout(300)  # colours fade
    assert not axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

    for question in OWN:
        page.evaluate(PUT, [question, entry()])
    assert beside(page, "01") == "✓"
    assert page.locator(".sm-score.sm-all").count() == 1


def test_the_front_page_counts_and_leads_to_the_panel(new_page, site_url):
    """On the map's cards; a chapter that was not begun says nothing."""
    page = new_page()
    visit(page, f"{site_url}index.html")
    keep(page, {"01.12": entry(), "03.1": entry(verdict="wrong")} | SECOND)
    page.reload()
    told = page.locator("[data-exercises] .sm-progress")
    assert told.nth(2).is_hidden()
    assert told.all_inner_texts()[:2] == ["1 right", "✓ all right"]
    page.goto(f"{page.url}#100%")  # no anchor, and no reason to stop
    page.get_by_role("link", name="Your progress").click()
    expect(page.get_by_role("button", name="Save to a file")).to_be_in_viewport()


def bring(page, name, content) -> str:
    """Choose a file, and give what is said of it."""
    status = page.locator(".sm-keeping-said")
    status.evaluate("e => (e.textContent = '')")
    text = content if isinstance(content, str) else json.dumps(content)
    page.locator(".sm-score input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/json", "buffer": text.encode()}
    )
    expect(status).not_to_be_empty()
    return status.inner_text()


def test_a_file_takes_progress_along(new_page, site_url, tmp_path):
    """Saved, erased by keyboard, added again: merged with what came meanwhile."""
    page = new_page()
    visit(page, site_url + PAGE)
    before = {
        "01.1": entry("1", message="1 FLOPs", time=5),
        "01.2": entry("2", "wrong", attempts=3, time=5),
        "01.3": {"text": "3", "attempts": 1},  # of the first edition
        "99.9": entry("of a later edition"),
    }
    guesses = {"abc": "ten times", "def": None}
    keep(page, before)
    keep(page, guesses, GUESSES)
    page.reload()
    page.locator("details.sm-keeping summary").press("Enter")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save to a file").press("Enter")
    download.value.save_as(tmp_path / "saved.json")
    saved = (tmp_path / "saved.json").read_text("utf-8")
    told = json.loads(saved)
    assert told["version"] == 1
    assert (told["answers"], told["guesses"]) == (before, guesses)

    # To erase is asked first, and by keyboard it is not done by accident.
    page.evaluate("localStorage.setItem('other', 'stays')")
    erase = page.get_by_role("button", name="Erase …")
    for key in ("Enter", "Escape"):
        erase.press("Enter")
        expect(page.locator("dialog strong")).to_have_text(
            "Erase 4 answers and 2 guesses?"
        )
        page.keyboard.press(key)
        expect(page.locator("dialog.sm-erase")).not_to_be_visible()
        assert kept(page) == before
    erase.press("Enter")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".sm-keeping-said")).to_have_text("All is erased.")
    left = page.evaluate("Object.keys(localStorage)")
    assert "other" in left
    assert not {STORE, GUESSES} & set(left)
    field = page.locator("[data-question='01.1'] input")
    assert (field.input_value(), marked(page)) == ("", [])

    # Right beats wrong, the newer text wins, and what only one has is kept.
    meanwhile = {
        "01.1": entry("7", "wrong", attempts=2, time=9),
        "01.2": entry("8", time=4),
        "01.4": entry("4"),
    }
    keep(page, meanwhile)
    keep(page, {"abc": "twice", "def": "a guess"}, GUESSES)
    page.reload()
    page.get_by_text("Your progress").click()
    said = bring(page, "saved.json", saved)
    assert said == (
        "Of 4 answers in the file, 4 changed what is here; 0 guesses are new."
    )
    assert kept(page) == {
        "01.1": meanwhile["01.1"] | {"best": "right"},
        "01.2": before["01.2"] | {"best": "right"},
        "01.3": before["01.3"],
        "01.4": meanwhile["01.4"],
        "99.9": before["99.9"],
    }
    assert kept(page, GUESSES) == {"abc": "twice", "def": "a guess"}
    assert field.input_value() == "7"
    assert page.locator("[data-question='01.2'] input").input_value() == "2"
    assert marked(page) == ["01.1", "01.2", "01.4"]
    assert "none changed" in bring(page, "saved.json", saved)

    # What is no such file is refused with the reason, and changes nothing.
    everything = kept(page)
    wrong = {
        "cut": (saved[:-20], "damaged or isn’t JSON"),
        "list": ([], "no progress file of this book"),
        "other": ({"cells": []}, "no progress file of this book"),
        "newer": (told | {"version": 2}, "of version 2, and this page reads version 1"),
        "half": ({**told, "guesses": None}, "it has no guesses"),
        "text": (told | {"answers": {"01.1": {}}}, "the answer to “01.1” has no text"),
        "verdict": (
            told | {"answers": {"01.1": entry(verdict="great")}},
            "a verdict that is neither right nor wrong",
        ),
        "name": ('{"kind": "Shardmath progress", "version": 1, "guesses": {}, '
                 '"answers": {"__proto__": {"text": ""}}}', "no question's number"),
        "schema": ({"schema": 2, "questions": {}}, "schema 2, and this page reads 1"),
        "row": ({"schema": 1, "questions": {"01.1": {"done": 1}}}, "“01.1” is no"),
    }  # fmt: skip
    for name, (content, reason) in wrong.items():
        said = bring(page, name, content)
        assert said.startswith(f"“{name}” was not added"), said
        assert reason in said
        assert kept(page) == everything

    # A notebook's own file brings verdicts, and takes no text away.
    store = progress.ProgressStore(tmp_path / "progress.json")
    for question, right in (("01.1", False), ("01.5", True), ("01.6", False)):
        store.record(question, right)
    bring(page, "progress.json", (tmp_path / "progress.json").read_text("utf-8"))
    assert kept(page)["01.1"] == everything["01.1"]
    assert kept(page)["01.6"] == {"text": "", "attempts": 1}
    assert marked(page) == ["01.1", "01.2", "01.4", "01.5"]


def test_where_storage_is_refused_the_page_works_and_says_so(new_page, site_url):
    page = new_page()
    page.add_init_script(REFUSED)
    visit(page, site_url + PAGE)
    trouble = page.locator(".sm-score-trouble")
    told = "This browser keeps no answers and guesses: the page forgets them."
    expect(trouble).to_have_text(told)  # once for both
    page.evaluate(PUT, ["01.1", entry()])
    page.evaluate(PUT, ["01.2", entry()])
    assert marked(page) == ["01.1", "01.2"]
    page.get_by_text("Your progress").click()
    bring(page, "progress.json", {"schema": 1, "questions": {"01.3": {"done": True}}})
    assert marked(page) == ["01.1", "01.2", "01.3"]


def test_a_damaged_store_is_set_aside_where_it_is_said(new_page, site_url):
    """A chapter, which has no place to say it, leaves it as it is."""
    page = new_page()
    visit(page, f"{site_url}chapters/01_rooflines.html")
    page.evaluate(f"localStorage.setItem('{STORE}', '{{broken')")
    page.reload()
    assert page.evaluate(f"localStorage.getItem('{STORE}')") == "{broken"
    page.goto(site_url + PAGE)
    told = page.locator(".sm-score-trouble").inner_text()
    [aside] = re.findall(rf"{STORE}\.damaged\.\d+", told)
    assert page.evaluate("(key) => localStorage.getItem(key)", aside) == "{broken"
    page.get_by_text("Your progress").click()
    page.get_by_role("button", name="Erase …").click()
    expect(page.locator("dialog strong")).to_contain_text("set aside as damaged")
    page.get_by_role("button", name="Erase them").click()
    expect(page.locator(".sm-keeping-said")).to_have_text("All is erased.")
    assert aside not in page.evaluate("Object.keys(localStorage)")
    odd = json.dumps({"01.1": {"text": "2", "attempts": 1, "message": {}}})
    page.evaluate("([key, odd]) => localStorage.setItem(key, odd)", [STORE, odd])
    page.reload()
    expect(page.locator(".sm-score-trouble")).to_contain_text(f"{STORE}.damaged.")


def test_from_a_folder_progress_is_kept_too(new_page, site):
    """Where the browser keeps it at all, and the page says that it may not.

    On a busy machine, Chromium gives about one page in fifty that is opened from a
    folder an empty storage of its own, which ends with the page: also one that only
    reads a key in its head.
    """
    for _ in range(5):
        page = new_page()
        visit(page, (site / PAGE).as_uri())
        page.evaluate(PUT, ["01.1", entry()])
        page.reload()
        if marked(page):
            break
    assert marked(page) == ["01.1"]
    assert beside(page, "01") == f"1 of {len(OWN)}"
    expect(page.locator(".sm-score-trouble")).to_contain_text("opened from a folder")
    page.get_by_text("Your progress").click()
    with page.expect_download():
        page.get_by_role("button", name="Save to a file").click()


# The storage of the browser -----------------------------------------------------------

BOOK = Path(__file__).parents[2] / "book"
# Only storage.js uses it; what a page needs before its first paint is read in its head.
EARLY = {"shardmath_site/folds.js": 1, "shardmath_site/guesses.py": 1}
SHIM = "shardmath_site/templates/layout.html"  # keeps the theme from breaking
KEPT = {
    STORE: json.dumps({"01.1": entry(), "01.2": entry("7", "wrong")}),
    "shardmath.guesses.asks": "no",
    "shardmath.machine.v1": "H100",
    "shardmath.inputs.v1": json.dumps(["6 * 7"]),
    "shardmath.code": "shown",
}


def test_one_script_uses_the_storage_of_the_browser():
    kinds = ("*.js", "*.mjs", "*.html", "*.py")
    files = [path for kind in kinds for path in BOOK.rglob(kind)]
    texts = {path.relative_to(BOOK).as_posix(): path.read_text() for path in files}
    uses = {name: text.count("localStorage") for name, text in texts.items()}
    users = {name for name, count in uses.items() if count}
    assert users == {"_static/storage.js", SHIM, *EARLY}
    assert {name: uses[name] for name in EARLY} == EARLY
    assert all("localStorage.getItem" in texts[name] for name in EARLY)


def test_what_earlier_visits_kept_is_found(new_page, site_url):
    """Under the keys that it had, each by the script that shows it."""
    page = new_page()
    visit(page, f"{site_url}404.html")
    page.evaluate(
        "(kept) => { for (const key in kept) localStorage.setItem(key, kept[key]); }",
        KEPT,
    )
    visit(page, f"{site_url}chapters/01_rooflines.html")
    assert beside(page, "01") == f"1 of {len(OWN)}"
    assert not page.evaluate(
        "document.documentElement.classList.contains('sm-guessing')"
    )
    assert page.locator("details.sm-fold:not([open])").count() == 0
    page.locator(".sm-live [name=chip]").first.hover()
    page.locator(".sm-machine", has_text="Your machine: H100").first.wait_for()
    page.keyboard.press("Control+Backquote")
    field = page.locator(".sm-prompt-input :is(textarea, .cm-content)")
    field.wait_for()
    field.press("ArrowUp")
    page.wait_for_function(
        """() => { const { innerText, value } = document.querySelector(
            ".sm-prompt-input :is(textarea, .cm-content)");
            return (value ?? innerText).trim() === "6 * 7"; }"""
    )
    now = page.evaluate("() => ({ ...localStorage })")
    assert now.items() >= KEPT.items()
