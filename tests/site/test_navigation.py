"""Finding one's way: contents, theme, search, by pointer and by keyboard."""

import pytest
from written import CHAPTERS, PAGES, visit, written

FIRST_THEME = """new MutationObserver((_, observer) => {
    if (!document.body) return;
    window.firstTheme = document.documentElement.dataset.theme;
    observer.disconnect();
}).observe(document, { childList: true, subtree: true });"""
IS_DRAWN = """(panel) =>
    panel.firstElementChild.checkVisibility({ contentVisibilityAuto: true })"""
RINGS = """() => {
    const ring = ({ outlineStyle, outlineWidth }) => outlineStyle + outlineWidth;
    const at = document.activeElement;
    return ring(getComputedStyle(at.querySelector(".toctree-toggle") ?? at)); }"""
LINK_COLOURS = """[...document.querySelectorAll(
    "article a.external, article a.internal:not([href^='#'])")]
    .map((a) => getComputedStyle(a).color)"""
FOLDS_OPEN = "[...document.querySelectorAll('.sm-fold')].map((fold) => fold.open)"


def test_top_is_the_front_page(page, site_url):
    """Who opens the site's address is there, and comes back to it from anywhere."""
    visit(page, site_url + CHAPTERS[0])
    page.locator(".sm-name").click()
    page.wait_for_url(f"{site_url}index.html")
    visit(page, site_url)
    assert page.locator(".sm-doors").is_visible()
    assert page.title().startswith("Shardmath: ")


def test_top_names_its_icon(site):
    """Else a browser asks for one at the top, where there is none."""
    links = written(site, "index.html").links
    icons = [site / link for link in links if (site / link).suffix == ".svg"]
    assert [icon.is_file() for icon in icons] == [True]


def test_sidebar_toggle_wide(page, site_url):
    """The button hides the contents and brings them back."""
    visit(page, site_url + PAGES[0])
    sidebar = page.locator("#pst-primary-sidebar")
    toggle = page.locator("button.primary-toggle")
    assert sidebar.is_visible()
    toggle.click()
    sidebar.wait_for(state="hidden")
    toggle.click()
    sidebar.wait_for(state="visible")


def test_sidebar_toggle_narrow(new_page, site_url):
    """On a phone the contents open over the page, lead on, and close by Escape."""
    page = new_page(width=390)
    visit(page, site_url + PAGES[0])
    link = page.locator("nav[aria-label=Book] a", has_text="Notation")
    assert not link.is_visible()
    page.get_by_role("button", name="Table of contents").press("Enter")
    link.wait_for(state="visible")
    page.keyboard.press("Escape")
    link.wait_for(state="hidden")
    page.get_by_role("button", name="Table of contents").click()
    link.click()
    page.wait_for_url("**/notation.html")


def test_theme_button(page, site_url):
    """The choice of light or dark holds on the next page."""
    visit(page, site_url + PAGES[0])
    theme = "document.documentElement.dataset.theme"
    button = page.locator(".theme-switch-button")
    for _ in range(3):
        if page.evaluate(theme) != "dark":
            button.click()
    visit(page, site_url + "book/notation.html")
    assert page.evaluate(theme) == "dark"


REFUSED = """Object.defineProperty(window, "localStorage",
    { get() { throw new Error("refused"); } });"""
FULL = """Storage.prototype.setItem = () => { throw new Error("full"); };"""


@pytest.mark.parametrize("storage", [REFUSED, FULL], ids=["refused", "full"])
def test_nothing_is_lost_where_nothing_can_be_kept(new_page, site_url, storage):
    """Contents on a phone, search and colours, in browsers that store nothing."""
    page = new_page(width=390)
    page.add_init_script(storage)
    visit(page, site_url + CHAPTERS[0])
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog").wait_for()
    page.keyboard.press("Escape")
    before = page.evaluate("document.documentElement.dataset.mode")
    page.locator("button.theme-switch-button").locator("visible=true").click()
    assert page.evaluate("document.documentElement.dataset.mode") != before
    page.locator("button.primary-toggle").click()
    page.locator("dialog .bd-links").wait_for()


def test_search_box_keeps_icon_and_words_apart(page, site_url):
    """In the dialog and on the page of results."""
    for name, form in ((PAGES[0], "#pst-search-dialog"), ("search.html", "main form")):
        visit(page, site_url + name)
        page.keyboard.press("Control+k")
        icon = page.locator(f"{form} .fa-magnifying-glass").bounding_box()
        field = page.locator(f"{form} input").bounding_box()
        assert icon["x"] + icon["width"] <= field["x"] + 6


def test_drawer_of_a_phone_searches(new_page, site_url):
    """The button in it shows its name and opens the dialog.

    It is opened from a bar whose buttons a thumb can hit.
    """
    page = new_page(width=390)
    visit(page, site_url + CHAPTERS[0])
    bar = page.locator(".bd-header-article :is(button, a)").locator("visible=true")
    assert min(one.bounding_box()["height"] for one in bar.all()) >= 24
    page.get_by_role("button", name="Table of contents").click()
    search = page.locator(".search-button-field")
    assert search.inner_text().strip() == "Search"
    search.click()
    page.locator("#pst-search-dialog input").wait_for(state="visible")


