"""The editor in the page, and functions that are written in it and judged."""

import gzip
from pathlib import Path

import pytest
from live_book import START
from written import AXE, CHAPTERS, visit

from shardmath.exercises import answers, judge_function
from shardmath.exercises.kinds import Function, Traffic

MOST = 150_000  # bytes on the wire, all that it brings
EXERCISES = CHAPTERS[0].replace("chapters", "exercises")
MOUNT = """async ([url, given]) => {
    const { mountEditor } = await import(url);
    document.querySelector("article").replaceChildren();
    window.ran = [];
    const options = { label: "Your function", onRun: (text) => ran.push(text),
        complete: async (text, at) => ({ from: at - 2, options: [
            { label: "math.log" }, { label: "math.exp" }] }), ...given };
    window.editor = mountEditor(document.querySelector("article"), options);
    const after = document.createElement("button");
    after.id = "after";
    document.querySelector("article").append(after);
    editor.focus(); }"""
REPORTS = """window.reports = [];
addEventListener("securitypolicyviolation", ({ effectiveDirective: refused }) =>
    reports.push(refused));"""


@pytest.fixture(scope="module")
def scripts(site) -> Path:
    """The folder with the scripts of the pages."""
    return next(site.glob("_static/live/*/host.js")).parent


@pytest.fixture
def mount(page, site_url, site, scripts):
    """Put an editor, and a button behind it, into a page of the book."""
    page.set_default_timeout(START)
    page.add_init_script(REPORTS)
    page.goto(site_url + EXERCISES)
    url = site_url + (scripts / "editor.js").relative_to(site).as_posix()

    def mounted(**given):
        page.evaluate(MOUNT, [url, given])
        return page.locator(".cm-content")

    yield mounted
    assert page.evaluate("reports") == []


def test_the_editor_is_small_and_says_whose_it_is(scripts):
    """One file that asks for no other; the texts of its licences lie beside it."""
    code = (scripts / "editor.js").read_text("utf-8")
    assert len(gzip.compress(code.encode(), 6)) <= MOST
    assert not any(word in code for word in ("import(", "from'", 'from"'))
    notice = (scripts / "editor.NOTICE.txt").read_text("utf-8")
    assert notice.count("Permission is hereby granted") == notice.count("(MIT)") > 5
    assert "@codemirror/view 6." in notice


