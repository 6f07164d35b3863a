"""The recording of the live page for the documentation, in a real browser and without a service."""

import functools
import http.server
import shutil
import threading

import numpy as np
import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
record = pytest.importorskip("benchmarks.serve.record")
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="the browser chromium is not installed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
N_BEFORE, N_AFTER = 25, 15


def rows_of(seed, fault):
    """Return rows of two sensors, which go apart in the end if there is a fault."""
    flow, noise = np.random.default_rng(seed).normal(size=(2, N_BEFORE + N_AFTER))
    current = flow + noise / 5
    if fault is not None:
        current[N_BEFORE:] += 20.0
    values = zip(flow.tolist(), current.tolist(), strict=True)
    return [dict(zip(("flow", "current"), row, strict=True)) for row in values]


@pytest.fixture(scope="module")
def recording(model_files):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "rows_of", rows_of)
        patch.setattr(record, "N_BEFORE", N_BEFORE)
        patch.setattr(record, "N_AFTER", N_AFTER)
        patch.setattr(record, "LINE", {"calm": (1, None), "odd": (2, "apart")})
        return record.record(model_files["runs"])


@pytest.fixture(scope="module")
def site(recording, tmp_path_factory):
    """Return the address of a server that has nothing but the files of a recording."""
    folder = tmp_path_factory.mktemp("live")
    record.write(folder, recording)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_every_sample_is_recorded_once(recording):
    for stream in recording["streams"].values():
        assert [one["seq"] for one in stream["samples"]] == list(range(N_BEFORE + N_AFTER))
        assert len(stream["channels"]) == 2


def test_the_page_shows_what_was_recorded_and_changes_nothing(site):
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(error))
        page.goto(f"{site}/line.html")
        sync_api.expect(page.locator("#streams li")).to_have_count(2)
        sync_api.expect(page.locator("#link")).to_have_text("Live")
        sync_api.expect(page.locator("#table tbody tr").first).to_contain_text("odd", timeout=9000)
        page.goto(f"{site}/line.html#/model/odd")
        sync_api.expect(page.locator("#state-title")).to_contain_text("ALARM", timeout=9000)
        sync_api.expect(page.locator("#channels li").first).to_be_visible()
        page.locator("#who").fill("somebody")
        page.locator("#acknowledge").click()
        sync_api.expect(page.locator("#failed")).to_contain_text("This is a recording")
        assert errors == []
        browser.close()
