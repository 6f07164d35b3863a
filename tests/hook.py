"""A web server of tests that alarms are sent to."""

import http.server
import json
import threading
from typing import Any


class Hook:
    """A web server that keeps what it is sent, and answers as it is told."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.has_come = threading.Condition()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code = hook.answers.pop(0) if hook.answers else 204
                with hook.has_come:
                    if code < 300:
                        hook.got.append((dict(self.headers), body))
                    self.send_response(code)
                    if code == 302:
                        self.send_header("Location", "/elsewhere")
                    self.end_headers()
                    hook.has_come.notify_all()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

    def wait_for(self, n: int) -> list[dict[str, Any]]:
        with self.has_come:
            assert self.has_come.wait_for(lambda: len(self.got) >= n, 60)
        return [json.loads(body) for _, body in self.got]
