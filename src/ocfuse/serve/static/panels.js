// What is so now: the state, the latest numbers, the members.

import { byId, clock, make, moment, number, setText, sourceName, span } from "./words.js";

const MOST_MEMBERS = 8;

// What is not known now is not called normal. `event` is the open event of this stream, or null.
export function showState({ source, event, age, isLate, hasSamples, isLive }) {
  const alarm = event ? "ALARM since " + moment(event.begin) : "";
  let state = "none", title = "Waiting for samples", more = "What is scored by a stream appears here.";
  if (source && !isLive) {
    title = "Not connected";
    more = "Last known: " + (alarm || (hasSamples ? "normal" : "no samples")) + ". The page comes back by itself, and misses no event.";
  } else if (event) {
    const known = event.acknowledged;
    [state, title] = ["alarm", alarm];
    more = "Event " + event.id + " has lasted " + span(event.end - event.begin) + ", lowest score " + number(event.lowest) + ". "
      + (known ? "Acknowledged" + (known.who ? " by " + known.who : "") + "." : "Nobody has acknowledged it yet.");
  } else if (hasSamples) {
    if (isLate) [title, more] = ["No samples", "None has come from " + sourceName(source) + " for " + span(age) + "."];
    else [state, title, more] = ["normal", "Normal", "No alarm on " + sourceName(source) + "."];
  } else if (source) more = "None has come from " + sourceName(source) + " in the last minutes.";
  byId("state").dataset.state = state;
  setText(byId("state-title"), title);
  setText(byId("state-more"), more);
  byId("acknowledge").hidden = state !== "alarm" || event.acknowledged !== null;
  byId("acknowledge").dataset.event = event ? event.id : "";
  document.title = (event ? "▲ ALARM " : "") + (source ? sourceName(source) + " – " : "") + "ocfuse live";
}

export function showNow(samples, age, isLate) {
  const i = samples.end - 1, has = samples.length > 0;
  const value = (name) => has ? number(samples.at(name, i)) : "–";
  setText(byId("now-score"), value("score"));
  setText(byId("now-offset"), value("offset"));
  setText(byId("now-p"), value("p_value"));
  setText(byId("now-age"), has ? age < 1 ? "now" : span(Math.floor(age)) + " ago" : "–");
  byId("now-age").parentElement.classList.toggle("late", has && isLate);
}

// Streams in alarm that are not shown, each as a button that shows it.
export function showOthers(sources, choose) {
  const line = byId("others"), key = JSON.stringify(sources);
  if (line.dataset.key === key) return;
  line.dataset.key = key;
  line.hidden = !sources.length;
  line.textContent = sources.length ? "Also in alarm: " : "";
  for (const source of sources) {
    const button = make("button", { type: "button" }, sourceName(source));
    button.addEventListener("click", () => choose(source));
    line.append(button, " ");
  }
}

// The last sample up to here whose contributions are known.
function explained(samples, i) {
  for (let k = i; k >= samples.first && k > i - 300; k--) if (samples.contributions(k)) return k;
  return null;
}

export class Members {
  constructor() {
    this.isWhole = false;
    this.rows = [];
    const button = byId("members-all");
    button.addEventListener("click", () => {
      this.isWhole = !this.isWhole;
      button.setAttribute("aria-expanded", String(this.isWhole));
      this.last = null;
      this.redraw();
    });
    this.redraw = () => {};
  }

  show(samples, chosen) {
    this.redraw = () => this.show(samples, chosen);
    const i = samples.length ? explained(samples, chosen === null ? samples.end - 1 : chosen) : null;
    byId("members-empty").hidden = i !== null;
    byId("members").hidden = i === null;
    if (i === null) { byId("members-all").hidden = true; setText(byId("members-when"), ""); this.last = null; return; }
    const shares = samples.contributions(i);
    if (shares === this.last) return;
    this.last = shares;
    setText(byId("members-when"), (chosen === null ? "latest, " : "chosen, ") + clock(samples.at("time", i), 1));
    const order = Object.entries(shares).filter((entry) => entry[1] !== null).sort((a, b) => a[1] - b[1]);
    const button = byId("members-all");
    button.hidden = order.length <= MOST_MEMBERS;
    setText(button, this.isWhole ? "Show the lowest " + MOST_MEMBERS : "Show all " + order.length);
    this.fill(this.isWhole ? order : order.slice(0, MOST_MEMBERS), order);
  }

  fill(entries, all) {
    const most = Math.max(...all.map((entry) => Math.abs(entry[1])), 1e-12);
    const low = Math.min(...all.map((entry) => entry[1]), 0) / most, high = Math.max(...all.map((entry) => entry[1]), 0) / most;
    const zero = -low / (high - low || 1);
    const body = byId("members").tBodies[0];
    while (this.rows.length < entries.length) this.rows.push(memberRow(body));
    this.rows.forEach((row, k) => {
      row.tr.hidden = k >= entries.length;
      if (row.tr.hidden) return;
      const [name, value] = entries[k], share = value / most / (high - low || 1);
      setText(row.name, name);
      row.name.title = name;
      setText(row.value, number(value));
      row.bar.style.left = 100 * (share < 0 ? zero + share : zero) + "%";
      row.bar.style.width = 100 * Math.abs(share) + "%";
      row.bar.classList.toggle("low", value < 0);
      row.axis.style.left = 100 * zero + "%";
    });
  }
}

function memberRow(body) {
  const bar = make("i", { class: "bar" }), axis = make("i", { class: "axis" });
  const name = make("th", { scope: "row" }), value = make("td", { class: "number" });
  const tr = make("tr", {}, name, make("td", { class: "track" }, make("span", {}, bar, axis)), value);
  body.append(tr);
  return { tr, name, value, bar, axis };
}
