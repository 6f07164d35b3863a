// What all pictures are drawn with. Texts of users reach the page as text nodes and
// attributes only, never as markup.

const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const N_STEPS = 7;  // colours of a ramp, h0 to h6
const byId = (id) => document.getElementById(id);
const state = { at: DATA.thresholds.start, view: null, width: null, redraw: [] };

function add(parent, tag, attributes, text) {
  const inSvg = tag === "svg" || parent.namespaceURI === SVG;
  const node = inSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const name in attributes || {}) node.setAttribute(name, attributes[name]);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function number(value, digits) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(1) : String(Number(value.toPrecision(digits || 3)));
  return text.replaceAll("-", "−");
}

// As many decimals as the largest needs for three digits.
function decimalsFor(values) {
  const most = Math.max(...values.map(Math.abs), 1e-9);
  return Math.min(Math.max(2 - Math.floor(Math.log10(most)), 0), 9);
}

const fixed = (value, decimals) => value.toFixed(decimals).replace(/^-(?=[0.]*$)/, "").replace("-", "−");

// Numbers of one column.
function aligned(values) {
  const decimals = decimalsFor(values);
  return (value) => fixed(value, decimals);
}

// The parts of a sum and the sum, rounded so that what is shown still adds up.
function summing(parts, total) {
  const decimals = decimalsFor([...parts, total]), unit = 10 ** decimals;
  const units = parts.map((part) => part * unit), whole = units.map(Math.floor);
  const left = Math.min(Math.max(Math.round(total * unit) - whole.reduce((a, b) => a + b, 0), 0), parts.length);
  const order = parts.map((_, j) => j).sort((a, b) => whole[a] - units[a] - (whole[b] - units[b]));
  for (const j of order.slice(0, left)) whole[j] += 1;
  return [...whole.map((value) => fixed(value / unit, decimals)), fixed(Math.round(total * unit) / unit, decimals)];
}

function percent(share) {
  const digits = share >= 0.0995 || share === 0 ? 0 : share >= 0.00995 ? 1 : 2;
  return (100 * share).toFixed(digits) + " %";
}

const whole = (count) => count.toLocaleString("en");
const counted = (count, noun) => whole(count) + " " + noun + (count === 1 ? "" : "s");
const threshold = () => DATA.thresholds.value[state.at];
const place = (score) => Math.asinh((score - DATA.axis.centre) / DATA.axis.unit);
const name = (row) => DATA.ids[row] === undefined ? String(row) : DATA.ids[row];

const widthOf = (id) => state.width || Math.max(byId(id).clientWidth, 260);

// An SVG as wide as its figure, so that letters keep their size on a phone.
function sheet(id, height, label, margin) {
  const figure = byId(id);
  figure.textContent = "";
  const width = widthOf(id);
  const m = Object.assign({ top: 10, right: 12, bottom: 34, left: 44 }, margin);
  const root = add(figure, "svg", {
    viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": label,
  });
  return {
    root, width, height, left: m.left, right: width - m.right, top: m.top,
    bottom: height - m.bottom,
    line(x1, y1, x2, y2, kind) { return add(root, "line", { x1, y1, x2, y2, class: kind }); },
    text(x, y, words, anchor, kind) {
      return add(root, "text", { x, y, "text-anchor": anchor || "middle", class: kind || "" }, words);
    },
    rect(x, y, w, h, kind) {
      return add(root, "rect", { x, y, width: Math.max(w, 0), height: Math.max(h, 0), class: kind });
    },
    path(d, kind) { return add(root, "path", { d, class: kind }); },
  };
}

function scale(low, high, start, end) {
  const span = high - low || 1;
  return (value) => start + (value - low) / span * (end - start);
}

// Dots of zero length: one path for thousands of them.
const dots = (points) => points.map((p) => "M" + p[0].toFixed(1) + " " + p[1].toFixed(1) + "h0").join("");

function legend(id, entries) {
  const box = byId(id);
  box.textContent = "";
  for (const [kind, words, shape] of entries) {
    const item = add(box, "span");
    const icon = add(item, "svg", { width: 16, height: 12, "aria-hidden": "true" });
    if (shape === "line") add(icon, "line", { x1: 0, y1: 6, x2: 16, y2: 6, class: kind });
    else if (shape === "dot" || shape === "ring") add(icon, "path", { d: "M8 6h0", class: kind });
    else add(icon, "rect", { width: 14, height: 12, rx: 2, class: kind });
    if (shape === "ring") add(icon, "path", { d: "M8 6h0", class: "dots gap" });
    item.append(words);
  }
}

function pointer(event, root) {
  const box = root.getBoundingClientRect();
  const ratio = root.viewBox.baseVal.width / box.width;
  return [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
}
