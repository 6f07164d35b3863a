// The scores, and the threshold that a slider moves.

function drawScores() {
  const counts = DATA.histogram;
  const s = sheet("scores-figure", 300, "Distribution of the scores. " + outcomeWords(), { left: 14, bottom: 36 });
  const x = scale(DATA.axis.low, DATA.axis.high, s.left, s.right);
  const middle = (s.top + s.bottom) / 2, half = (s.bottom - s.top) / 2 - 10;
  const limit = x(place(threshold()));
  s.rect(s.left, s.top, limit - s.left, s.bottom - s.top, "f-zone");
  drawBars(s, counts.normal, (h) => [middle - h, h], half, s.right, "f-normal");
  drawBars(s, counts.fresh, (h) => [middle, h], half, limit, "f-alarm", "f-quiet");
  s.line(s.left, middle, s.right, middle, "base");
  for (const tick of DATA.axis.ticks) {
    const at = x(place(tick));
    s.line(at, s.bottom, at, s.bottom + 5, "base");
    s.text(at, s.bottom + 18, number(tick));
  }
  s.text(s.right, s.bottom + 34, "score, higher = more normal →", "end");
  s.text(s.left + 6, s.bottom - 6, "← alarm", "start", "c-alarm");
  s.line(limit, s.top, limit, s.bottom, "s-limit");
  const near = limit > (s.left + s.right) / 2;
  s.text(limit + (near ? -8 : 8), s.top + 10, "threshold " + number(threshold()), near ? "end" : "start", "strong");
  s.root.addEventListener("click", (event) => moveTo(nearestPosition(pointer(event, s.root)[0], x)));
}

// Bars in one colour up to a limit, and in another beyond it.
function drawBars(s, counts, where, room, limit, kind, beyond) {
  const peak = Math.max(...counts), step = (s.right - s.left) / counts.length;
  counts.forEach((count, i) => {
    if (!count) return;
    const [y, h] = where(Math.max(count / peak * room, 2));
    const start = s.left + i * step + 0.5, end = start + step - 1;
    const cut = Math.min(Math.max(limit, start), end);
    for (const [from, to, colour] of [[start, cut, kind], [cut, end, beyond]])
      if (to > from) add(s.rect(from, y, to - from, h, colour), "title", {}, counted(count, "row"));
  });
}

function nearestPosition(at, x) {
  let best = 0;
  DATA.thresholds.value.forEach((value, i) => {
    if (Math.abs(x(place(value)) - at) < Math.abs(x(place(DATA.thresholds.value[best])) - at)) best = i;
  });
  return best;
}

function outcomeParts() {
  const t = DATA.thresholds, i = state.at;
  const parts = [[whole(t.alarms[i]), " of " + counted(DATA.n, "row") + (t.alarms[i] === 1 ? " raises an alarm" : " raise an alarm")], [percent(t.rate[i]), " false-alarm rate"]];
  if (t.found) {
    const anomalies = DATA.nAnomalies, normals = DATA.nNormals;
    if (anomalies) parts.push([whole(t.found[i]) + " of " + whole(anomalies), " labelled anomalies found"]);
    if (normals) parts.push([whole(t.wrong[i]) + " of " + whole(normals), " labelled normal rows raise one"]);
  }
  return parts;
}

const outcomeWords = () => outcomeParts().map((p) => p.join("")).join("; ") + ".";

function showOutcome() {
  const box = byId("outcome"), slide = byId("slide");
  box.textContent = "";
  outcomeParts().forEach(([figure, words], i) => {
    if (i) box.append(" · ");
    add(box, "b", {}, figure);
    box.append(words);
  });
  slide.value = state.at;
  slide.setAttribute("aria-valuetext", number(threshold()) + ": " + outcomeWords());
  byId("reset").disabled = state.at === DATA.thresholds.start;
  for (const body of byId("table").tBodies) {
    const isAlarm = Number(body.dataset.score) < threshold();
    const badge = body.querySelector(".state");
    badge.textContent = isAlarm ? "alarm" : "normal";
    badge.classList.toggle("alarm", isAlarm);
  }
}

function moveTo(position) {
  state.at = position;
  showOutcome();
  drawScores();
  drawMap();
  if (DATA.timeline) drawTime();
}

function startScores() {
  const slide = byId("slide");
  slide.max = DATA.thresholds.value.length - 1;
  slide.addEventListener("input", () => moveTo(Number(slide.value)));
  byId("reset").addEventListener("click", () => moveTo(DATA.thresholds.start));
  legend("scores-legend", [["f-normal", "held-out normal rows"], ["f-quiet", "rows of this report"], ["f-alarm", "of these, alarms"]]);
  state.redraw.push(drawScores);
}
