// The score over time, with events.

const MOST_NUMBERED = 50;  // as many events as the page lists

const STEPS = [0.001, 0.01, 0.1, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000, 157680000, 1576800000].map((s) => 1000 * s);

function timeTicks(low, high, count) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const steps = DATA.timeline.isDate ? STEPS : [1, 2, 5, 10].map((f) => f * power);
  const step = steps.find((s) => span / s <= count) || span;
  // counted, not added up: a step may be lost in the rounding of a large time
  const first = Math.ceil(low / step), ticks = [];
  for (let i = 0; i <= count && (first + i) * step <= high; i++) ticks.push((first + i) * step);
  return { ticks, step };
}

const day = (time) => new Date(time).toISOString().slice(0, 10);

function timeWords(time, step) {
  if (!DATA.timeline.isDate) return String(Number(time.toPrecision(12))).replace("-", "−");
  if (step >= 86400000) return day(time);
  const clock = new Date(time).toISOString();
  if (step >= 60000) return clock.slice(11, 16);
  return step >= 1000 ? clock.slice(11, 19) : clock.slice(11, 23);
}

function wholeTime() {
  const time = DATA.timeline.time;
  const low = time[0], high = time[time.length - 1];
  return high > low ? [low, high] : [low - 1, high + 1];
}

// From top to bottom: a lane of events, the score, a lane of labelled anomalies, the time.
function drawTime() {
  const line = DATA.timeline, view = state.view || wholeTime();
  const s = sheet("time-figure", 360, "Score over time. " + outcomeWords(), { left: 46, top: 30, bottom: line.labelled ? 58 : 46 });
  s.root.setAttribute("tabindex", "0");
  const x = scale(view[0], view[1], s.left, s.right);
  const y = scale(DATA.axis.low, DATA.axis.high, s.bottom, s.top);
  const limit = Math.min(Math.max(y(place(threshold())), s.top), s.bottom);
  s.rect(s.left, limit, s.right - s.left, s.bottom - limit, "f-zone");
  for (const tick of DATA.axis.ticks) {
    s.line(s.left, y(place(tick)), s.right, y(place(tick)), "grid");
    s.text(s.left - 7, y(place(tick)) + 4, number(tick), "end");
  }
  drawLane(s, x, view, line.events, s.top - 18, "f-event", true);
  if (line.labelled) drawLane(s, x, view, line.labelled, s.bottom + 4, "f-label", false);
  drawTimeAxis(s, x, view);
  drawPoints(s, x, y, view, limit);
  s.line(s.left, limit, s.right, limit, "s-limit");
  const near = s.bottom - limit < 40;
  s.text(s.right - 4, limit + (near ? -7 : 15), "alarm below " + number(threshold()), "end", "halo c-alarm");
  watchTime(s, x, view);
  line.channels.forEach((channel, i) => drawChannel(channel, i, view));
}

