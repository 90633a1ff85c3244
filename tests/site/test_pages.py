"""What a reader of any page relies on, in a real browser: one load, several questions.

The tests of one page run on one worker, those of different pages on any.
"""

import json

import pytest
from measure import MOST_SCREENS, measured, misplaced, told_too_early
from written import AXE, CHAPTERS, PAGES, specimens, visit

each_page = pytest.mark.parametrize("name", PAGES)
EXERCISES = [name for name in PAGES if name.startswith("exercises/")]
# Pages of exercises are made from the same few kinds of questions: axe looks at every
# third, and at those that hold a component which no page before has.
ALIKE = {name for n, name in enumerate(EXERCISES) if n % 3}
MOST_SPECIMENS = 11
# What dark colours can break on a wide screen, and in addition on a phone; all else is
# the same in light ones, where every rule is asked about both.
DARK_RULES = {
    1280: {"runOnly": ["color-contrast", "link-in-text-block"]},
    390: {"runOnly": ["color-contrast"]},
}
HIDDEN = """(selector) => [...document.querySelectorAll(selector)].filter((e) => {
    const box = e.getBoundingClientRect();
    const visible = e.checkVisibility({ visibilityProperty: true });
    return !(box.width && box.height && visible);
}).filter((e) => !e.closest("details")).map((e) => e.outerHTML.slice(0, 160))"""
WITHIN = """const within = (names) => names.map((name) => {
    const [tag, style] = name.split(/\\.(.*)/s);
    return style ? `${tag}.${CSS.escape(style)}` : tag; });"""
RUN = f"""([names, options]) => {{
    {WITHIN}
    const include = within(names).map((name) => [name]);
    return axe.run(include.length ? {{ include }} : document, options); }}"""
# Text has the contrast of other text of its kind, of one colour, size, weight and class
# on the same grounds, the backgrounds of its ancestors: one of a kind is looked at.
MARK = f"""([names, known]) => {{
    {WITHIN}
    const plain = "rgba(0, 0, 0, 0),none,1", grounds = new Map(), seen = new Set(known);
    const ground = (e) => {{
        if (!e) return "";
        if (!grounds.has(e)) {{
            const {{ backgroundColor, backgroundImage, opacity }} = getComputedStyle(e);
            const own = `${{[backgroundColor, backgroundImage, opacity]}}`;
            const below = ground(e.parentElement);
            grounds.set(e, own === plain ? below : `${{below}}|${{own}}`);
        }}
        return grounds.get(e); }};
    const named = (e) => `${{e.localName}}.${{e.getAttribute("class")}}`;
    const isText = (n) => n.nodeType === Node.TEXT_NODE && n.data.trim();
    const says = (e) =>
        e.matches("input, select, textarea") || [...e.childNodes].some(isText);
    const looked = within(names).join();
    for (const e of document.querySelectorAll("body *")) {{
        e.removeAttribute("data-contrast");
        if (!says(e) || !e.checkVisibility({{ visibilityProperty: true }})) continue;
        if (looked && !e.closest(looked)) continue;
        const {{ color, fontSize, fontWeight }} = getComputedStyle(e);
        const kind = [named(e), named(e.parentElement), color, fontSize, fontWeight,
            ground(e)].join();
        if (!seen.has(kind)) e.setAttribute("data-contrast", "");
        seen.add(kind);
    }}
    return [...seen]; }}"""
ONCE = """axe.configure({ rules: [
    { id: "color-contrast", selector: "[data-contrast]" }] })"""
HEADER = """document.querySelector(".bd-header-article")
    ?.style.setProperty("position", "static", "important")"""
# Formulas as drawn, listings and the parts of drawings: half of a chapter's elements.
# Drawings with a role of their own have no parts for those whom axe speaks for, and a
# listing is plain text to them. What has text of a new kind is looked at.
BARE = """() => {
    const drop = (e, keep) => e.replaceChildren(...e.querySelectorAll(keep));
    const plain = (e) => !e.querySelector("[data-contrast], a, button, [tabindex]");
    for (const e of document.querySelectorAll(".katex-html")) e.replaceChildren();
    for (const e of document.querySelectorAll("pre"))
        if (plain(e)) e.textContent = e.textContent;
    for (const e of document.querySelectorAll("svg[role=img]"))
        if (plain(e)) drop(e, ":scope > :is(title, desc)"); }"""
MOST_ROWS = 100  # of a table: the rest are like them
SHORTEN = f"""document.querySelectorAll("tbody").forEach((body) =>
    [...body.rows].slice({MOST_ROWS}).forEach((row) => row.remove()))"""
# Names of controls that reach into the values beside them.
ON_VALUES = """() => [...document.querySelectorAll(".sm-control:has(.sm-value)")]
    .filter((e) => {
        const box = (part) => e.querySelector(part).getBoundingClientRect();
        return box("label > span").right > box(".sm-value").left; })
    .map((e) => e.innerText)"""
