// Whether the false-alarm rate can be trusted.

const LOWEST = 0.002;

function drawRates() {
  const trust = DATA.trust;
  const s = sheet("rates-figure", 300, "Measured against stated false-alarm rates", { left: 58, right: 22, bottom: 44 });
  const log = (rate) => Math.log10(Math.max(rate, LOWEST));
  const x = (rate) => scale(log(0.005), log(0.5), s.left, s.right)(log(rate));
  const y = (rate) => scale(log(LOWEST), 0, s.bottom, s.top)(log(rate));
  for (const tick of [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]) {
    s.line(x(tick), s.top, x(tick), s.bottom, "grid");
    s.text(x(tick), s.bottom + 16, number(100 * tick) + " %");
  }
  for (const tick of [LOWEST, 0.01, 0.05, 0.2, 1]) {
    s.line(s.left, y(tick), s.right, y(tick), "grid");
    s.text(s.left - 6, y(tick) + 4, (tick === LOWEST ? "≤ " : "") + number(100 * tick) + " %", "end");
  }
  const known = trust.rates.map((_, i) => i).filter((i) => trust.low[i] !== null);
  const edge = (i, side) => x(trust.rates[i]).toFixed(1) + " " + y(trust[side][i]).toFixed(1);
  if (known.length) s.path("M" + [...known.map((i) => edge(i, "low")), ...known.reverse().map((i) => edge(i, "high"))].join("L") + "Z", "f-band");
  s.path("M" + x(0.005) + " " + y(0.005) + "L" + x(0.5) + " " + y(0.5), "base");
  curve(s, x, y, trust.heldOut, "s-normal");
  curve(s, x, y, trust.fresh, "s-alarm s-dash");
  s.text((s.left + s.right) / 2, s.bottom + 36, "stated false-alarm rate");
  s.text(s.left + 8, s.top + 14, "↑ measured", "start", "halo");
}

function curve(s, x, y, rates, kind) {
  const known = DATA.trust.rates.map((_, i) => i).filter((i) => rates[i] !== null);
  const d = known.map((i) => x(DATA.trust.rates[i]).toFixed(1) + " " + y(rates[i]).toFixed(1)).join("L");
  if (d) s.path("M" + d, kind);
}

function drawP() {
  const counts = DATA.trust.pValues;
  const s = sheet("p-figure", 300, "Histogram of the p-values of these rows", { left: 50, bottom: 44 });
  const even = DATA.n / counts.length, most = Math.max(...counts, even);
  const y = scale(0, most, s.bottom, s.top + 8), step = (s.right - s.left) / counts.length;
  counts.forEach((count, i) => {
    const bar = s.rect(s.left + i * step + 1, y(count), step - 2, s.bottom - y(count), i ? "f-quiet" : "f-alarm");
    add(bar, "title", {}, counted(count, "row"));
  });
  s.line(s.left, y(even), s.right, y(even), "s-normal s-dash");
  s.line(s.left, s.bottom, s.right, s.bottom, "base");
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) s.text(s.left + tick * (s.right - s.left), s.bottom + 16, String(tick));
  for (const tick of [even, most]) s.text(s.left - 6, y(tick) + 4, number(Math.round(tick), 4), "end");
  s.text((s.left + s.right) / 2, s.bottom + 36, "p-value");
  s.text(s.right, s.top + 14, "↑ number of rows", "end", "halo");
}

function startTrust() {
  legend("rates-legend", [["base", "as stated", "line"], ["s-normal", "held-out training rows", "line"], ["s-alarm s-dash", DATA.trust.whose, "line"], ["f-band", "chance"]]);
  legend("p-legend", [["f-alarm", "below 0.05"], ["f-quiet", "above"], ["s-normal s-dash", "normal rows alone", "line"]]);
  state.redraw.push(drawRates, drawP);
}