def test_it_is_worked_with_the_keyboard(page, mount):
    """Lines are indented as Python has them; no key is a trap."""
    field = mount(doc="def f(x):\n    return x\n")
    assert page.evaluate("document.activeElement.className").startswith("cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.type("if True:\n1 / 2")  # "/" is a key of the page
    page.keyboard.press("Control+Enter")
    assert page.evaluate("ran") == ["def f(x):\n    return x\nif True:\n    1 / 2"]
    for _ in range(4):
        page.keyboard.press("Control+z")
    assert page.evaluate("editor.text()") == "def f(x):\n    return x\n"

    page.evaluate("editor.set('ma')")
    page.keyboard.press("Tab")
    page.locator(".cm-tooltip li[aria-selected]", has_text="math.exp").wait_for()
    page.wait_for_timeout(100)  # a key that comes at once is not meant for the list
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate("editor.text()") == "math.log"

    page.evaluate("editor.set('')")
    page.keyboard.press("Tab")
    assert page.evaluate("editor.text()") == "    "
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "after"
    assert "Escape, then Tab" in field.get_attribute("aria-label")
    assert field.get_attribute("role") == "textbox"


def test_it_has_its_styles_under_the_policy(page, mount):
    """Colours of the page, letters that no phone zooms into, no sideways page."""
    page.set_viewport_size({"width": 390, "height": 800})
    field = mount(doc="def f(x): return " + " + ".join(["x"] * 90))
    style = field.evaluate(
        """(e) => { const of = (e) => getComputedStyle(e);
            const ground = (name) => of(document.querySelector(name)).backgroundColor;
            return { size: of(e).fontSize, space: of(e).whiteSpace,
                grounds: [".cm-editor", ".cm-gutters"].map(ground),
                word: of(e.querySelector("span")).color, text: of(e).color }; }"""
    )
    assert (style["size"], style["space"]) == ("16px", "pre")
    assert style["word"] != style["text"]
    assert len(set(style["grounds"])) == 1  # no line is seen through its number
    wide = "document.documentElement.scrollWidth > innerWidth"
    assert not page.evaluate(wide)


def test_a_prompt_runs_by_enter(page, mount):
    mount(singleLine=True, doc="1 +")
    page.keyboard.press("Control+End")
    page.keyboard.type(" 1")
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Enter")
    assert page.evaluate("ran") == ["1 + 1"]
    assert page.evaluate("editor.text()") == "1 + 1\n"
    assert page.locator(".cm-lineNumbers").count() == 0


# Questions ----------------------------------------------------------------------------

ASKED = [
    record
    for record in answers.questions().values()
    if isinstance(record, Function | Traffic)
]
JUDGE = """async ([url, asked]) => {
    const { call } = await import(url);
    const judged = [];
    for (const [question, source] of asked)
        judged.push(await call("shardmath.exercises", "judge_function",
            { question, source, attempts: 0 }, `ch${question.slice(0, 2)}`));
    return judged; }"""
ENDLESS = "def bounds(B, D, F, peak, bandwidth):\n    while True: pass\n"
ASKS = "def bounds(B, D, F, peak, bandwidth):\n    return input('how?')\n"
LEAVES = "import os\nos._exit(1)\n"
KEPT = "() => Shardmath.answers.of('01.9')"


def wrong(record) -> str:
    """The source of an answer that is wrong: the record's first slip, if it has one."""
    if isinstance(record, Function) and record.slips:
        slip = f"answers.find({record.id!r}).slips[0].wrong"
        return f"from shardmath.exercises import answers\n{record.answer} = {slip}"
    return f"def {record.answer}(*given):\n    return repr(given)"


def test_every_function_is_judged_in_the_page_as_in_the_notebook(
    page, site_url, site, scripts
):
    """Every solution, with what the pack of its chapter holds; some stubs and slips."""
    page.set_default_timeout(START)
    visit(page, site_url + "404.html")
    sources, verdicts = [], []
    for n, record in enumerate(ASKED):
        tried = {"correct": record.code}
        if n % 4 == 0:
            tried |= {"todo": record.stub, "wrong": wrong(record)}
        sources += [(record.id, source) for source in tried.values()]
        verdicts += tried
    url = site_url + (scripts / "engine.js").relative_to(site).as_posix()
    judged = page.evaluate(JUDGE, [url, sources])
    assert [found["verdict"] for found in judged] == verdicts
    for (question, source), found in zip(sources, judged, strict=True):
        assert found == judge_function(question, source), question


@pytest.fixture
def asked(page, site_url):
    """The place for the answer to question 01.9, not touched yet."""
    page.set_default_timeout(START)
    page.clock.install()
    visit(page, site_url + EXERCISES)
    return page.locator('[data-question="01.9"]')


def verdict(asked, kind: str) -> str:
    asked.locator(f".sm-verdict[data-verdict={kind}]").wait_for()
    return asked.locator(".sm-verdict").inner_text()


def test_a_function_is_written_and_judged_in_the_page(page, asked):
    record = answers.find("01.9")
    height = asked.bounding_box()["height"]
    asked.locator("textarea").click()
    asked.locator(".cm-content").wait_for()
    assert asked.bounding_box()["height"] == pytest.approx(height, abs=2)
    assert page.evaluate("document.activeElement.role") == "textbox"

    # A wrong one: what it printed, the case with units, the line of an error.
    source = f"{record.stub.removesuffix('...')}\n    print(B)\n    return B / (D - D)"
    write(page, source)
    page.keyboard.press("Control+Enter")
    said = judge_function("01.9", source)
    assert verdict(asked, "wrong") == said["message"]
    assert "(line 3: return B / (D - D))" in said["message"]
    assert asked.locator(".sm-printed").inner_text() == said["printed"]
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run('[data-question=\"01.9\"]')")
    assert found["violations"] == []

    # Nobody is asked, and the browser has nothing to complain of (see `new_page`).
    write(page, ASKS)
    page.keyboard.press("Control+Enter")
    asked.locator(".sm-verdict", has_text="EOFError").wait_for()

    # Nor has it a way to the scripts that wait for it.
    write(page, f"import js\njs.close()\n{record.code}")
    page.keyboard.press("Control+Enter")
    asked.locator(".sm-verdict", has_text="the page's Python has no js").wait_for()

    # One that does not end is stopped, and the next is judged by a new Python.
    write(page, ENDLESS)
    assert asked.locator(".sm-verdict").get_attribute("data-verdict") == "past"
    asked.get_by_role("button", name="Check").click()
    for _ in range(60):
        page.clock.fast_forward(1_000)
        page.wait_for_timeout(50)
        if "stopped after 10 s" in asked.locator(".sm-verdict").inner_text():
            break
    assert "Does it end" in verdict(asked, "invalid")
    write(page, record.code)
    page.keyboard.press("Control+Enter")
    assert "right on" in verdict(asked, "correct")

    # What is kept is there again, before it is touched.
    page.reload()
    assert "right on" in verdict(asked, "correct")
    assert asked.locator("textarea").input_value() == record.code
    page.keyboard.press("Tab")
    asked.locator("textarea").fill(f"{record.code}\n# a thought")
    page.clock.fast_forward(1_000)
    page.wait_for_function(f"{KEPT[6:]}.text.endsWith('thought')")
    kept = page.evaluate(KEPT)
    assert kept["best"] == "right"
    assert "verdict" not in kept

    # What another tab keeps, or erases, is seen here.
    page.evaluate("Shardmath.answers.put('01.9', { text: 'x = 1', attempts: 0 })")
    assert asked.locator(".cm-content").inner_text() == "x = 1"
    page.evaluate("Shardmath.answers.erase()")
    assert asked.locator(".cm-content").inner_text().strip() == record.stub
    page.clock.fast_forward(1_000)
    assert page.evaluate(KEPT) is None

    # Nothing is thrown away unasked.
    write(page, "# a thought")
    page.clock.fast_forward(1_000)
    page.once("dialog", lambda dialog: dialog.dismiss())
    asked.get_by_role("button", name="Start again").click()
    assert "thought" in page.evaluate(KEPT)["text"]
    page.once("dialog", lambda dialog: dialog.accept())
    asked.get_by_role("button", name="Start again").click()
    assert asked.locator(".cm-content").inner_text().strip() == record.stub


def write(page, text: str) -> None:
    """Replace what stands in the editor that has the focus."""
    page.locator(".cm-content").focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_without_the_editor_a_text_area_does(browser, site_url):
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(START)
    page.route("**/editor.js", lambda route: route.abort())
    visit(page, site_url + EXERCISES)
    asked = page.locator('[data-question="01.9"]')
    for source, kind, said in [
        (LEAVES, "invalid", "Python broke down"),
        (answers.find("01.9").code, "correct", "right on"),  # by another Python
    ]:
        asked.locator("textarea").fill(source)
        asked.locator("textarea").press("Control+Enter")
        assert said in verdict(asked, kind)
    context.close()


def test_a_script_that_does_not_arrive_is_told_where_it_is_missed(browser, site_url):
    with browser.new_context() as context:
        page = context.new_page()
        page.route("**/host.js*", lambda route: route.abort())
        for address, place in [
            (EXERCISES, ".sm-check .sm-verdict"),
            (CHAPTERS[0], ".sm-live .sm-message"),
        ]:
            page.goto(site_url + address)
            told = page.locator(place)
            told.get_by_text("did not arrive: reload the page").first.wait_for()
            assert len({*told.all_text_contents()}) == 1


def test_without_scripts_the_stub_is_there_and_where_to_answer(new_page, site_url):
    page = new_page(scripts=False)
    visit(page, site_url + EXERCISES)
    asked = page.locator('[data-question="01.9"]')
    assert answers.find("01.9").stub in asked.inner_text()
    assert "in Jupyter" in asked.inner_text()
    assert asked.locator("button, textarea").count() == 0
