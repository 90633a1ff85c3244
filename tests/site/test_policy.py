"""What a page may load and run, in a real browser: its own, and nothing else."""

import json

import pytest
from live_book import START, Server
from written import CHAPTERS, visit

from shardmath_site.policy import guarded

EXERCISES = CHAPTERS[0].replace("chapters", "exercises")
KINDS = ["index.html", "404.html", CHAPTERS[0], EXERCISES, "search.html"]
KINDS += ["book/notation.html", "book/hardware.html", "book/references.html"]
REPORTS = """window.reports = [];
addEventListener("securitypolicyviolation", (e) =>
    reports.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sample}`));"""
# Whatever way a script or a picture comes into a page that is open.
INJECT = """(url) => {
    const put = (tag, given) => {
        const element = Object.assign(document.createElement(tag), given);
        document.body.append(element);
        return element; };
    put("script", { textContent: "window.ran = 'an inline script'" });
    put("script", { src: `${url}foreign.js` });
    put("img", { src: "data:,", onerror: null }).outerHTML =
        `<img src="data:," onerror="window.ran = 'an attribute'">`;
    put("a", { href: "javascript:window.ran = 'a link'" }).click();
    put("img", { src: `${url}foreign.png` });
    put("iframe", { src: `${url}foreign.html` });
    put("style", { textContent: "body { opacity: 0.5 }" }); }"""
ASK = "(url) => fetch(url).then(() => 'came', () => 'refused')"


@pytest.fixture
def watched(browser):
    """A page whose violations of its policy are counted; nothing else is judged."""
    context = browser.new_context()
    context.add_init_script(REPORTS)
    yield context.new_page()
    context.close()


@pytest.fixture
def foreign(tmp_path):
    """A server of someone else, which lets everyone in and notes what is asked."""
    with Server(tmp_path) as server:
        server.faults[""] = {"Access-Control-Allow-Origin": "*"}
        (tmp_path / "index.html").write_text("<p>Foreign.</p>", "utf-8")
        yield server
        server.shutdown()


def reports(page) -> list[str]:
    return page.evaluate("window.reports")


@pytest.mark.parametrize("name", KINDS)
def test_no_page_asks_for_what_its_policy_refuses(watched, site_url, name):
    visit(watched, site_url + name)
    assert reports(watched) == []


def test_figures_guesses_and_answers_live_under_the_policy(watched, site_url):
    """Python starts and answers; a guess is taken; nothing is refused."""
    visit(watched, site_url + CHAPTERS[0])
    figure = watched.locator(".sm-live").first
    before = figure.locator(".sm-picture").inner_html()
    figure.locator(".sm-more summary").click()
    slider = figure.locator("fieldset:enabled input[type=range]").last
    slider.press("ArrowRight", timeout=START)
    watched.wait_for_function(
        "([e, before]) => e.innerHTML !== before",
        arg=[figure.locator(".sm-picture").element_handle(), before],
    )
    watched.locator(".sm-guess button[value=skip]").first.click()
    assert reports(watched) == []

    visit(watched, site_url + EXERCISES)
    watched.locator(".sm-check input").first.fill("1e30")
    watched.locator(".sm-check button").first.click()
    verdict = ".sm-check .sm-verdict[data-verdict=wrong]"
    watched.locator(verdict).first.wait_for(timeout=START)
    assert "1 begun" in watched.locator(".sm-score-line").first.inner_text()
    assert reports(watched) == []


def test_what_is_injected_does_not_run(watched, site_url, foreign):
    """Neither scripts nor styles, and nobody else is asked for anything."""
    visit(watched, site_url + CHAPTERS[0])
    watched.evaluate(INJECT, foreign.url.removesuffix("index.html"))
    assert watched.evaluate(ASK, foreign.url) == "refused"
    assert watched.evaluate("window.ran") is None
    assert watched.evaluate("getComputedStyle(document.body).opacity") == "1"
    refused = {report.split()[0] for report in reports(watched)}
    assert refused >= {"script-src-elem", "script-src-attr", "style-src-elem"}
    assert refused >= {"img-src", "frame-src", "connect-src"}
    assert foreign.asked == []


def test_the_page_s_python_asks_nobody_else(watched, site_url, foreign):
    """Its worker has the page's policy, though a script that is loaded would not."""
    visit(watched, site_url + EXERCISES)
    with watched.expect_worker() as started:
        watched.locator(".sm-check form:not([hidden]) input").first.focus()
    assert started.value.evaluate(ASK, site_url) == "came"
    assert started.value.evaluate(ASK, foreign.url) == "refused"
    assert foreign.asked == []
    watched.goto(site_url + "_static/mark.svg")
    assert watched.evaluate(ASK, foreign.url) == "came"  # who has no policy can


def test_a_page_has_the_policy_from_a_folder_too(watched, site):
    """Its own files count as its own there, and what is injected does not run."""
    visit(watched, (site / CHAPTERS[0]).as_uri())
    assert reports(watched) == []
    watched.evaluate(INJECT, "https://shardmath.invalid/")
    assert watched.evaluate("window.ran") is None
    assert "script-src-elem" in json.dumps(reports(watched))


PAGE = '<head><meta charset="utf-8">\n<script>go()</script></head><body>{}</body>'


def test_only_scripts_of_the_head_have_a_hash():
    """What a notebook's output writes into the text is none of the site's."""
    plain = guarded(PAGE.format("text"))
    assert plain.count("sha256-") == 1
    assert guarded(PAGE.format("<script>other()</script>")).count("sha256-") == 1
    assert plain.index("Content-Security-Policy") < plain.index("<script>")


def test_a_page_that_was_guarded_is_guarded_anew():
    once = guarded(PAGE.format(""))
    assert guarded(once) == once
    assert guarded(once.replace("go()", "come()")).count("sha256-") == 1
    with pytest.raises(ValueError, match="charset"):
        guarded("<head></head>")
