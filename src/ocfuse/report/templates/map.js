// The map of the rows: who is trusted where.

const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const N_COLOURS = 7, OTHER = 7;  // members with a colour of their own, k0 to k6, and k7

function startMap() {
  const select = byId("colour"), map = DATA.map;
  // one member that is trusted nearly everywhere makes a dull picture
  const mostly = Math.max(...DATA.members.map((_, j) => map.top.filter((top) => top === j).length));
  add(select, "option", { value: "score" }, "score");
  add(select, "option", { value: "top" }, "most trusted member");
  if (map.p) add(select, "option", { value: "p" }, "local norm p(x)");
  map.weights.forEach((levels, j) => {
    if (levels) add(select, "option", { value: "w" + j }, "weight of " + DATA.members[j]);
  });
  select.value = mostly < 0.9 * map.top.length ? "top" : "score";
  select.addEventListener("change", drawMap);
  state.redraw.push(drawMap);
}

// For every point its colour class; and the legend.
function colours() {
  const map = DATA.map, what = byId("colour").value;
  if (what === "top") return topColours(map);
  let levels = what === "p" ? map.p : what === "score" ? null : map.weights[Number(what.slice(1))];
  if (!levels) levels = scoreLevels(map);
  const kinds = levels.steps || [...levels.levels].map((c) => Math.min(Math.floor(LEVELS.indexOf(c) / 64 * N_STEPS), N_STEPS - 1));
  return { kinds: kinds.map((k) => "h" + k), ramp: [number(levels.low), number(levels.high)] };
}

function topColours(map) {
  const counts = new Map();
  for (const j of map.top) counts.set(j, (counts.get(j) || 0) + 1);
  const order = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
  const kind = (j) => "k" + (order.indexOf(j) < N_COLOURS ? order.indexOf(j) : OTHER);
  const entries = order.slice(0, N_COLOURS).map((j) => [kind(j), DATA.members[j] + " (" + percent(counts.get(j) / map.top.length) + ")"]);
  if (order.length > N_COLOURS) entries.push(["k" + OTHER, order.length - N_COLOURS + " others"]);
  return { kinds: map.top.map(kind), entries };
}

// Low scores are strong colours: these are the rows to look at.
function scoreLevels(map) {
  const places = map.score.map(place), low = Math.min(...places), high = Math.max(...places);
  const steps = places.map((p) => Math.min(Math.floor((high - p) / (high - low || 1) * N_STEPS), N_STEPS - 1));
  return { steps, low: Math.max(...map.score), high: Math.min(...map.score) };
}

function drawMap() {
  const map = DATA.map, width = widthOf("map-figure");
  const s = sheet("map-figure", Math.min(Math.max(width * 0.72, 260), 480), "Map of training rows and rows of this report", { left: 8, right: 8, top: 8, bottom: 8 });
  const x = scale(Math.min(...map.x), Math.max(...map.x), s.left + 8, s.right - 8);
  const y = scale(Math.min(...map.y), Math.max(...map.y), s.bottom - 8, s.top + 8);
  const points = map.x.map((_, i) => [x(map.x[i]), y(map.y[i])]);
  const { kinds, entries, ramp } = colours();
  const alarms = points.filter((_, i) => map.isNew[i] && map.score[i] < threshold());
  s.rect(0, 0, s.width, s.height, "grid");
  drawGroups(s, points, kinds, 0, "known");
  s.path(dots(alarms), "dots ring");
  s.path(dots(alarms), "dots gap");
  drawGroups(s, points, kinds, 1, "fresh");
  showMapLegend(entries, ramp);
  watchMap(s, points);
}

function drawGroups(s, points, kinds, isNew, kind) {
  const groups = new Map();
  points.forEach((point, i) => {
    if (DATA.map.isNew[i] !== isNew) return;
    if (!groups.has(kinds[i])) groups.set(kinds[i], []);
    groups.get(kinds[i]).push(point);
  });
  for (const [colour, group] of groups) s.path(dots(group), "dots " + kind + " " + colour);
}

function showMapLegend(entries, ramp) {
  const shapes = [["dots known k7", "training row", "dot"], ["dots fresh k7", "row of this report", "dot"], ["dots ring", "alarm", "ring"]];
  legend("map-legend", [...(entries || []), ...shapes]);
  if (!ramp) return;
  const item = document.createElement("span");
  item.append(ramp[0]);
  const icon = add(item, "svg", { width: 84, height: 12, "aria-hidden": "true" });
  for (let k = 0; k < N_STEPS; k++) add(icon, "rect", { x: 12 * k, width: 12, height: 12, class: "h" + k });
  item.append(ramp[1]);
  byId("map-legend").prepend(item);
}

function watchMap(s, points) {
  const mark = add(s.root, "circle", { r: 7, class: "mark", visibility: "hidden" });
  const nearest = (event) => {
    const [px, py] = pointer(event, s.root);
    let best = -1, least = 400;
    points.forEach(([x, y], i) => {
      const far = (x - px) ** 2 + (y - py) ** 2;
      if (far < least) { least = far; best = i; }
    });
    return best;
  };
  s.root.addEventListener("pointermove", (event) => {
    const i = nearest(event);
    mark.setAttribute("visibility", i < 0 ? "hidden" : "visible");
    byId("map-read").textContent = i < 0 ? "\u00a0" : mapWords(i);
    if (i < 0) return;
    mark.setAttribute("cx", points[i][0]);
    mark.setAttribute("cy", points[i][1]);
  });
  s.root.addEventListener("click", (event) => {
    const i = nearest(event);
    if (i < 0 || !DATA.map.isNew[i]) return;
    openRow(DATA.details.findIndex((detail) => detail.row === DATA.map.row[i]));
  });
}

function mapWords(i) {
  const map = DATA.map;
  const who = map.isNew[i] ? "Row " + name(map.row[i]) : "Training row " + map.row[i];
  return who + ": score " + number(map.score[i]) + ", trusts " + DATA.members[map.top[i]] + " most";
}
