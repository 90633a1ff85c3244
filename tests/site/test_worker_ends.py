"""A worker that ends, falls silent, or waits for a pack that does not come.

A reader who asked then gets the answer from another worker, or is told plainly.
"""

import pytest
from live_book import QUESTION, expect_failure, slider, wait_for
from test_live_start import SAVING, type_answer

from shardmath.exercises import judge_number

PACK = f"ch{QUESTION[:2]}.pack"
CLOSES = "setTimeout(() => self.close())"
DEAF = "self.onmessage = () => {}"
NO_LOCKS = "Object.defineProperty(Navigator.prototype, 'locks', {value: undefined})"
# A worker that ends whenever it is about to run something, without a word.
ENDS = """
const say = self.postMessage.bind(self);
self.postMessage = (data) => {
    if (data.runs) { self.postMessage = () => {}; self.close(); }
    else say(data); };
"""
# A worker that is busy for longer than it waits for a piece of a pack, while one comes.
BUSY = """
const bringing = self.fetch;
const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
self.fetch = (...request) => {
    const coming = bringing(...request);
    if (String(request[0]).endsWith("base.pack"))
        setTimeout(() => Atomics.wait(new Int32Array(memory.buffer), 0, 0, 9_000));
    return coming; };
"""
PROMPT = """async () => {
    const host = document.querySelector("script[src$='/host.js']").src;
    const { open } = await import(host.replace("host.js", "prompt.js"));
    await open(); }"""


def judged(text: str) -> str:
    verdict = judge_number(QUESTION, text, 1)
    return "\n".join(filter(None, [verdict["message"], verdict["hint"]]))


def ask_again(page) -> None:
    page.locator(".sm-check input").fill("2e30")
    page.locator(".sm-check button").click()


def expect_verdict(page) -> None:
    page.wait_for_function(
        "(said) => document.querySelector('.sm-verdict').textContent === said",
        arg=judged("2e30"),
    )


def test_a_worker_that_closes_is_replaced_at_once(view):
    """Whether something waits for it or not; answers and figures share the next one."""
    page = view(prepare=lambda page: page.add_init_script(SAVING))
    type_answer(page, "1e30")
    page.workers[0].evaluate(CLOSES)
    slider(page, "D").press("ArrowRight")
    ask_again(page)
    expect_verdict(page)
    wait_for(page, D=8192)
    assert len(page.workers) == 1


@pytest.mark.parametrize("end", [CLOSES, DEAF])
def test_silence_is_noticed_without_locks(view, end):
    """Pages that do not come by https have no locks: then time tells."""

    def prepare(page):
        page.add_init_script(NO_LOCKS)
        page.clock.install()

    page = view(prepare=prepare)
    type_answer(page, "1e30")
    page.workers[0].evaluate(end)
    ask_again(page)
    page.clock.fast_forward(15_000)
    expect_verdict(page)


def test_one_that_ends_twice_is_not_started_for_ever(view, server):
    """The answer stays in its field, and the next click asks again."""
    server.faults["worker.js"] = ENDS
    page = view(prepare=lambda page: page.add_init_script(SAVING))
    said = type_answer(page, "2e30")
    assert "ended unexpectedly" in said
    assert "can be checked in Jupyter" in said
    assert page.locator(".sm-check input").input_value() == "2e30"
    assert sum(path.endswith("worker.js") for path in server.asked) == 2
    server.faults = {"no such file": 404}  # still nothing is cached
    type_answer(page, "1e30")
    ask_again(page)
    expect_verdict(page)


def test_one_that_ends_while_it_starts_is_told(view, server):
    server.faults["pyodide.asm.wasm"] = 600.0
    server.faults["worker.js"] = "setTimeout(() => self.close(), 1_000);"
    page = view(prepare=lambda page: page.add_init_script(SAVING))
    slider(page, "D").press("ArrowRight")
    expect_failure(page, "ended while it started")


def test_a_pack_that_is_held_back_is_given_up(view, server):
    """Figures answer meanwhile, and the next click asks for the pack again."""
    server.faults[PACK] = 600.0
    page = view(prepare=lambda page: page.add_init_script(SAVING))
    page.locator(".sm-check input").fill("1e30")
    page.locator(".sm-check button").click()
    slider(page, "D").press("ArrowRight")
    wait_for(page, D=8192)
    page.locator(".sm-verdict", has_text=f"{PACK}: nothing came").wait_for()
    assert page.locator(".sm-check input").input_value() == "1e30"
    server.faults = {"no such file": 404}
    type_answer(page, "1e30")
    ask_again(page)
    expect_verdict(page)


def test_the_prompt_says_that_its_names_are_gone(view):
    """What was typed is not run again without the names that it may need."""
    page = view()
    page.evaluate(PROMPT)
    field = page.locator(".sm-prompt-input :is(textarea, .cm-content)")

    def enter(text):
        field.fill(text)
        field.press("Enter")

    log = page.locator(".sm-prompt-log")
    enter("x = 6 * 7; x")
    log.get_by_text("42", exact=True).wait_for()
    page.workers[0].evaluate(CLOSES)
    enter("x")
    log.get_by_text("Python has begun anew: names from before are gone.").wait_for()
    log.get_by_text("name 'x' is not defined").wait_for()
    enter("6 * 8")
    log.get_by_text("48", exact=True).wait_for()


def test_a_busy_worker_does_not_take_its_own_delay_for_a_stall(view, server):
    """A slow machine, on which Python keeps the worker busy while a pack arrives."""
    server.faults["worker.js"] = BUSY
    page = view(prepare=lambda page: page.add_init_script(SAVING))
    slider(page, "D").press("ArrowRight")
    wait_for(page, D=8192)
