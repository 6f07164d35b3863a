// What is so now, as the service says it: the state, the latest numbers, channels, members.

import { drawTrend } from "./chart.js";
import { written } from "./streams.js";
import { byId, clock, make, number, plain, setText, sourceName, span } from "./words.js";

const MOST_MEMBERS = 8;
const MOST_CHANNELS = 3;  // that matter most; the others are shown when asked for
const SIGNS = {
  alarm: "alarm", interrupted: "alarm", degraded: "warn", unacknowledged: "warn", silent: "none", starting: "none", unusual: "warn", normal: "normal", none: "none",
};

// A stream that the page knows nothing of, or cannot know of now, has no state.
export function showState({ source, stream, isLive }) {
  const state = stream && isLive ? stream.state : "none";
  let title = "Waiting for samples", more = "What is scored by a stream appears here.", what = "";
  if (!isLive && source) {
    title = "Not connected";
    more = "Last known: " + (stream ? written(stream.title) : "nothing") + ". The page comes back by itself, and misses no event.";
  } else if (stream) [title, more, what] = [written(stream.title), written(stream.more), stream.what];
  else if (source) more = "None has come from " + sourceName(source) + " in the last minutes.";
  byId("state").dataset.state = state;
  byId("state").dataset.sign = SIGNS[state] || "none";
  setText(byId("state-title"), title);
  setText(byId("state-more"), more);
  showLines(byId("state-what"), what ? what.split("; ") : []);
  const n = stream && isLive ? stream.unacknowledged : 0, button = byId("acknowledge");
  button.hidden = !n;
  setText(button, n > 1 ? "Acknowledge all " + n : "Acknowledge");
  const sign = state === "alarm" ? "▲ ALARM " : state === "interrupted" ? "▲ Interrupted " : "";
  document.title = sign + (source ? sourceName(source) + " – " : "") + "ocfuse live";
}

function showLines(list, lines) {
  const key = JSON.stringify(lines);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.hidden = !lines.length;
  list.replaceChildren(...lines.map((line) => make("li", {}, plain(line))));
}

export function showNow(samples, age) {
  const i = samples.end - 1, has = samples.length > 0;
  const value = (name) => has ? number(samples.at(name, i)) : "–";
  setText(byId("now-score"), value("score"));
  setText(byId("now-threshold"), value("threshold"));
  setText(byId("now-p"), value("p_value"));
  setText(byId("now-age"), Number.isNaN(age) ? "–" : age < 1 ? "now" : span(Math.floor(age)) + " ago");
}

// Other streams that need somebody, each as a button that shows it.
export function showOthers(streams, choose) {
  const line = byId("others"), key = JSON.stringify(streams.map((stream) => [stream.model, stream.stream, stream.state]));
  if (line.dataset.key === key) return;
  line.dataset.key = key;
  line.hidden = !streams.length;
  line.textContent = streams.length ? "Also: " : "";
  for (const stream of streams) {
    const source = [stream.model, stream.stream];
    const button = make("button", { type: "button", "data-state": stream.state }, (stream.state === "alarm" ? "▲ " : "") + sourceName(source));
    button.addEventListener("click", () => choose(source));
    line.append(button, " ");
  }
}

// The course of the channels that matter, with what is usual as a band.
export class Channels {
  constructor() {
    this.isWhole = false;
    this.known = [];
    this.first = [];
    this.charts = new Map();
    byId("channels-all").addEventListener("click", () => {
      this.isWhole = !this.isWhole;
      byId("channels-all").setAttribute("aria-expanded", String(this.isWhole));
      this.arrange([]);
    });
  }

  take(channels) {
    this.known = channels;
    this.first = [];
    this.arrange([]);
  }

  // Show these channels first; what was shown stays where nothing speaks for another. Return whether others are shown.
  arrange(readings) {
    const names = [...new Set(readings.map((reading) => reading.name))].filter((name) => this.known.some((channel) => channel.name === name));
    if (names.length) this.first = names.slice(0, MOST_CHANNELS);
    const rest = this.known.map((channel) => channel.name).filter((name) => !this.first.includes(name));
    const shown = this.isWhole ? [...this.first, ...rest] : [...this.first, ...rest].slice(0, MOST_CHANNELS);
    const list = byId("channels"), key = JSON.stringify(shown);
    byId("channels-panel").hidden = !this.known.length;
    byId("channels-all").hidden = this.known.length <= MOST_CHANNELS;
    setText(byId("channels-all"), this.isWhole ? "Show fewer" : "Show all " + this.known.length);
    if (list.dataset.key === key) return false;
    list.dataset.key = key;
    this.charts.clear();
    list.replaceChildren(...shown.map((name) => {
      const value = make("span", { class: "value" }), usual = make("span", { class: "soft small" });
      const canvas = make("canvas", { role: "img", "aria-label": name + " over time" });
      this.charts.set(name, { canvas, value, usual, place: this.known.findIndex((channel) => channel.name === name) });
      return make("li", {}, make("div", { class: "head" }, make("h3", {}, name), make("p", {}, value, " ", usual)), canvas);
    }));
    return true;
  }

  bandOf(chart, reading) {
    const { low, high } = this.known[chart.place];
    if (Number.isFinite(low) && Number.isFinite(high)) return [low, high];
    if (reading && reading.kind === "level" && Number.isFinite(reading.usual) && Number.isFinite(reading.spread)) return [reading.usual - 2 * reading.spread, reading.usual + 2 * reading.spread];
    return null;
  }

  // `i` is the sample whose values are told; `readings` are what is known to be unusual there.
  draw({ samples, seconds, end, alarms, i, readings }) {
    for (const [name, chart] of this.charts) {
      const reading = readings.find((one) => one.name === name), band = this.bandOf(chart, reading);
      const value = samples.length ? samples.value(chart.place, i) : NaN;
      setText(chart.value, number(value, 4));
      chart.value.classList.toggle("far", Boolean(band) && (value < band[0] || value > band[1]));
      setText(chart.usual, band ? "usual " + number(band[0], 4) + " to " + number(band[1], 4) : "");
      drawTrend(chart.canvas, { samples, value: (k) => samples.value(chart.place, k), seconds, end, band, alarms });
    }
  }
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
    // of the very sample that is read, and of no other
    const at = chosen === null ? samples.end - 1 : chosen;
    const i = samples.length && samples.contributions(at) ? at : null;
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
