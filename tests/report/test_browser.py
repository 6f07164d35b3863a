"""The page in a real browser: no errors, and every control does what it says."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from ocfuse.ensemble.report import report_data
from ocfuse.report import make_report, words
from ocfuse.report.data import count_p_values, tabulate
from ocfuse.report.timeline import thin_out
from tests.report import examples

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning"),  # a new category
    pytest.mark.skipif(CHROMIUM is None, reason="the browser chromium is not installed"),
    # Playwright's event loop and pipes are closed when the interpreter ends, not before
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    pages = {"full": examples.full_data(), "bare": examples.bare_data()} | extremes()
    pages["stream"] = examples.stream_data()
    return {name: make_report(data).save(folder / f"{name}.html") for name, data in pages.items()}


def extremes():
    """Return data that are hard to draw."""
    detector, rows, full = examples.fitted(), examples.new_rows(), examples.full_data()
    equal = report_data(detector, rows.iloc[[0] * 30], time=np.zeros(30), title="Equal")
    names = ["温度 🌡 \u202eright", "a" * 300, "`${1}` \\u0022 $x_1$"]
    ids = [f"{'long' * 50} {i}" for i in range(len(rows))]
    n = 20_000
    rng = np.random.default_rng(0)
    many = replace(
        full,
        scores=np.concatenate([full.scores, rng.normal(size=n - len(full.scores))]),
        ids=[str(i) for i in range(n)],
        labels=rng.choice([-1, 1], size=n),
        # steps that are lost in the rounding of the times
        times=1.7e18 + 10.0 * np.arange(n),
        is_date=False,
    )
    return {
        "equal": equal,
        "alone": report_data(detector, rows.iloc[-1:], [-1], time=["2026-11-16"], title="Alone"),
        "quiet": report_data(detector, rows.iloc[:1], title="No alarm"),
        "names": report_data(detector, rows, ids=ids, feature_names=names, title="b" * 300),
        "many": many,
    }


@pytest.fixture(scope="module")
def window(browser):
    """Return the window that all tests look through: a new one takes longer than most of them."""
    window = browser.new_page()
    window.set_default_timeout(60_000)
    return window


@pytest.fixture
def visit(window, files):
    """Open a report; at the end nothing may have been complained about or asked for."""
    complaints = []
    notice = {
        "console": lambda message: complaints.append(message.text),
        "pageerror": lambda error: complaints.append(str(error)),
        "dialog": lambda dialog: complaints.append(dialog.message),
        "request": lambda request: complaints.append(request.url),
    }

    def visit(name="full", width=1200, height=900, color_scheme="light"):
        window.set_viewport_size({"width": width, "height": height})
        window.emulate_media(color_scheme=color_scheme, media="screen")
        complaints.clear()
        window.goto(files[name].as_uri())
        assert [text for text in complaints if text != files[name].as_uri()] == []
        complaints.clear()
        return window

    for event, listener in notice.items():
        window.on(event, listener)
    yield visit
    for event, listener in notice.items():
        window.remove_listener(event, listener)
    assert complaints == []


def texts(page, selector):
    return [
        text.replace("\N{MINUS SIGN}", "-") for text in page.locator(selector).all_text_contents()
    ]


def count_dots(page, selector):
    drawn = page.locator(selector).get_attribute("d")
    return drawn.count("M")


def slide_to(page, position):
    page.locator("#slide").evaluate(
        "(slide, at) => { slide.value = at; slide.dispatchEvent(new Event('input')); }", position
    )


def colour(page, selector, what):
    return page.evaluate(
        "([s, what]) => getComputedStyle(document.querySelector(s))[what]", [selector, what]
    )


@pytest.mark.parametrize(
    ("name", "width"), [("full", 360), ("bare", 360), ("full", 1200), ("stream", 360)]
)
def test_every_picture_is_drawn_and_fits(visit, name, width):
    page = visit(name, width, 800)
    figures = page.locator(".figure")
    assert figures.count() == {"full": 6, "bare": 5, "stream": 7}[name]
    for i in range(figures.count()):
        svg = figures.nth(i).locator("> svg")
        assert svg.get_attribute("aria-label")
        assert svg.locator("> *").count() > 5
        assert svg.bounding_box()["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_slider_moves_the_threshold(visit):
    page, data = visit(), examples.full_data()
    outcome, slider = page.locator("#outcome"), page.locator("#slide")
    n = len(data.scores)
    assert f"{data.is_alarm.sum()} of {n} rows" in outcome.inner_text()
    slider.focus()
    page.keyboard.press("Home")
    assert f"0 of {n} rows" in outcome.inner_text()
    assert "0 of 8 labelled anomalies found" in outcome.inner_text()
    assert page.locator(".state.alarm").count() == 0
    page.keyboard.press("End")
    assert "8 of 8 labelled anomalies found" in outcome.inner_text()
    assert page.locator(".state.alarm").count() == len(data.rows)
    page.locator("#reset").click()
    at_start = outcome.inner_text()
    assert f"{data.is_alarm.sum()} of {n} rows" in at_start
    picture = page.locator("#scores-figure > svg")
    place = {"x": 0.9 * picture.bounding_box()["width"], "y": 40}
    picture.click(position=place)
    assert outcome.inner_text() != at_start


def test_numbers_follow_the_slider_as_python_counts_them(visit):
    page, data = visit(), examples.full_data()
    table, new = tabulate(data), data.embedding.is_new
    drawn = data.scores[thin_out(data.times, data.scores)]
    for position in (
        0,
        table.start,
        table.start + 7,
        len(table.values) // 2,
        len(table.values) - 1,
    ):
        slide_to(page, position)
        limit = table.values[position]
        below = data.scores < limit
        rate = (1 + np.sum(data.normal_scores < limit)) / (1 + len(data.normal_scores))
        assert data.calibrator.n_left_out_ == 0
        assert page.locator("#outcome").inner_text() == (
            f"{below.sum()} of 68 rows raise an alarm · {words.percent(rate)} false-alarm "
            f"rate · {below[data.labels < 0].sum()} of 8 labelled anomalies found · "
            f"{below[data.labels > 0].sum()} of 60 labelled normal rows raise one"
        )
        assert page.locator(".state.alarm").count() == below[data.rows].sum()
        assert count_dots(page, "#map-figure .ring") == np.sum(data.embedding.scores[new] < limit)
        assert count_dots(page, "#time-figure .point") == np.sum(drawn < limit)


def test_shares_and_costs_are_those_of_the_explanation(visit):
    page, data = visit(), examples.full_data()
    why = data.explanation

    def numbers(selector):
        return [float(text) for text in texts(page, selector)]

    def near(values, *others):  # three digits of the largest are shown, rounded so that they add up
        return pytest.approx(values, abs=0.0101 * np.abs([*values, *others]).max())

    for i in (0, 3):
        page.locator(f"#row-{i} .open").click()
        features, members = (f"#why-{i} .details > div:nth-child({k}) tr" for k in (1, 2))
        assert texts(page, f"{features}:not(.total) th[scope=row]") == [
            reading.name for reading in data.readings[i]
        ]
        costs = np.array([reading.cost for reading in data.readings[i]])
        whole = why.attributions[i].sum(), data.scores[data.rows[i]]
        assert numbers(f"{features}:not(.total) .figure-of") == near(costs, *whole)
        assert numbers(f"{features}.total:last-child td") == near(why.attributions[[i]].sum(axis=1))
        order = np.argsort(why.contributions[i], kind="stable")
        names = [why.member_names[j] for j in order]
        assert texts(page, f"{members}:not(.total) th[scope=row]") == names
        shares = why.contributions[i, order]
        assert numbers(f"{members}:not(.total) td:nth-child(4)") == near(shares, *whole)
        assert numbers(f"{members}:not(.total) td:nth-child(3)") == near(why.weights[i, order])
        assert numbers(f"{members}.total:last-child td") == near(data.scores[data.rows[[i]]])
        for table in (features, members):  # what is shown adds up
            *parts, total = numbers(f"{table} td:last-child .figure-of")
            assert sum(parts) == pytest.approx(total, abs=1e-9)
        usual = texts(page, f"{features}:not(.total) td:nth-child(3)")
        assert all(usual)


def test_bars_and_correlations_are_pythons(visit):
    page, data = visit(), examples.full_data()

    def bars(selector):
        found = page.locator(f"{selector} title").all_text_contents()
        return [int(text.split()[0].replace(",", "")) for text in found]

    assert sum(bars("#scores-figure .f-normal")) == len(data.normal_scores)
    assert bars("#p-figure rect") == count_p_values(data.p_values)
    shown = sorted(
        float(text) for text in texts(page, "#members-figure text.on, text.ink, text.dark")
    )
    lower = data.agreement[np.tril_indices(len(data.agreement))]
    assert shown == pytest.approx(sorted(lower), abs=0.0051)


@pytest.mark.parametrize("name", ["equal", "alone", "quiet", "names", "many"])
def test_extremes_are_drawn(visit, name):
    page = visit(name)
    page.locator("#row-0 .open").click()
    page.locator("#slide").focus()
    page.keyboard.press("End")
    for what in ("in", "in", "right", "all") if page.locator("#time").count() else ():
        page.locator(f"[data-zoom={what}]").click()
    assert not page.evaluate(
        "/NaN|undefined|Infinity/.test(document.querySelector('main').outerHTML)"
    )
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_rows_open_by_click_and_by_enter(visit):
    page, data = visit(), examples.full_data()
    button, why = page.locator("#row-0 .open"), page.locator("#why-0")
    assert why.is_hidden()
    button.focus()
    page.keyboard.press("Enter")
    assert why.is_visible()
    assert button.get_attribute("aria-expanded") == "true"
    text = why.inner_text()
    assert data.readings[0][0].name in text
    assert all(name in text for name in data.explanation.member_names)
    assert str(data.explanation.nearest_rows[0, 0]) in text
    page.locator("#row-0 td.number").first.click()
    assert why.is_hidden()
    page.locator("#go-first").click()
    assert why.is_visible()


def test_the_table_is_sorted(visit):
    page = visit()

    def scores():
        return [float(b.get_attribute("data-score")) for b in page.locator("#table tbody").all()]

    assert scores() == sorted(scores())
    page.locator("[data-sort=score]").click()
    assert scores() == sorted(scores(), reverse=True)
    head = page.locator("th", has=page.locator("[data-sort=score]"))
    assert head.get_attribute("aria-sort") == "descending"
    page.locator("[data-sort=p]").click()
    assert head.get_attribute("aria-sort") == "none"


def test_rows_are_found(visit):
    page = visit()
    page.locator("#find").fill(f"{examples.HOSTILE} 60")
    shown = page.locator("#table tbody:visible")
    assert shown.count() == 1
    assert examples.HOSTILE in shown.inner_text()
    page.locator("#find").fill("")
    assert shown.count() == len(examples.full_data().rows)


def test_time_is_zoomed_by_buttons_keys_and_drag(visit):
    page = visit()
    svg = page.locator("#time-figure > svg")
    whole = svg.inner_html()
    page.locator("[data-zoom=in]").click()
    assert svg.inner_html() != whole
    page.locator("[data-zoom=all]").click()
    assert svg.inner_html() == whole
    svg.focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    zoomed = svg.inner_html()
    assert zoomed != whole
    page.keyboard.press("Escape")
    assert svg.inner_html() == whole
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"], steps=3)
    page.mouse.up()
    assert svg.inner_html() != whole
    assert "score" in page.locator("#time-read").inner_text()
    page.locator("[data-event]").first.click()
    assert svg.locator(".f-event").count() >= 1
    assert "1" in texts(page, "#time-figure .strong")


def test_the_map_changes_its_colours(visit):
    page = visit()
    svg, choice = page.locator("#map-figure > svg"), page.locator("#colour")
    seen = set()
    for value in choice.locator("option").evaluate_all("options => options.map(o => o.value)"):
        choice.select_option(value)
        seen.add(svg.inner_html())
    assert len(seen) > 1
    assert svg.locator(".dots.ring").count() == 1


def test_dark_and_light(visit):
    page = visit(color_scheme="dark")
    dark = colour(page, "body", "backgroundColor")
    page.emulate_media(color_scheme="light")
    light = colour(page, "body", "backgroundColor")
    assert dark != light
    for expected in (dark, light):
        page.locator("#theme").click()
        assert colour(page, "body", "backgroundColor") == expected


def test_print_is_light_and_shows_all_rows(visit):
    page = visit(color_scheme="dark")
    page.emulate_media(media="print")
    assert colour(page, "h1", "color") == "rgb(24, 32, 42)"
    assert colour(page, ".scroll", "maxHeight") == "none"
    assert page.locator("#theme").is_hidden()
    page.set_viewport_size({"width": 718, "height": 1000})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#why-2").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#why-2").is_hidden()


def test_everything_is_reached_by_the_keyboard(visit):
    page = visit()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(document.activeElement || {}).id || ''"))
    assert {"theme", "slide", "find", "colour"} <= reached


def test_pictures_follow_the_width(visit):
    page = visit()
    wide = page.locator("#scores-figure > svg").get_attribute("viewBox")
    page.set_viewport_size({"width": 500, "height": 800})
    page.wait_for_function(
        "before => document.querySelector('#scores-figure svg').getAttribute('viewBox') !== before",
        arg=wide,
    )


def test_notebooks_show_the_page(window):
    window.set_content(make_report(examples.bare_data())._repr_html_())
    window.frame_locator("iframe").locator("#scores-figure > svg").wait_for()
