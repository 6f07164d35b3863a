// Pictures on canvas: the score with its threshold and alarms, and small trends.

import { clock, KINDS, number, steps, timeSteps } from "./words.js";

const MARGIN = { top: 22, right: 12, bottom: 24, left: 46 };
const FONT = "12px system-ui, sans-serif";
// Scores may fall far below the threshold, and everything else must still be seen.
const DEEPEST = 3;
// No line is drawn over a gap of so many usual steps, and of a second at least.
const GAP = 8;

let colours = {};

// Colours are those of the style sheet, so that pictures follow the theme.
export function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "line", "panel", "normal", "alarm", "alarm-ink", "quiet", "warn"])
    colours[name] = style.getPropertyValue("--" + name).trim();
}

// A context in CSS pixels, sharp on every screen.
function sheet(canvas) {
  const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  return { pen, width, height };
}

export class ScoreChart {
  constructor(canvas) {
    this.canvas = canvas;
    this.limits = null;
    this.view = null;
  }

  // `end` is the time at the right edge; `chosen` the number of a sample, or null.
  draw({ samples, seconds, end, events, chosen }) {
    const { pen, width, height } = sheet(this.canvas);
    if (!samples.length || width < 80) { this.view = this.limits = null; return; }
    const box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
    const start = end - seconds;
    const from = Math.max(samples.find(start) - 1, samples.first);
    const to = Math.min(samples.find(end + 1e-9), samples.end);
    this.view = { start, end, from: Math.max(samples.find(start), samples.first), to, box };
    const [low, high] = this.range(samples, from, to);
    const x = (time) => box.left + (time - start) / seconds * (box.right - box.left);
    const y = (score) => box.bottom - (Math.min(Math.max(score, low), high) - low) / (high - low) * (box.bottom - box.top);
    this.drawGrid(pen, box, x, y, low, high);
    this.drawAlarms(pen, box, x, events, start, end);
    this.drawThreshold(pen, box, x, y, samples, from, to);
    this.drawScores(pen, box, x, y, low, samples, from, to);
    if (chosen !== null) this.drawCursor(pen, box, x, y, samples, chosen);
  }

  // Range of the axis; it grows at once and shrinks late, so that it does not tremble.
  range(samples, from, to) {
    let low = Infinity, high = -Infinity, threshold = NaN;
    for (let i = from; i < to; i++) {
      const score = samples.at("score", i), limit = samples.at("threshold", i);
      if (score < low) low = score;
      if (score > high) high = score;
      if (!Number.isNaN(limit)) threshold = limit;
    }
    if (!Number.isNaN(threshold)) { low = Math.min(low, threshold); high = Math.max(high, threshold); }
    if (!(low <= high)) [low, high] = [-1, 1];
    const normal = high - (Number.isNaN(threshold) ? low : threshold);
    if (normal > 0 && !Number.isNaN(threshold)) low = Math.max(low, threshold - DEEPEST * normal);
    const room = 0.12 * (high - low) || Math.abs(high) * 0.1 || 1;
    [low, high] = [low - room, high + room];
    const old = this.limits;
    const fits = old && low >= old[0] - 0.05 * room && high <= old[1] + 0.05 * room && high - low > 0.55 * (old[1] - old[0]);
    if (!fits) this.limits = [low, high];
    return this.limits;
  }

