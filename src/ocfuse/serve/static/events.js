// The table of events: acknowledge, comment, older ones, CSV.

import { ask, post } from "./connection.js";
import { byId, counted, KINDS, make, moment, number, plain, sameSource, setText, sourceName, span } from "./words.js";

const MOST_EVENTS = 1000;  // that the page keeps; older ones can be fetched again
const PAGE = 100;
const WHO = "ocfuse-who";
const STATES = { open: "▲ open", ended: "ended", interrupted: "interrupted" };
const VERDICTS = { real: "Real", "false alarm": "False alarm", unknown: "Unknown" };

export class Events {
  // `changed` is called after every change; `choose` shows a stream.
  constructor({ changed, source }) {
    this.known = new Map();
    this.rows = new Map();
    this.urls = new Map();
    this.source = source;
    this.changed = changed;
    this.hasOlder = false;
    this.table = byId("table");
    byId("who").value = localStorage.getItem(WHO) || "";
    byId("who").addEventListener("change", () => localStorage.setItem(WHO, byId("who").value.trim()));
    byId("who-cancel").addEventListener("click", () => byId("ask-who").close());
    byId("who-form").addEventListener("submit", () => {
      byId("who").value = byId("who-name").value.trim();
      localStorage.setItem(WHO, byId("who").value);
      if (byId("who").value && this.waiting) this.waiting();
    });
    for (const id of ["show-source", "show-state"]) byId(id).addEventListener("change", () => this.filter());
    byId("older").addEventListener("click", () => this.guard(() => this.loadOlder()));
    byId("csv").addEventListener("click", (click) => { click.preventDefault(); this.guard(() => this.download()); });
  }

  // Take changed events; the first list of a new file takes the place of all.
  take(events, isFirst = false, hasOlder = false) {
    if (isFirst) {
      for (const id of [...this.known.keys()]) this.forget(id);
      this.hasOlder = hasOlder;
    }
    const begun = [];
    for (const event of events) {
      const before = this.known.get(event.id);
      if (before && before.change > event.change) continue;
      if (!before && !isFirst && event.state === "open") begun.push(event);
      this.known.set(event.id, event);
      this.show(event);
    }
    this.bound();
    this.filter();
    this.changed(begun);
    if (events.some((event) => event.verdict)) this.showLearning();
  }

  bound() {
    if (this.known.size <= MOST_EVENTS) return;
    const ids = [...this.known.keys()].sort((a, b) => a - b);
    for (const id of ids.slice(0, this.known.size - MOST_EVENTS)) if (this.known.get(id).state !== "open") this.forget(id);
    this.hasOlder = true;
  }

  forget(id) {
    this.known.delete(id);
    const row = this.rows.get(id);
    if (row) row.body.remove();
    this.rows.delete(id);
    if (this.urls.has(id)) URL.revokeObjectURL(this.urls.get(id));
    this.urls.delete(id);
  }

  // The events of a stream in the order of time.
  of(source) {
    const here = [...this.known.values()].filter((event) => sameSource([event.model, event.stream], source));
    return here.sort((a, b) => a.begin - b.begin);
  }

  get open() { return [...this.known.values()].filter((event) => event.state === "open"); }

  // One body of the table per event: its line, and a second one with what was said.
  show(event) {
    let row = this.rows.get(event.id);
    if (!row) {
      row = this.makeRow(event);
      this.rows.set(event.id, row);
      const after = [...this.table.tBodies].find((body) => Number(body.dataset.id) < event.id);
      this.table.insertBefore(row.body, after || null);
    }
    row.state.dataset.state = event.state;
    const kind = KINDS[event.kind] === undefined ? event.kind : KINDS[event.kind];
    setText(row.state, [kind, STATES[event.state] || event.state].filter(Boolean).join(", "));
    setText(row.began, moment(event.begin));
    // of what has no samples nobody knows the end so far
    setText(row.lasted, event.state === "open" && event.kind !== "anomaly" ? "goes on" : span(event.end - event.begin));
    setText(row.lowest, event.lowest === null ? "" : number(event.lowest));
    row.state.dataset.kind = event.kind === "anomaly" ? "anomaly" : "other";
    this.showWhat(row, event);
    const known = event.acknowledged;
    row.acknowledge.hidden = known !== null;
    setText(row.known, known ? "✓ " + (known.who || "acknowledged") + ", " + moment(known.time) : "");
    setText(row.judge, event.verdict ? VERDICTS[event.verdict.verdict] : "Verdict");
    for (const button of row.verdicts) button.setAttribute("aria-pressed", String(event.verdict !== null && event.verdict.verdict === button.value));
    setText(row.open, event.comments.length ? counted(event.comments.length, "comment") : "Comment");
    this.showComments(row, event);
    if (event.has_thumbnail && !row.hasPicture) this.showPicture(row, event);
  }

