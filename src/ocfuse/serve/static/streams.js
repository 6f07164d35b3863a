// All streams of a line: their states, as the service says them, and one card for each.

import { byId, counted, make, moment, number, plain, setText, sourceName } from "./words.js";

// What needs somebody most comes first.
const STATES = ["alarm", "interrupted", "silent", "degraded", "starting", "unusual", "unacknowledged", "normal"];
export const SHORT = {
  alarm: "Alarm", interrupted: "Interrupted", silent: "No samples", degraded: "Sensor in trouble",
  starting: "No score", unusual: "Below threshold", unacknowledged: "Not acknowledged", normal: "Normal",
};
const COUNTED = {
  alarm: "in alarm", interrupted: "interrupted", silent: "without samples", degraded: "with a sensor in trouble",
  starting: "without a score", unusual: "below the threshold", unacknowledged: "not acknowledged", normal: "normal",
};
const BY_NAME = new Intl.Collator("en", { numeric: true });
const SVG = "http://www.w3.org/2000/svg";
const WIDE = 120, HIGH = 32, POINTS = 60;

// Words of the service: text, and numbers that are times, written as the reader writes them.
export const written = (words) => (words || []).map((part) => typeof part === "number" ? moment(part) : part).join("").trim();

export const addressOf = (source) => "#/" + source.map(encodeURIComponent).join("/");

export function sourceOf(address) {
  const parts = address.startsWith("#/") ? address.slice(2).split("/") : [];
  try { return parts.length === 2 ? parts.map(decodeURIComponent) : null; } catch { return null; }
}

const keyOf = (source) => JSON.stringify(source);

function svg(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export class Streams {
  constructor() {
    this.known = new Map();
    this.cards = new Map();
    this.ahead = 0;  // of the clock of the service before that of the page, in seconds
  }

  take({ sources, streams, now }) {
    this.ahead = now - Date.now() / 1000;
    for (const stream of streams) this.known.set(keyOf([stream.model, stream.stream]), stream);
    this.sources = [...sources].sort((a, b) => BY_NAME.compare(sourceName(a), sourceName(b)));
    const there = new Set(sources.map(keyOf));
    for (const key of [...this.known.keys()]) if (!there.has(key)) this.known.delete(key);
    this.show();
  }

  get(source) { return source ? this.known.get(keyOf(source)) || null : null; }

  // Seconds since the last sample came, NaN if none has.
  age(stream) {
    return stream && stream.seen !== null ? Math.max(Date.now() / 1000 + this.ahead - stream.seen, 0) : NaN;
  }

  // Streams in these states, the first ones of the list first.
  in(...states) {
    return [...this.known.values()].filter((stream) => states.includes(stream.state)).sort((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state));
  }

  // The stream that needs somebody most.
  get first() { return this.in(...STATES)[0] || null; }

  show() {
    const list = byId("streams");
    for (const [key, card] of this.cards) if (!this.known.has(key)) { card.item.remove(); this.cards.delete(key); }
    this.sources.forEach((source, place) => {
      const key = keyOf(source), stream = this.known.get(key);
      if (!stream) return;
      let card = this.cards.get(key);
      if (!card) {
        card = makeCard(source);
        this.cards.set(key, card);
        list.insertBefore(card.item, list.children[place] || null);
      }
      fill(card, stream);
    });
    const words = STATES.map((state) => [this.in(state).length, state]).filter(([n]) => n).map(([n, state]) => n + " " + COUNTED[state]);
    setText(byId("streams-count"), this.known.size ? counted(this.known.size, "stream") + ": " + words.join(", ") : "");
    byId("streams-empty").hidden = this.known.size > 0;
  }
}

function makeCard(source) {
  const card = {
    state: make("span", { class: "word" }), since: make("span", { class: "soft since" }), channel: make("span", { class: "channel" }),
    score: make("span", { class: "score" }), known: make("span", { class: "unknown" }),
    line: svg("polyline", { class: "course" }), limit: svg("line", { class: "limit", x1: 0, x2: WIDE }),
  };
  const picture = svg("svg", { viewBox: "0 0 " + WIDE + " " + HIGH, preserveAspectRatio: "none", "aria-hidden": "true" });
  picture.append(card.limit, card.line);
  const head = make("span", { class: "name", title: sourceName(source) }, sourceName(source));
  card.link = make("a", { class: "card", href: addressOf(source) }, make("span", { class: "row" }, head, card.score),
    make("span", { class: "row wrap" }, card.state, card.since), picture, card.channel, card.known);
  card.item = make("li", {}, card.link);
  return card;
}

function fill(card, stream) {
  card.link.dataset.state = stream.state;
  setText(card.state, SHORT[stream.state] || stream.state);
  setText(card.since, "since " + moment(stream.since));
  const channel = stream.what || (stream.channel ? stream.channel.words : "");
  setText(card.channel, plain(channel.split("; ")[0]) || "–");
  card.channel.title = plain(channel);
  setText(card.score, "score " + number(stream.score));
  const n = stream.unacknowledged;
  card.known.hidden = !n;
  setText(card.known, n ? n + " not acknowledged" : "");
  draw(card, stream.course, stream.threshold);
}

// The lowest score of each ten seconds, ten minutes of them; far below the threshold all looks alike.
function draw(card, course, threshold) {
  const known = course.filter((score) => score !== null), limit = threshold === null ? 0 : threshold;
  const high = Math.max(...known, limit), low = Math.max(Math.min(...known, limit), limit - 3 * Math.max(high - limit, 1e-9));
  const y = (score) => (HIGH - 3 - (Math.min(Math.max(score, low), high) - low) / (high - low || 1) * (HIGH - 6)).toFixed(1);
  const first = POINTS - course.length;
  card.line.setAttribute("points", course.map((score, i) => ((first + i) / (POINTS - 1) * WIDE).toFixed(1) + "," + y(score === null ? limit : score)).join(" "));
  card.limit.setAttribute("y1", y(limit));
  card.limit.setAttribute("y2", y(limit));
}