  drawGrid(pen, box, x, y, low, high) {
    pen.lineWidth = 1;
    pen.strokeStyle = colours.line;
    pen.fillStyle = colours.soft;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of steps(low, high, Math.max((box.bottom - box.top) / 46, 2))) {
      const at = Math.round(y(tick)) + 0.5;
      pen.beginPath(); pen.moveTo(box.left, at); pen.lineTo(box.right, at); pen.stroke();
      pen.fillText(number(Math.abs(tick) < 1e-12 ? 0 : tick), box.left - 7, at);
    }
    pen.textBaseline = "top";
    let free = -Infinity;
    for (const tick of timeSteps(this.view.start, this.view.end, Math.max((box.right - box.left) / 72, 1))) {
      const at = Math.round(x(tick)) + 0.5;
      pen.beginPath(); pen.moveTo(at, box.bottom); pen.lineTo(at, box.bottom + 4); pen.stroke();
      const words = clock(tick), wide = pen.measureText(words).width;
      const left = Math.min(Math.max(at - wide / 2, box.left - 18), box.right + MARGIN.right - wide);
      if (left < free) continue;
      pen.textAlign = "left";
      pen.fillText(words, left, box.bottom + 8);
      free = left + wide + 8;
    }
  }

  // Shaded, and a bar with the number of the event: not told by colour alone. Alarms are named first.
  drawAlarms(pen, box, x, events, start, end) {
    const taken = [], isAlarm = (event) => event.kind === "anomaly";
    for (const event of [...events.filter(isAlarm), ...events.filter((one) => !isAlarm(one))]) {
      const stop = event.state === "open" ? end : event.end;
      if (stop < start || event.begin > end) continue;
      const left = Math.max(x(event.begin), box.left), right = Math.max(Math.min(x(stop), box.right), left + 2);
      pen.fillStyle = isAlarm(event) ? colours.alarm : colours.warn;
      pen.globalAlpha = 0.13;
      pen.fillRect(left, box.top, right - left, box.bottom - box.top);
      pen.globalAlpha = 1;
      pen.fillRect(left, box.top - 5, right - left, 5);
      const words = (isAlarm(event) ? "alarm" : KINDS[event.kind] || event.kind) + " " + event.id, wide = pen.measureText(words).width;
      const at = Math.min(left, box.right - wide);
      if (taken.some((from) => Math.abs(from.at - at) < (from.at < at ? from.wide : wide) + 8)) continue;
      pen.fillStyle = colours["alarm-ink"];
      pen.textBaseline = "bottom";
      pen.textAlign = "left";
      pen.fillText(words, at, box.top - 6);
      taken.push({ at, wide });
    }
  }

  drawThreshold(pen, box, x, y, samples, from, to) {
    pen.strokeStyle = colours["alarm-ink"];
    pen.lineWidth = 1.6;
    pen.setLineDash([6, 4]);
    pen.beginPath();
    let before = NaN;
    for (let i = from; i < to; i++) {  // a new model may have another threshold
      const limit = samples.at("threshold", i);
      if (Number.isNaN(limit) || limit === before) continue;
      const at = Math.max(x(samples.at("time", i)), box.left);
      if (Number.isNaN(before)) pen.moveTo(box.left, y(limit));
      else { pen.lineTo(at, y(before)); pen.lineTo(at, y(limit)); }
      before = limit;
    }
    if (!Number.isNaN(before)) pen.lineTo(box.right, y(before));
    pen.stroke();
    pen.setLineDash([]);
  }

  // Of the samples in one column of pixels, the lowest and the highest are drawn.
  drawScores(pen, box, x, y, low, samples, from, to) {
    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top - 1, box.right - box.left + 4, box.bottom - box.top + 6);
    pen.clip();
    pen.strokeStyle = colours.normal;
    pen.lineWidth = 1.5;
    pen.lineJoin = "round";
    pen.beginPath();
    const marks = [], usual = (samples.at("time", to - 1) - samples.at("time", from)) / Math.max(to - from - 1, 1);
    let isDown = false, column = null, least = 0, most = 0, deepest = null;
    const flush = () => { if (column !== null && most > least) { pen.lineTo(column, y(most)); pen.lineTo(column, y(least)); } };
    for (let i = from; i < to; i++) {
      const score = samples.at("score", i);
      if (Number.isNaN(score)) { flush(); isDown = false; column = null; continue; }
      const px = x(samples.at("time", i)), here = Math.round(px);
      if (isDown && samples.at("time", i) - samples.at("time", i - 1) > Math.max(GAP * usual, 1)) { flush(); isDown = false; column = null; }
      if (here === column) { least = Math.min(least, score); most = Math.max(most, score); }
      else {
        flush();
        if (isDown) pen.lineTo(px, y(score)); else { pen.moveTo(px, y(score)); pen.lineTo(px + 0.1, y(score)); }
        [isDown, column, least, most] = [true, here, score, score];
      }
      if (samples.isAnomaly(i)) marks.push([px, y(score)]);
      if (score < low && (deepest === null || score < samples.at("score", deepest))) deepest = i;
    }
    flush();
    pen.stroke();
    this.drawMarks(pen, marks);
    pen.restore();
    if (deepest !== null) {
      const px = x(samples.at("time", deepest));
      pen.fillStyle = colours["alarm-ink"];
      pen.textBaseline = "bottom";
      pen.textAlign = px > box.right - 60 ? "right" : "left";
      pen.fillText("▼ " + number(samples.at("score", deepest)), px, box.bottom - 2);
    }
  }

  drawMarks(pen, marks) {
    pen.fillStyle = colours.alarm;
    let last = -Infinity;
    for (const [px, py] of marks) {
      if (px - last < 2) continue;
      last = px;
      pen.beginPath(); pen.arc(px, py, 2.6, 0, 7); pen.fill();
    }
  }

  drawCursor(pen, box, x, y, samples, i) {
    const px = x(samples.at("time", i)), score = samples.at("score", i);
    if (px < box.left - 1 || px > box.right + 1) return;
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1;
    pen.beginPath(); pen.moveTo(px, box.top); pen.lineTo(px, box.bottom); pen.stroke();
    if (Number.isNaN(score)) return;
    pen.fillStyle = colours.panel;
    pen.lineWidth = 2;
    pen.beginPath(); pen.arc(px, y(score), 4.5, 0, 7); pen.fill(); pen.stroke();
  }

  timeAt(px) {
    const { start, end, box } = this.view;
    const share = (px - box.left) / (box.right - box.left);
    return start + Math.min(Math.max(share, 0), 1) * (end - start);
  }
}

