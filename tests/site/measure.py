"""How much of a chapter's page is open code, and how far apart its pictures stand."""

from dataclasses import dataclass

SCREEN = {"width": 1280, "height": 900}
MOST_CODE = 0.15  # of the page's height
LONGEST_STRETCH = 3.0  # screens without a picture
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