  makeRow(event) {
    const words = "event " + event.id;
    const row = {
      state: make("span", { class: "badge" }), began: make("span"), lasted: make("td", { class: "lasted" }), lowest: make("td", { class: "number" }),
      what: make("ul", { class: "lines" }), members: make("p", { class: "soft" }), severity: make("span", { class: "soft small" }), picture: make("td", { class: "picture" }),
      acknowledge: make("button", { type: "button", "aria-label": "Acknowledge " + words }, "Acknowledge"),
      known: make("span", { class: "known" }),
      judge: make("button", { type: "button", class: "plain", "aria-expanded": "false", "aria-controls": "said-" + event.id }),
      open: make("button", { type: "button", class: "plain", "aria-expanded": "false", "aria-controls": "said-" + event.id }),
      list: make("ol", { class: "comments" }), said: make("tr", { class: "said", id: "said-" + event.id, hidden: "" }),
      body: make("tbody", { "data-id": event.id }), hasPicture: false, nComments: -1,
    };
    row.fold = make("details", {}, make("summary", {}, "Members"), row.members);
    row.acknowledge.addEventListener("click", () => this.acknowledge(event.id));
    row.open.addEventListener("click", () => this.toggle(row, row.text));
    row.judge.addEventListener("click", () => this.toggle(row, row.verdicts[0]));
    row.said.append(make("td", { colspan: 8 }, row.list, this.makeForm(event.id, row)));
    const line = make("tr", { class: "event" },
      make("td", { class: "in-state" }, row.state),
      make("th", { scope: "row" }, make("span", { class: "id" }, "#" + event.id + " "), row.began),
      row.lasted, make("td", { class: "stream" }, sourceName([event.model, event.stream])), row.lowest,
      make("td", { class: "members" }, row.what, row.severity, row.fold), row.picture,
      make("td", { class: "actions" }, row.acknowledge, row.known, row.judge, row.open));
    row.body.append(line, row.said);
    return row;
  }

  // The channels first, the members behind a fold.
  showWhat(row, event) {
    const lines = event.text ? [event.text] : event.channels.map((channel) => channel.words), key = JSON.stringify(lines);
    if (row.what.dataset.key !== key) {
      row.what.dataset.key = key;
      row.what.replaceChildren(...lines.map((line) => make("li", {}, plain(line))));
    }
    setText(row.severity, event.severity === null ? "" : "severity " + number(event.severity, 2));
    const names = Object.entries(event.members);
    row.fold.hidden = !names.length;
    setText(row.members, names.map(([name, value]) => name + " " + number(value, 2)).join(", "));
  }

