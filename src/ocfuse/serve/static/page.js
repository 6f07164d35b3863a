// The page: messages of the service become samples and events, which are drawn when they change.

import { drawTrend, readColours, ScoreChart } from "./chart.js";
import { Connection, setToken, token } from "./connection.js";
import { Events } from "./events.js";
import { Channels, Members, showNow, showOthers, showState } from "./panels.js";
import { Samples } from "./samples.js";
import { addressOf, sourceOf, Streams } from "./streams.js";
import { byId, clock, counted, KINDS, make, number, sameSource as same, setText, sourceName } from "./words.js";

const FRAME = matchMedia("(prefers-reduced-motion: reduce)").matches ? 500 : 40;  // milliseconds between pictures
const CALM = 250;  // and between numbers, which nobody can read faster
const THEME = "ocfuse-theme";
const LINKS = { live: "Live", reconnecting: "Reconnecting", stopped: "Stopped" };

const samples = new Samples(), chart = new ScoreChart(byId("chart")), members = new Members(), channels = new Channels(), streams = new Streams();
const state = { source: sourceOf(location.hash), store: null, after: null, version: null, end: null, chosen: null, readings: [], isDirty: true, drawn: 0, told: 0 };
const events = new Events({ changed: eventsChanged, source: () => state.source });

const dirty = () => { state.isDirty = true; };

// What the service says

const TAKE = {
  welcome(message) {
    if (state.version !== null && state.version !== message.version) byId("update").hidden = false;
    state.version = message.version;
    state.store = message.store;
  },
  streams(message) {
    streams.take(message);
    // one stream is shown at once; of several, all are
    if (!state.source && !location.hash && streams.known.size === 1) choose(message.sources[0]);
    showSources();
    state.told = 0;
  },
  events(message) {
    state.after = message.change;
    events.take(message.events, message.is_first, message.has_older);
  },
  history(message) {
    if (!same(message.source, state.source)) return;
    samples.merge(message.samples);
    channels.take(message.channels);
    state.readings = [];
    for (let i = samples.first; i < samples.end; i++) state.readings = samples.readings(i) || state.readings;
    dirty();
  },
  samples(message) {
    if (!same(message.source, state.source)) return;
    for (const sample of message.samples) samples.push(sample);
    state.readings = samples.readings(samples.end - 1) || state.readings;
    dirty();
  },
  trouble(message) {
    byId("trouble").hidden = !message.message;
    setText(byId("trouble"), message.message || "");
  },
  // what models that are tried would have done otherwise
  shadows({ shadows }) {
    byId("shadow").hidden = !shadows.length;
    setText(byId("shadow"), shadows.map((one) => "Tried beside " + one.model + ": " + one.file + ", " + counted(one.events_shadow, "event")
      + " instead of " + one.events_served + ", other verdicts on " + (one.only_served + one.only_shadow) + " of " + counted(one.rows, "row")).join(". "));
  },
  beat() {},
};

function eventsChanged(begun) {
  const said = begun.map((event) => (KINDS[event.kind] || "Alarm") + " on " + sourceName([event.model, event.stream]));
  if (said.length) setText(byId("say"), said.join(", "));
  showSources();
  state.told = 0;
  dirty();
}

const connection = new Connection({
  hello: () => ({ store: state.store, after: state.after, source: state.source }),
  take: (message) => (TAKE[message.type] || (() => {}))(message),
  show(link) {
    byId("link").dataset.state = link;
    setText(byId("link-text"), LINKS[link]);
    state.told = 0;
    dirty();
  },
  needToken() {
    byId("token").value = "";
    if (!byId("ask-token").open) byId("ask-token").showModal();
  },
});

// Which stream is shown: that of the address, so that the browser goes back and forth; none shows all.

function choose(source) {
  location.hash = source ? addressOf(source) : "#/";
}

function follow() {
  const source = sourceOf(location.hash);
  if (!same(source, state.source)) {
    Object.assign(state, { source, end: null, chosen: null, readings: [], told: 0 });
    samples.clear();
    channels.take([]);
    setPause(false);
    connection.send({ type: "watch", source });
    events.filter();
  }
  showSources();
  dirty();
}

function showSources() {
  const isAll = !state.source && (streams.known.size > 1 || location.hash !== "");
  byId("line").hidden = !isAll;
  byId("one").hidden = isAll;
  const list = [null, ...(streams.sources || [])];
  if (state.source && !list.some((source) => same(source, state.source))) list.push(state.source);
  const signOf = (source) => ["alarm", "interrupted"].includes((streams.get(source) || {}).state) ? "▲ " : "";
  const words = list.map((source) => source ? signOf(source) + sourceName(source) : "All streams");
  const select = byId("source"), key = JSON.stringify([list, words, state.source]);
  if (select.dataset.key === key || list.length < 2) return;
  select.dataset.key = key;
  select.disabled = false;
  select.replaceChildren(...list.map((source, i) => make("option", { value: i }, words[i])));
  select.value = String(Math.max(list.findIndex((source) => same(source, state.source)), 0));
  select.title = words[Number(select.value)];
  select.onchange = () => choose(list[Number(select.value)]);
}

// Pause, and the cursor that reads values

const seconds = () => Number(byId("window").value);

function setPause(isPaused) {
  state.end = isPaused && samples.length ? samples.lastTime : null;
  byId("pause").setAttribute("aria-pressed", String(isPaused));
  setText(byId("pause"), isPaused ? "Follow" : "Pause");
  if (!isPaused) state.chosen = null;
  dirty();
}

const isPaused = () => byId("pause").getAttribute("aria-pressed") === "true";

function choosePoint(i) {
  if (!samples.length || !chart.view) return;
  state.chosen = Math.min(Math.max(i, Math.max(chart.view.from, samples.first)), chart.view.to - 1);
  state.told = 0;
  dirty();
}