def test_only_the_page_itself_is_marked_in_the_contents(page, site_url):
    """Not the chapter above it: its mark would lie on its name."""
    visit(page, site_url + CHAPTERS[0].replace("chapters", "exercises"))
    links = page.locator("nav[aria-label=Book] .current > a")
    shadow = "(link) => getComputedStyle(link).boxShadow === 'none'"
    assert [link.evaluate(shadow) for link in links.all()] == [True, False]


def test_focus_is_seen_everywhere(page, site_url):
    """The same ring on every stop from the top to the text; links look alike."""
    visit(page, site_url + CHAPTERS[0])
    rings = set()
    while page.evaluate("!document.activeElement.closest('article')"):
        page.keyboard.press("Tab")
        rings.add(page.evaluate(RINGS))
    assert rings == {"solid2px"}
    assert len(set(page.evaluate(LINK_COLOURS))) == 1


def test_icons_need_no_font(page, site_url):
    """A link to GitHub begins with its name, not with a box for a glyph not shipped."""
    visit(page, site_url + "book/references.html")
    link = page.locator("a.github").first
    assert link.evaluate("(a) => getComputedStyle(a, '::before').content") == "none"


def test_phone_without_scripts_has_contents(new_page, site_url):
    """A link at the top leads to the book's contents below the text."""
    page = new_page(width=390, scripts=False)
    page.goto(site_url + CHAPTERS[0])
    page.get_by_role("link", name="Table of contents").click()
    link = page.locator("nav[aria-label=Book] a", has_text="Notation")
    assert link.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_code_is_folded_and_shown(page, site_url):
    """By one button with the keyboard; the next page comes as this one was left."""
    visit(page, site_url + CHAPTERS[0])
    assert set(page.evaluate(FOLDS_OPEN)) == {False}
    page.get_by_role("button", name="Code: folded").press("Enter")
    assert set(page.evaluate(FOLDS_OPEN)) == {True}
    page.locator(".sm-fold button.copybtn").first.wait_for(state="attached")
    visit(page, site_url + CHAPTERS[1])
    assert set(page.evaluate(FOLDS_OPEN)) == {True}
    page.get_by_role("button", name="Code: shown").click()
    assert set(page.evaluate(FOLDS_OPEN)) == {False}
    page.evaluate("document.querySelector('.sm-fold pre').id = 'here'")
    page.evaluate("location.hash = 'here'")
    page.locator("#here").wait_for(state="visible")


def test_what_scrolls_sideways_says_so(new_page, site_url):
    """It fades where it goes on, and there alone; the keyboard reaches it."""
    page = new_page(width=390)
    visit(page, site_url + "book/hardware.html")
    box = page.locator(".sm-hardware .pst-scrollable-table-container").first
    box.and_(page.locator("[data-more='end'][tabindex='0']")).wait_for()
    box.evaluate("(box) => box.scrollTo(box.scrollWidth, 0)")
    box.and_(page.locator("[data-more='start']")).wait_for()
    page.set_viewport_size({"width": 2600, "height": 900})
    box.and_(page.locator(":not([data-more])")).wait_for()


def test_notes_stand_beside_the_text_where_there_is_room(page, site_url):
    """One left edge for text and code, one right edge for code and notes."""
    visit(page, site_url + "chapters/11_context_parallelism.html")
    article = page.locator("article").bounding_box()
    text, note = page.locator(".sm-beside > *").all()[:2]
    left, beside = text.bounding_box(), note.bounding_box()
    assert left["x"] == article["x"]
    assert beside["x"] > left["x"] + left["width"]
    right = article["x"] + article["width"]
    assert beside["x"] + beside["width"] == pytest.approx(right, abs=1)
    page.set_viewport_size({"width": 1000, "height": 900})
    above, below = text.bounding_box(), note.bounding_box()
    assert below["x"] == above["x"]
    assert below["y"] >= above["y"] + above["height"]


def test_colours_are_known_before_the_theme_runs(new_page, site_url):
    """Else a first page in the dark would flash, and all styles be worked out twice."""
    page = new_page(scheme="dark")
    page.add_init_script(FIRST_THEME)
    visit(page, site_url + CHAPTERS[0])
    assert page.evaluate("firstTheme") == "dark"


def test_a_drawing_has_its_place_before_it_is_drawn(page, site_url):
    """Far from the screen it is not laid out, and nothing moves when it is."""
    visit(page, site_url + CHAPTERS[0])
    panel = page.locator(".sm-panel:has(svg):visible").last
    before = panel.bounding_box()
    assert not panel.evaluate(IS_DRAWN)
    panel.evaluate("(e) => e.scrollIntoView({ behavior: 'instant' })")
    page.wait_for_function(IS_DRAWN, arg=panel.element_handle())
    after = panel.bounding_box()
    assert (after["width"], after["height"]) == (before["width"], before["height"])
