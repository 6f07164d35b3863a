// Stands in for the service: the live page gets the messages of a recording, at the times they came.

"use strict";
{
  const { begin, start, end, welcome, shared, streams } = RECORDING;
  const opened = performance.now();
  // the clock of the page is that of the recording, and stands still at its end
  const now = () => Math.min(start + (performance.now() - opened) / 1000, end);
  Date.now = () => 1000 * now();

  class RecordedSocket extends EventTarget {
    static OPEN = 1;
    static CLOSED = 3;

    constructor() {
      super();
      this.readyState = RecordedSocket.OPEN;
      this.next = 0;
      this.source = null;
      this.sent = 0;
      setTimeout(() => this.dispatchEvent(new Event("open")));
    }

    send(text) {
      const message = JSON.parse(text);
      if (message.type === "hello") {
        this.tell(welcome);
        this.timer = setInterval(() => this.go(), 200);
      }
      this.watch(message.source);
      this.go();
    }

    close() { clearInterval(this.timer); this.readyState = RecordedSocket.CLOSED; }

    tell(message) {
      this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) }));
    }

    watch(source) {
      this.source = source;
      this.stream = source && streams[source[1]];
      if (!this.stream) return;
      const samples = this.until(0);
      this.tell({ type: "history", source, channels: this.stream.channels, samples });
    }

    // samples that have come since so many
    until(first) {
      const { samples } = this.stream;
      let last = first;
      while (last < samples.length && samples[last].time <= now()) last++;
      this.sent = last;
      return samples.slice(first, last);
    }

    go() {
      for (; this.next < shared.length && shared[this.next][0] <= now(); this.next++) this.tell(shared[this.next][1]);
      const samples = this.stream ? this.until(this.sent) : [];
      this.tell(samples.length ? { type: "samples", source: this.source, samples } : { type: "beat" });
    }
  }
  window.WebSocket = RecordedSocket;

  const json = (status, content) => new Response(JSON.stringify(content), { status, headers: { "Content-Type": "application/json" } });
  window.fetch = async (address, options = {}) => options.method === "POST"
    ? json(403, { error: { message: "This is a recording: nobody can be told." } })
    : new URL(address).pathname.endsWith("v1/verdicts") ? json(200, { models: [] })
      : json(404, { error: { message: "This is a recording: it has no more than what is shown." } });

  addEventListener("DOMContentLoaded", () => {
    for (const link of document.querySelectorAll("#csv, a[href=docs]")) link.hidden = true;
    const note = document.createElement("p");
    note.className = "notice";
    note.append(location.protocol === "file:"
      ? "Browsers run this page from a web server only, not from a file: python -m http.server in the folder of the site is one. "
      : "A recording of simulated motors, scored by a real service. ");
    const again = document.createElement("button");
    again.type = "button";
    again.textContent = "From the beginning";
    again.addEventListener("click", () => location.reload());
    const back = document.createElement("a");
    back.href = "../index.html";
    back.textContent = "Documentation";
    note.append(again, " ", back);
    document.getElementById("notices").prepend(note);
  });
}