function startChart() {
  const canvas = byId("chart");
  canvas.addEventListener("pointermove", (event) => {
    if (chart.view && samples.length) choosePoint(samples.nearest(chart.timeAt(event.offsetX)));
  });
  canvas.addEventListener("pointerleave", () => { if (!isPaused() && document.activeElement !== canvas) { state.chosen = null; dirty(); } });
  canvas.addEventListener("pointerdown", () => { if (!isPaused()) setPause(true); });
  canvas.addEventListener("keydown", (event) => {
    if (!chart.view) return;
    const { from, to } = chart.view, at = state.chosen === null ? to - 1 : state.chosen;
    const step = Math.max(Math.round((to - from) / 10), 1);
    const next = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageUp: at - step, PageDown: at + step, Home: from, End: to - 1 }[event.key];
    if (next !== undefined) {
      if (!isPaused()) setPause(true);  // what is read must stand still
      choosePoint(next);
    } else if (event.key === " ") setPause(!isPaused());
    else if (event.key === "Escape") setPause(false);
    else return;
    event.preventDefault();
  });
}

function describe(i) {
  const score = samples.at("score", i), at = (name) => samples.at(name, i);
  if (Number.isNaN(score)) return clock(at("time"), 1) + ": no score";
  return clock(at("time"), 1) + ": score " + number(score) + ", threshold " + number(at("threshold"))
    + (Number.isNaN(at("p_value")) ? "" : ", p-value " + number(at("p_value"))) + (samples.isAnomaly(i) ? ", anomalous" : ", normal");
}

// Drawing

function draw(now) {
  requestAnimationFrame(draw);
  if (now - state.told > CALM) {
    state.told = now;
    tell();
  }
  if (!state.isDirty || now - state.drawn < FRAME) return;
  state.isDirty = false;
  state.drawn = now;
  if (state.chosen !== null && (state.chosen < samples.first || state.chosen >= samples.end)) state.chosen = null;
  const end = state.end === null ? samples.lastTime : state.end;
  const shown = { samples, seconds: seconds(), end };
  byId("chart-empty").hidden = samples.length > 0;
  if (byId("one").hidden) return;
  const here = events.of(state.source), i = state.chosen === null ? samples.end - 1 : state.chosen;
  chart.draw({ ...shown, events: here, chosen: state.chosen });
  channels.draw({ ...shown, i, readings: state.readings, alarms: here.filter((event) => event.kind === "anomaly") });
  drawTrend(byId("local-p-trend"), { ...shown, value: (k) => samples.at("local_p", k) });
  drawTrend(byId("drift-trend"), { ...shown, value: (k) => samples.at("drift", k), limit: 1 });
}

function tell() {
  const stream = streams.get(state.source), isLive = byId("link").dataset.state === "live";
  showState({ source: state.source, stream, isLive });
  showNow(samples, streams.age(stream));
  showOthers(streams.in("alarm", "interrupted").filter((one) => one !== stream), choose);
  const read = state.chosen === null ? null : samples.readings(state.chosen), event = stream && events.known.get(stream.event);
  const troubled = events.of(state.source).filter((one) => one.state === "open" && one.kind !== "anomaly").flatMap((one) => one.channels);
  // what is arranged anew must be drawn, though no sample may come
  if (channels.arrange(read || troubled.concat(state.readings, event ? event.channels : []))) dirty();
  members.show(samples, state.chosen);
  showValues();
}

function showValues() {
  const i = state.chosen === null ? samples.end - 1 : state.chosen, canvas = byId("chart");
  const words = samples.length ? describe(i) : "";
  setText(byId("read"), words);
  if (chart.view && samples.length) {
    canvas.setAttribute("aria-valuemax", Math.max(chart.view.to - chart.view.from - 1, 0));
    canvas.setAttribute("aria-valuenow", Math.min(Math.max(i - chart.view.from, 0), Math.max(chart.view.to - chart.view.from - 1, 0)));
    // spoken while it is read, not with every sample that comes
    if (state.chosen !== null || canvas.getAttribute("aria-valuetext") === "no sample yet") canvas.setAttribute("aria-valuetext", words);
  }
  for (const [id, name] of [["local-p", "local_p"], ["drift", "drift"]]) {
    let value = NaN;
    for (let k = i; k >= samples.first && k > i - 300 && Number.isNaN(value); k--) value = samples.at(name, k);
    setText(byId(id), number(value));
    byId(id + "-trend").setAttribute("aria-label", (name === "drift" ? "Drift" : "Local p") + " over time, now " + number(value));
  }
  byId("drift").classList.toggle("far", Number.parseFloat(byId("drift").textContent) > 1);
}

function startTheme() {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const kept = localStorage.getItem(THEME);
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  const renew = () => { readColours(); dirty(); };
  byId("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
    root.dataset.theme = isDark ? "light" : "dark";
    localStorage.setItem(THEME, root.dataset.theme);
    renew();
  });
  dark.addEventListener("change", renew);
  renew();
}

startTheme();
startChart();
byId("pause").addEventListener("click", () => setPause(!isPaused()));
byId("acknowledge").addEventListener("click", () => { const stream = streams.get(state.source); if (stream) events.acknowledgeAll(stream); });
addEventListener("hashchange", follow);
byId("window").addEventListener("change", dirty);
byId("reload").addEventListener("click", () => location.reload());
byId("token-form").addEventListener("submit", () => { setToken(byId("token").value.trim()); connection.open(); });
byId("ask-token").addEventListener("cancel", (event) => { if (!token()) event.preventDefault(); });
new ResizeObserver(dirty).observe(byId("chart"));
connection.open();
requestAnimationFrame(draw);