# Values that reach out of their control, into the next one.
OUTSIDE = """() => [...document.querySelectorAll(".sm-control:has(.sm-value)")]
    .filter((e) => {
        const value = e.querySelector(".sm-value").getBoundingClientRect();
        return value.right > e.getBoundingClientRect().right + 1; })
    .map((e) => e.innerText)"""
# Colours change by transitions, which take longer on a busy machine.
FADED = """() => !document.getAnimations().some(
    (e) => e instanceof CSSTransition && e.playState === "running")"""
OVERFLOW = "document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="session")
def kinds() -> set[str]:
    """The kinds of text whose contrast was looked at, on any page of this worker."""
    return set()


def complaints(page, options=None, within=(), kinds=None, bare=False) -> str:
    """What axe finds, `within` elements ("tag.class") or all, folds opened.

    The contrast of `kinds` is known; those that are looked at join them. With `bare`
    the page loses the elements that say nothing to axe, and cannot be used after.
    """
    kinds = set() if kinds is None else kinds
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate("scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })")
    # What it covers for the moment would count as too small to be hit.
    page.evaluate(HEADER)
    page.evaluate(SHORTEN)
    if page.evaluate("!window.axe"):
        page.evaluate(AXE.read_text("utf-8"))
        page.evaluate(ONCE)
    kinds.update(page.evaluate(MARK, [list(within), list(kinds)]))
    if bare:
        page.evaluate(BARE)
    options = {"resultTypes": ["violations"], "preload": False} | (options or {})
    found = page.evaluate(RUN, [list(within), options])
    return "\n".join(
        f"{v['impact']}: {v['id']}: {n['html'][:160]} {json.dumps(n['any'])[:300]}"
        for v in found["violations"]
        for n in v["nodes"][:5]
    )


@each_page
def test_accessible_and_fits_a_phone(new_page, site, site_url, name, kinds):
    """At 390 px nothing sticks out, and axe finds nothing: what scrolls has a key.

    A chapter also keeps to its form: little open code, a picture on its first screen
    and one at least every three. Before any guess, it is not too long and tells no
    answer. Then no guess is asked for, so that all is looked at. Of a live figure, the
    picture and its first control are seen together.

    Few pages hold every component: on these axe looks at it on a wide screen too, and
    in every view at what depends on the view.
    """
    page = new_page()
    visit(page, site_url + name)
    assert page.evaluate(OVERFLOW) <= 0
    if name in CHAPTERS:
        closed = measured(page)
        assert closed.faults() == []
        assert closed.screens <= MOST_SCREENS
        assert told_too_early(page) == []
        page.get_by_label("Ask me to guess").uncheck()
        assert measured(page).faults() == []
    is_live = page.locator(".sm-live").count() > 0
    if is_live:
        page.wait_for_selector(".sm-controls:not(:disabled)", state="attached")
        assert misplaced(page, 1280) == []
        assert page.evaluate(OUTSIDE) == []
    show(page, 390, "light")
    page.wait_for_timeout(200)  # the theme looks once more which boxes scroll
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(ON_VALUES) == []
    assert page.evaluate(OUTSIDE) == []
    assert not is_live or misplaced(page, 390) == []
    if name in specimens(site):
        added = specimens(site)[name]
        show(page, 1280, "light")
        assert not complaints(page, within=added, kinds=kinds)
        for width, rules in DARK_RULES.items():
            show(page, width, "dark")
            assert not complaints(page, rules, added, kinds), f"dark, {width} px"
        show(page, 390, "light")
    if name in specimens(site) or name not in ALIKE:
        assert not complaints(page, kinds=kinds, bare=True)


def show(page, width: int, scheme: str) -> None:
    """The page at this width, in these colours, once they have come."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(
        "(scheme) => document.documentElement.dataset.theme === scheme", arg=scheme
    )
    page.wait_for_timeout(200)  # boxes find their width
    page.wait_for_function(FADED)


def test_specimens_are_few(site):
    """Else the pages that add a component alone should be looked at."""
    assert len(specimens(site)) <= MOST_SPECIMENS


def test_reads_without_scripts(unscripted, site, site_url):
    """Text, formulas, figures and tables are there; dead buttons are not.

    Few pages hold every component of the site; they stand for the rest.
    """
    page = unscripted
    for name in specimens(site):
        page.goto(site_url + name)
        assert page.locator("h1").first.is_visible(), name
        assert len(page.locator("article").inner_text()) > 200, name
        shown = "article :is(.katex-html, img, table, figure)"
        assert page.evaluate(HIDDEN, shown) == [], name
        assert page.locator("nav[aria-label=Book] a").nth(1).is_visible(), name
        assert page.locator("button:visible").count() == 0, name


@pytest.mark.parametrize("name", CHAPTERS[::6])
def test_reads_from_a_folder(page, site, name):
    """A chapter opened by a double click shows itself without complaint.

    All load the same scripts; four of them stand for the rest.
    """
    visit(page, (site / name).as_uri())
    assert page.locator("h1").first.is_visible()
