"""Finding one's way: contents, theme, search, by pointer and by keyboard."""

import pytest
from written import PAGES, visit, written


def test_top_leads_to_the_front_page(page, site_url):
    """Who opens the site's address lands on the front page."""
    page.goto(site_url)
    page.wait_for_url("**/book/index.html")
    assert page.locator("h1").first.inner_text().startswith("Shardmath")


def test_top_names_its_icon(site):
    """Else a browser asks for one at the top, where there is none."""
    links = written(site, "index.html").links
    assert [link for link in links if (site / link).suffix == ".svg"]
    assert all((site / link).is_file() for link in links)


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


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_finds_intensity(page, site, site_url, scheme):
    """The search needs no server, and none of others'."""
    base = site_url if scheme == "http" else site.as_uri() + "/"
    visit(page, f"{base}search.html?q=intensity")
    results = page.locator("#search-results li a")
    results.first.wait_for()
    assert any("Notation" in text for text in results.all_inner_texts())


def test_search_box_opens_by_keyboard(page, site_url):
    """Control-K, a word, Enter: results."""
    visit(page, site_url + PAGES[0])
    page.keyboard.press("Control+k")
    page.keyboard.type("intensity")
    page.keyboard.press("Enter")
    page.locator("#search-results li a").first.wait_for()
