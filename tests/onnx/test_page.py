"""The example that scores a row in a page does, with what npm brings."""

import functools
import http.server
import json
import shutil
import subprocess
import threading
from pathlib import Path

import pandas as pd
import pytest

from ocfuse import load

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EXAMPLE = Path(__file__).parents[2] / "examples" / "onnx-in-a-page"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the example with onnxruntime-web; skip where npm cannot bring it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, and brings onnxruntime-web")
    target = tmp_path_factory.mktemp("page") / "example"
    shutil.copytree(EXAMPLE, target, ignore=shutil.ignore_patterns("node_modules"))
    asked = [npm, "install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(asked, cwd=target, capture_output=True, text=True, timeout=180)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not bring onnxruntime-web within three minutes")
    if done.returncode:
        pytest.skip(f"npm cannot bring onnxruntime-web: {done.stderr.strip()[-200:]}")
    return target


@pytest.fixture
def address(folder):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_row_is_scored_as_in_python(folder, address, plant_folder, run_command):
    model = plant_folder / "model.ocf"
    out = folder / "model.onnx"
    told = run_command("export", model, "-o", out, "--force", "--json")[1]
    (folder / "model.json").write_text(told)
    table = pd.read_csv(plant_folder / "new.csv").iloc[[0, -1]]
    result = load(model).score(table)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("button:not([disabled])")
        for i in range(len(table)):
            for column in json.loads(told)["columns"]:
                cell = table.iloc[i][column["name"]]
                page.fill(f"input[name='{column['name']}']", "" if pd.isna(cell) else str(cell))
            page.evaluate("document.querySelector('output').textContent = ''")
            page.click("button")
            page.wait_for_function("document.querySelector('output').textContent")
            words = page.inner_text("output").replace(",", "").split()
            assert words[0] == ("anomaly:" if result["is_anomaly"].iloc[i] else "normal:")
            assert float(words[2]) == pytest.approx(result["score"].iloc[i], rel=1e-5)
            assert float(words[6]) == pytest.approx(result["p_value"].iloc[i], rel=1e-2)
        number = next(c["name"] for c in json.loads(told)["columns"] if not c["is_text"])
        page.fill(f"input[name='{number}']", "1,5")
        page.evaluate("document.querySelector('output').textContent = ''")
        page.click("button")
        page.wait_for_function("document.querySelector('output').textContent")
        said = f'{number} must be a number, such as 1.5. Got "1,5".'
        assert page.inner_text("output") == said  # and no score of a gap
        browser.close()


def test_without_a_model_the_page_says_so(folder, address):
    for name in ("model.json", "model.onnx"):
        (folder / name).unlink(missing_ok=True)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function("document.querySelector('output').textContent")
        assert "README.md tells how" in page.inner_text("output")
        browser.close()
