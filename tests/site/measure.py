"""How a page is laid out: open code, distances of pictures, stages of live figures.

And what it tells before a reader has guessed.
"""

import re
from dataclasses import dataclass

SCREEN = {"width": 1280, "height": 900}
MOST_CODE = 0.15  # of the page's height
LONGEST_STRETCH = 3.0  # screens without a picture
MOST_SCREENS = 26  # before any guess
MOST_OVER = 10  # pixels: a gap that nobody sees
MEASURE = """() => {
    const article = document.querySelector("article").getBoundingClientRect();
    const box = (e) => e.getBoundingClientRect();
    const all = (selector) => [...document.querySelectorAll(`article :is(${selector})`)]
        .filter((e) => e.checkVisibility() && box(e).height > 0);
    const outermost = (found) =>
        found.filter((e) => !found.some((o) => o !== e && o.contains(e)));
    const code = outermost(all(".cell_input, div.highlight"))
        .filter((e) => !e.closest(".cell_output, details:not(.sm-fold)"));
    const seen = outermost(all("figure, .sm-drawing, .sm-live, .cell_output img"))
        .map((e) => [box(e).top - article.top, box(e).bottom - article.top])
        .sort(([a], [b]) => a - b);
    let from = 0, stretch = 0;
    for (const [top, bottom] of [...seen, [article.height, article.height]]) {
        stretch = Math.max(stretch, top - from);
        from = Math.max(from, bottom);
    }
    const tall = all(".sm-beside > blockquote")
        .map((e) => box(e).bottom - box(e.previousElementSibling).bottom);
    const height = code.reduce((sum, e) => sum + box(e).height, 0);
    return {
        screens: article.height / innerHeight,
        code: height / article.height,
        stretch: stretch / innerHeight,
        note: Math.max(0, ...tall),
        opens_with_picture: seen.some(([top]) => top + article.top < innerHeight),
    };
}"""

# At this width of the screen, a picture and its first control take so many pixels.
MOST_STAGE = {1280: 700, 390: 640}
STAGES = """() => [...document.querySelectorAll(".sm-live:has(.sm-numbers)")]
    .map((figure) => {
    const box = (selector) => figure.querySelector(selector).getBoundingClientRect();
    const { top, width } = figure.getBoundingClientRect();
    const lines = (e) => new Set([...e.getClientRects()].map((r) => r.top)).size;
    const numbers = figure.querySelector(".sm-numbers").open;
    for (const fold of figure.querySelectorAll("details")) fold.open = true;
    const broken = [...figure.querySelectorAll("b, .sm-value")]
        .filter((e) => lines(e) > 1).map((e) => e.textContent);
    for (const fold of figure.querySelectorAll("details")) fold.open = false;
    return {
        name: figure.dataset.figure,
        width,
        article: figure.closest("article").getBoundingClientRect().width,
        first: box(".sm-row > .sm-control").bottom - top,
        order: box(".sm-picture").bottom <= box(".sm-row").top
            && box(".sm-row").bottom <= box(".sm-line").top,
        rows: new Set([...figure.querySelectorAll(".sm-controls .sm-row > *")]
            .map((e) => e.getBoundingClientRect().bottom)).size,
        numbers,
        broken }; })"""


@dataclass(frozen=True)
class Reading:
    """What a reader scrolls through on one page, on a screen of 1280 × 900."""

    screens: float  # the page's height, in screens
    code: float  # share of that height that open code takes
    stretch: float  # longest way without a picture, in screens
    note: float  # by how many pixels a note is taller than the text beside it
    opens_with_picture: bool

    def faults(self) -> list[str]:
        """What is more than a chapter should have."""
        told = []
        if self.code > MOST_CODE:
            told.append(f"open code is {self.code:.0%} of the page: at most 15%")
        if self.stretch > LONGEST_STRETCH:
            told.append(f"{self.stretch:.1f} screens without a picture: at most 3")
        if self.note > MOST_OVER:
            told.append(f"a note ends {self.note:.0f} px below the text beside it")
        if not self.opens_with_picture:
            told.append("no picture on the first screen")
        return told


def reading(page, url: str) -> Reading:
    """Measure the chapter at `url`, code folded, results not hidden behind guesses."""
    page.set_viewport_size(SCREEN)
    page.add_init_script('localStorage.setItem("shardmath.guesses.asks", "no")')
    page.goto(url, wait_until="networkidle")
    page.wait_for_function("() => document.fonts.status === 'loaded'")
    return measured(page)


def measured(page) -> Reading:
    """The same of a page that is open, 1280 × 900 and as it is."""
    return Reading(**page.evaluate(MEASURE))


def misplaced(page, width: int) -> list[str]:
    """What is wrong with the stages of a page's live figures, at this width of it.

    A picture and its first control are seen together, at the full width of the page;
    below come its controls and the line that it says. Each number stands beside its
    unit, and the table is closed.
    """
    told = []
    for stage in page.evaluate(STAGES):
        wrong = {
            f"picture and control take {stage['first']:.0f} px": stage["first"]
            > MOST_STAGE[width],
            f"{stage['width']:.0f} px wide": abs(
                stage["width"] - min(816, stage["article"])
            )
            > 1,
            "not in order": not stage["order"],
            f"values on two lines: {stage['broken']}": stage["broken"],
            f"{stage['rows']} rows of controls": width > 390 and stage["rows"] != 1,
            "its table is open": stage["numbers"],
        }
        told += [f"{stage['name']}: {what}" for what, is_so in wrong.items() if is_so]
    return told


TOLD_BEFORE = """() => [...document.querySelectorAll(".sm-guess")].map((form) => {
    const said = document.getElementById(`${form.dataset.anchor}-answer`).textContent;
    const above = document.createRange();
    above.setStart(form.closest("section"), 0);
    above.setEndBefore(form);
    return [said, above.toString()];
})"""


def told_too_early(page) -> list[str]:
    """What a chapter shows, with no guess made, of the answers that should wait.

    All that a guess opens should be out of sight, and no number that it asks for should
    stand above it in its section.
    """
    waiting = page.locator(".sm-behind")
    if not waiting.count():
        return ["no guess is asked for"]
    found = waiting.evaluate_all(
        "all => all.filter((e) => e.firstElementChild.checkVisibility())"
        ".map((e) => `${e.id} is seen`)"
    )
    for said, above in page.evaluate(TOLD_BEFORE):
        answer = spaced(said).partition(":")[2].strip(" .")
        if number := re.fullmatch(r"([\d.,]+)\s?(\D+)", answer):  # with its unit
            wanted = r"\s?".join(map(re.escape, number.groups()))
            if re.search(rf"(?<![\d.,]){wanted}(?!\w)", spaced(above)):
                found.append(f"{answer} stands above its guess")
    return found


def spaced(text):
    """The text with plain single spaces."""
    return " ".join(text.split())