// A small trend of `value(i)`; `limit` is drawn as a dashed line, `band` as what is usual, `alarms` as shades.
export function drawTrend(canvas, { samples, value, seconds, end, limit, band, alarms = [] }) {
  const { pen, width, height } = sheet(canvas);
  if (!samples.length || width < 20) return;
  const start = end - seconds, points = [];
  for (let i = Math.max(samples.find(start), samples.first); i < samples.end && samples.at("time", i) <= end; i++)
    points.push([samples.at("time", i), value(i)]);
  const known = points.filter((point) => !Number.isNaN(point[1]));
  if (!known.length) return;
  let low = Infinity, high = -Infinity;
  for (const point of known) { low = Math.min(low, point[1]); high = Math.max(high, point[1]); }
  if (limit !== undefined) { low = Math.min(low, 0); high = Math.max(high, 1.25 * limit); }
  if (band) { low = Math.min(low, band[0]); high = Math.max(high, band[1]); }
  if (high - low < 1e-9 * Math.max(Math.abs(low), Math.abs(high), 1e-9)) { low -= 0.5; high += 0.5; }
  const x = (time) => 2 + (time - start) / seconds * (width - 6);
  const y = (level) => height - 5 - (level - low) / (high - low) * (height - 10);
  for (const event of alarms) {
    const stop = event.state === "open" ? end : event.end;
    if (stop < start || event.begin > end) continue;
    pen.globalAlpha = 0.13;
    pen.fillStyle = colours.alarm;
    pen.fillRect(Math.max(x(event.begin), 0), 0, Math.max(Math.min(x(stop), width) - Math.max(x(event.begin), 0), 2), height);
    pen.globalAlpha = 1;
  }
  if (band) {
    pen.globalAlpha = 0.16;
    pen.fillStyle = colours.normal;
    pen.fillRect(0, y(band[1]), width, Math.max(y(band[0]) - y(band[1]), 1));
    pen.globalAlpha = 1;
  }
  pen.lineWidth = 1;
  pen.strokeStyle = colours.line;
  pen.beginPath(); pen.moveTo(0, height - 0.5); pen.lineTo(width, height - 0.5); pen.stroke();
  if (limit !== undefined) {
    pen.setLineDash([4, 4]);
    pen.strokeStyle = colours["alarm-ink"];
    pen.beginPath(); pen.moveTo(0, y(limit)); pen.lineTo(width, y(limit)); pen.stroke();
    pen.setLineDash([]);
  }
  pen.strokeStyle = colours.normal;
  pen.lineWidth = 1.5;
  pen.lineJoin = "round";
  pen.beginPath();
  // of the samples in one column of pixels, the lowest and the highest; none where there is none
  let column = null, least = 0, most = 0, isDown = false;
  const flush = () => { if (column !== null && most > least) { pen.lineTo(column, y(most)); pen.lineTo(column, y(least)); } };
  for (const [time, level] of band ? points : known) {
    if (Number.isNaN(level)) { flush(); column = null; isDown = false; continue; }
    const px = x(time), here = Math.round(px);
    if (here === column) { least = Math.min(least, level); most = Math.max(most, level); continue; }
    flush();
    if (isDown) pen.lineTo(px, y(level)); else { pen.moveTo(px, y(level)); pen.lineTo(px + 0.1, y(level)); }
    [isDown, column, least, most] = [true, here, level, level];
  }
  flush();
  pen.stroke();
  const [time, level] = points[points.length - 1];
  if (Number.isNaN(level)) return;
  pen.fillStyle = colours.normal;
  pen.beginPath(); pen.arc(x(time), y(level), 2.6, 0, 7); pen.fill();
}