// The course of a channel above the band of what is usual; events as in the picture of the score.
function drawChannel(channel, i, view) {
  const s = sheet("channel-figure-" + i, 150, channel.name + " over time", { left: 56, top: 22, bottom: 46 });
  const last = channel.time.length - 1, breaks = new Set(channel.breaks), shown = [];
  channel.time.forEach((_, k) => {
    if (channel.time[Math.min(k + 1, last)] >= view[0] && channel.time[Math.max(k - 1, 0)] <= view[1]) shown.push(k);
  });
  const known = shown.flatMap((k) => [channel.value[k], channel.low[k], channel.high[k]]).filter((v) => v !== null);
  const low = known.reduce((a, b) => Math.min(a, b), Infinity), high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  const x = scale(view[0], view[1], s.left, s.right), y = scale(low, high, s.bottom, s.top);
  const at = (k, v) => x(channel.time[k]).toFixed(1) + " " + y(v).toFixed(1);
  add(add(add(s.root, "defs"), "clipPath", { id: "channel-" + i }), "rect", { x: s.left, y: 0, width: s.right - s.left, height: s.height });
  const drawn = (d, kind) => s.path(d || "M0 0", kind).setAttribute("clip-path", "url(#channel-" + i + ")");
  const band = shown.filter((k) => channel.low[k] !== null && channel.high[k] !== null);
  drawn(band.length ? "M" + [...band.map((k) => at(k, channel.high[k])), ...[...band].reverse().map((k) => at(k, channel.low[k]))].join("L") + "Z" : "", "f-usual");
  let d = "", goesOn = false;
  for (const k of shown) {
    if (channel.value[k] === null) { goesOn = false; continue; }
    d += goesOn && !breaks.has(k) ? "L" + at(k, channel.value[k]) : "M" + at(k, channel.value[k]) + "h0";
    goesOn = true;
  }
  drawn(d, "s-line");
  for (const [start, end] of DATA.timeline.events)
    if (end >= view[0] && start <= view[1])
      s.rect(Math.max(x(start) - 1, s.left), s.bottom + 2, Math.min(Math.max(x(end), x(start)) + 1.5, s.right) - Math.max(x(start) - 1, s.left), 4, "f-event");
  for (const end of [low, high]) s.text(s.left - 7, y(end) + 4, number(end, 4), "end");
  s.text(s.left, s.top - 8, channel.name, "start", "strong");
  drawTimeAxis(s, x, view);
}

// Stretches of time as bars; numbered, the most severe first, where there is room.
function drawLane(s, x, view, stretches, top, kind, isNumbered) {
  const taken = [];
  stretches.forEach(([start, end], i) => {
    if (end < view[0] || start > view[1]) return;
    const from = Math.max(x(start) - 1, s.left), to = Math.min(Math.max(x(end), x(start)) + 1.5, s.right);
    s.rect(from, top, to - from, 8, kind);
    const middle = (from + to) / 2;
    if (!isNumbered || i >= MOST_NUMBERED || taken.some((other) => Math.abs(other - middle) < 20)) return;
    taken.push(middle);
    s.text(middle, top - 3, String(i + 1), "middle", "strong");
  });
}

function drawTimeAxis(s, x, view) {
  const low = DATA.timeline.labelled ? s.bottom + 16 : s.bottom;
  const { ticks, step } = timeTicks(view[0], view[1], Math.max((s.right - s.left) / 85, 2));
  s.line(s.left, low, s.right, low, "base");
  let last = "";
  for (const tick of ticks) {
    s.line(x(tick), low, x(tick), low + 5, "base");
    s.text(x(tick), low + 18, timeWords(tick, step));
    if (!DATA.timeline.isDate || step >= 86400000 || day(tick) === last) continue;
    last = day(tick);
    s.text(x(tick), low + 32, last);
  }
}

// The line, once clipped above and once below the threshold, there in the colour of alarms.
function drawPoints(s, x, y, view, limit) {
  const line = DATA.timeline, breaks = new Set(line.breaks), alarms = [], last = line.time.length - 1;
  let d = "", count = 0;
  line.time.forEach((time, i) => {
    if (line.time[Math.min(i + 1, last)] < view[0] || line.time[Math.max(i - 1, 0)] > view[1]) return;
    const px = x(time), py = y(place(line.score[i]));
    // a point of its own has no length, and yet is seen
    d += (!d || breaks.has(i) ? "M" + px.toFixed(1) + " " + py.toFixed(1) + "h0" : "") + "L" + px.toFixed(1) + " " + py.toFixed(1);
    if (time < view[0] || time > view[1]) return;
    count += 1;
    if (line.score[i] < threshold()) alarms.push([px, py]);
  });
  const defs = add(s.root, "defs");
  for (const [part, top, bottom, kind] of [["above", s.top - 2, limit, "s-line"], ["below", limit, s.bottom + 2, "s-alarm-line"]]) {
    add(add(defs, "clipPath", { id: part }), "rect", { x: s.left, y: top, width: s.right - s.left, height: bottom - top });
    s.path(d || "M0 0", kind).setAttribute("clip-path", "url(#" + part + ")");
  }
  // dots that touch each other hide the line
  s.path(dots(alarms), "dots point" + (count > (s.right - s.left) / 5 ? " small" : ""));
}