  makeForm(id, row) {
    const text = make("textarea", { rows: 2, maxlength: 2000, required: "", id: "text-" + id });
    const form = make("form", {}, make("label", { for: "text-" + id }, "Comment on event " + id), text, make("button", { type: "submit" }, "Send"));
    row.verdicts = Object.entries(VERDICTS).map(([value, words]) => make("button", { type: "button", value, "aria-pressed": "false" }, words));
    for (const button of row.verdicts) button.addEventListener("click", () => this.judge(id, button.value, text));
    const found = make("p", { class: "verdicts", role: "group", "aria-label": "Verdict on event " + id }, make("span", { class: "soft" }, "What was it?"), ...row.verdicts);
    text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.guard(async () => {
        this.take([await post("v1/events/" + id + "/comment", { text: text.value, who: byId("who").value.trim() })]);
        text.value = "";
      });
    });
    row.text = text;
    return make("div", {}, found, form);
  }

  toggle(row, focused) {
    row.said.hidden = !row.said.hidden;
    for (const button of [row.open, row.judge]) button.setAttribute("aria-expanded", String(!row.said.hidden));
    if (!row.said.hidden) focused.focus();
  }

  showComments(row, event) {
    const verdicts = [...event.earlier_verdicts, event.verdict].filter(Boolean);
    const judged = verdicts.map((said) => ({ ...said, text: VERDICTS[said.verdict] + (said.comment ? ": " + said.comment : "") }));
    const all = [...event.comments, ...judged].sort((a, b) => a.time - b.time);
    if (row.nComments === all.length) return;
    row.nComments = all.length;
    row.list.replaceChildren(...all.map((said) => make("li", {},
      make("span", { class: "by" }, (said.who || "no name") + ", " + moment(said.time)), make("span", { class: "text" }, said.text))));
  }

  // Do what needs a name, once there is one.
  named(work) {
    if (byId("who").value.trim()) return this.guard(work);
    this.waiting = () => { this.waiting = null; this.guard(work); };
    byId("who-name").value = "";
    byId("ask-who").showModal();
    return null;
  }

  acknowledge(id) { return this.named(() => this.sendAcknowledgement(id, this.rows.get(id))); }

  // All of a stream that the service has told of; what comes later is not meant.
  acknowledgeAll({ model, stream, last_event: upTo }) {
    return this.named(() => post("v1/events/acknowledge", { model, stream, up_to: upTo, who: byId("who").value.trim() }));
  }

  async sendAcknowledgement(id, row) {
    const hadFocus = document.activeElement === row.acknowledge;
    this.take([await post("v1/events/" + id + "/acknowledge", { who: byId("who").value.trim() })]);
    if (hadFocus) row.open.focus();  // the button is gone
  }

  // How a new model is made of the verdicts: by a button where the service knows the training data.
  async showLearning() {
    clearTimeout(this.timer);
    try {
      const { models } = await (await ask("v1/verdicts")).json();
      const learned = models.some((one) => one.can_learn) ? (await (await ask("v1/learn")).json()).models : [];
      const lines = models.filter((one) => one.command).map((one) => this.learningLine(one, learned.find((found) => found.model === one.model)));
      byId("learn").hidden = !lines.length;
      byId("learn").replaceChildren(...lines);
      if (learned.some((found) => found.state === "running")) this.timer = setTimeout(() => this.showLearning(), 2000);
    } catch { byId("learn").hidden = true; }
  }

  learningLine({ model, usable, command, can_learn: canLearn }, found) {
    const words = "Learn from " + counted(usable, "verdict"), line = make("li", {});
    const isRunning = Boolean(found) && found.state === "running";
    if (canLearn) {
      const button = make("button", { type: "button", disabled: isRunning ? "" : null }, words);
      button.addEventListener("click", () => this.named(async () => {
        await post("v1/learn", { model, who: byId("who").value.trim() });
        await this.showLearning();
      }));
      line.append(button, " on " + model + ". ");
    } else line.append(words + " on " + model + ": ");
    if (found) line.append({ running: "Learning", done: "Learned", failed: "Failed" }[found.state] + " (" + found.who + ", " + moment(found.since) + "). " + found.text);
    else line.append(make("code", {}, command));
    return line;
  }

  // What somebody found an event to be; what stands in the field of comments goes with it.
  judge(id, verdict, text) {
    return this.named(async () => {
      this.take([await post("v1/events/" + id + "/verdict", { verdict, who: byId("who").value.trim(), comment: text.value.trim() })]);
      text.value = "";
    });
  }

  async showPicture(row, event) {
    row.hasPicture = true;
    try {
      const url = URL.createObjectURL(await (await ask("v1/events/" + event.id + "/thumbnail")).blob());
      if (!this.known.has(event.id)) { URL.revokeObjectURL(url); return; }
      this.urls.set(event.id, url);
      const image = make("img", { src: url, alt: "Picture of event " + event.id });
      const button = make("button", { type: "button", class: "plain" }, image);
      button.addEventListener("click", () => {
        byId("picture-img").src = url;
        byId("picture-img").alt = image.alt;
        byId("picture").showModal();
      });
      row.picture.replaceChildren(button);
    } catch { row.hasPicture = false; }
  }

  filter() {
    const source = byId("show-source").value === "this" ? this.source() : null, state = byId("show-state").value;
    let shown = 0;
    for (const [id, row] of this.rows) {
      const event = this.known.get(id);
      const fits = (!source || sameSource([event.model, event.stream], source))
        && (state === "all" || (state === "new" ? event.acknowledged === null : event.state === "open"));
      row.body.hidden = !fits;
      shown += fits;
    }
    byId("events-empty").hidden = shown > 0;
    setText(byId("events-empty"), this.known.size ? "No such event." : "No events.");
    setText(byId("events-count"), counted(shown, "event") + (this.open.length ? ", " + this.open.length + " open" : ""));
    byId("older").hidden = !this.hasOlder;
  }

  async loadOlder() {
    const before = Math.min(...this.known.keys());
    const { events } = await (await ask("v1/events?limit=" + PAGE + "&before=" + before)).json();
    this.hasOlder = events.length === PAGE && this.known.size + PAGE <= MOST_EVENTS;
    for (const event of events) { this.known.set(event.id, event); this.show(event); }
    this.filter();
    this.changed([]);
  }

  async download() {
    const query = new URLSearchParams(), source = byId("show-source").value === "this" ? this.source() : null;
    if (source) { query.set("model", source[0]); query.set("stream", source[1]); }
    const state = byId("show-state").value;
    if (state === "new") query.set("acknowledged", "false");
    if (state === "open") query.set("state", "open");
    const url = URL.createObjectURL(await (await ask("v1/events.csv?" + query)).blob());
    make("a", { href: url, download: "events.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }

  // Do what may fail, and say so where it does.
  async guard(work) {
    const failed = byId("failed");
    try {
      await work();
      failed.hidden = true;
    } catch (error) {
      failed.hidden = false;
      setText(failed, error.message);
    }
  }
}
