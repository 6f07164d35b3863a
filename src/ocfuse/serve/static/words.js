// How numbers, times and kinds of events are written.

const FIRST_DATE = 1e8;  // seconds; earlier times are of a clock that knows no date
const DAY = 86400;

export const KINDS = { anomaly: "", silent: "silence", missing: "missing", stuck: "stands still", range: "out of range", rate: "rate", changed: "source changed" };

export const isDate = (time) => time >= FIRST_DATE;

export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(1) : String(Number(value.toPrecision(digits)));
  return text.replaceAll("-", "−");
}

const two = (value) => String(Math.floor(value)).padStart(2, "0");

function clockOf(date, digits) {
  const part = digits ? "." + String(date.getMilliseconds()).padStart(3, "0").slice(0, digits) : "";
  return two(date.getHours()) + ":" + two(date.getMinutes()) + ":" + two(date.getSeconds()) + part;
}

const dayOf = (date) => date.getFullYear() + "-" + two(date.getMonth() + 1) + "-" + two(date.getDate());

// Time of day, in the zone of the reader.
export function clock(time, digits = 0) {
  return isDate(time) ? clockOf(new Date(1000 * time), digits) : number(time, 6) + " s";
}

// The same with the day, unless that is today.
export function moment(time) {
  if (!isDate(time)) return clock(time);
  const date = new Date(1000 * time), day = dayOf(date);
  return (day === dayOf(new Date()) ? "" : day + " ") + clockOf(date);
}

export function span(seconds) {
  if (seconds < 9.95) return seconds.toFixed(1) + " s";
  if (seconds < 60) return Math.floor(seconds) + " s";
  if (seconds < 3600) return Math.floor(seconds / 60) + " min " + two(seconds % 60) + " s";
  if (seconds < DAY) return Math.floor(seconds / 3600) + " h " + two((seconds % 3600) / 60) + " min";
  return Math.floor(seconds / DAY) + " d " + Math.floor((seconds % DAY) / 3600) + " h";
}

// Words of the service, which are in ASCII, with signs that screens have.
export const plain = (words) => words.replaceAll("+-", "±").replace(/(^|[ (])-(?=\d)/g, "$1−");

export const sourceName = (source) => source[1] ? source[0] + " · " + source[1] : source[0];
export const sameSource = (a, b) => Boolean(a && b && a[0] === b[0] && a[1] === b[1]);
export const counted = (count, noun) => count.toLocaleString("en") + " " + noun + (count === 1 ? "" : "s");

// Steps of an axis that people count in.
export function steps(low, high, most) {
  const rough = (high - low || 1) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) ticks.push(i * step);
  return ticks;
}

export function timeSteps(low, high, most) {
  if (!isDate(low)) return steps(low, high, most);
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].find((value) => (high - low) / value <= most) || 3600;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

// Text of others reaches the page as text nodes and attributes only, never as markup.
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

// Writing the same text again would make screen readers say it again.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