function watchTime(s, x, view) {
  const time = (px) => view[0] + (px - s.left) / (s.right - s.left) * (view[1] - view[0]);
  let start = null, brush = null;
  s.root.addEventListener("pointerdown", (event) => {
    start = pointer(event, s.root)[0];
    brush = s.rect(start, s.top, 0, s.bottom - s.top, "brush");
    s.root.setPointerCapture(event.pointerId);
  });
  s.root.addEventListener("pointermove", (event) => {
    const at = Math.min(Math.max(pointer(event, s.root)[0], s.left), s.right);
    showTime(time(at));
    if (start === null) return;
    brush.setAttribute("x", Math.min(start, at));
    brush.setAttribute("width", Math.abs(at - start));
  });
  s.root.addEventListener("pointerup", (event) => {
    const at = Math.min(Math.max(pointer(event, s.root)[0], s.left), s.right);
    const from = start;
    start = null;
    if (brush) brush.remove();
    if (from !== null && Math.abs(at - from) > 6) look([time(Math.min(from, at)), time(Math.max(from, at))]);
  });
  s.root.addEventListener("pointercancel", () => { start = null; if (brush) brush.remove(); });
  s.root.addEventListener("keydown", (event) => {
    const what = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", 0: "all", Escape: "all" }[event.key];
    if (!what) return;
    event.preventDefault();
    zoom(what);
    byId("time-figure").querySelector("svg").focus();
  });
}

function showTime(time) {
  const times = DATA.timeline.time;
  let low = 0, high = times.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle; else high = middle;
  }
  const i = time - times[low] < times[high] - time ? low : high;
  const when = DATA.timeline.isDate ? day(times[i]) + " " + timeWords(times[i], 1000) : timeWords(times[i]);
  byId("time-read").textContent = when + ": score " + number(DATA.timeline.score[i]);
}

function look(view) {
  const [low, high] = wholeTime();
  const least = (high - low) / 1e5;
  if (view && view[1] - view[0] < least) view = [view[0] - least, view[1] + least];
  if (view) view = [Math.max(view[0], low), Math.min(view[1], high)];
  state.view = view && (view[0] > low || view[1] < high) ? view : null;
  drawTime();
}

function zoom(what) {
  const [low, high] = state.view || wholeTime(), span = high - low;
  const [first, last] = wholeTime();
  const shift = { left: Math.max(-span / 2, first - low), right: Math.min(span / 2, last - high) }[what];
  if (what === "all") look(null);
  else if (what === "in") look([low + span / 4, high - span / 4]);
  else if (what === "out") look([low - span / 2, high + span / 2]);
  else look([low + shift, high + shift]);
}

function startTime() {
  for (const button of document.querySelectorAll("[data-zoom]"))
    button.addEventListener("click", () => zoom(button.dataset.zoom));
  for (const button of document.querySelectorAll("[data-event]"))
    button.addEventListener("click", () => {
      const [start, end] = DATA.timeline.events[Number(button.dataset.event)];
      const [low, high] = wholeTime();
      const margin = Math.max(end - start, (high - low) / 50);
      look([start - margin, end + margin]);
      byId("time-figure").scrollIntoView({ block: "center" });
    });
  const entries = [["s-line", "score", "line"], ["dots point", "alarm", "dot"], ["s-limit", "threshold", "line"], ["f-event", "event, at the detector's own threshold"]];
  if (DATA.timeline.labelled) entries.push(["f-label", "labelled anomaly"]);
  if (DATA.timeline.channels.length) entries.push(["f-usual", "usual of a channel"]);
  legend("time-legend", entries);
  state.redraw.push(drawTime);
}
