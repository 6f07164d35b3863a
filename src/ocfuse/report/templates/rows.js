// The table of ranked rows, and what unfolds under each.

const N_MEMBERS = 8;  // members that are listed

function toggle(body, open) {
  const button = body.querySelector(".open"), row = body.querySelector(".why");
  const isOpen = open === undefined ? row.hidden : open;
  if (isOpen && !row.firstElementChild.hasChildNodes()) fill(row.firstElementChild, DATA.details[Number(body.dataset.index)]);
  row.hidden = !isOpen;
  button.setAttribute("aria-expanded", String(isOpen));
}

function bar(cell, value, most, kind, words) {
  cell.className = "short";
  const icon = add(cell, "svg", { width: 90, viewBox: "0 0 90 10", preserveAspectRatio: "none", height: 10, "aria-hidden": "true" });
  const length = most ? Math.min(Math.abs(value) / most, 1) * 88 : 0;
  add(icon, "rect", { width: Math.max(length, 1), height: 10, rx: 2, class: kind });
  add(cell, "span", { class: "figure-of" }, words);
}

// The last lines of a sum: what is not listed, and the whole.
function total(body, lines, columns) {
  for (const [words, value] of lines) {
    const row = add(body, "tr", { class: "total" });
    add(row, "th", { scope: "row", colspan: columns - 1 }, words);
    bar(add(row, "td"), 0, 0, "none", value);
  }
}

const sum = (values) => values.reduce((a, b) => a + b, 0);

function listing(parent, title, heads) {
  const box = add(parent, "div");
  add(box, "h4", {}, title);
  const table = add(box, "table");
  const row = add(add(table, "thead"), "tr");
  for (const head of heads) add(row, "th", { scope: "col" }, head);
  return { box, body: add(table, "tbody") };
}

function fill(cell, detail) {
  const box = add(cell, "div", { class: "details" });
  fillFeatures(box, detail);
  fillMembers(box, detail);
  const near = detail.near.map((row, i) => row + " (distance " + number(detail.far[i]) + ")").join(", ");
  add(box, "p", {}, "Nearest normal training rows: " + near + "." + (detail.p === null ? "" : " Local norm p(x): " + number(detail.p) + "."));
}

function fillFeatures(box, detail) {
  const { body } = listing(box, "Most unusual features", ["feature", "here", "usually", "what it costs the score"]);
  const costs = detail.readings.map((r) => r[3]), rest = DATA.nFeatures - costs.length;
  const words = summing(rest ? [...costs, detail.cost - sum(costs)] : costs, detail.cost);
  const most = Math.max(...costs.map(Math.abs), 0);
  for (const [i, [feature, value, usual, cost]] of detail.readings.entries()) {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, feature);
    for (const text of [value, usual]) add(row, "td", { class: text.length < 14 ? "short" : "" }, text);
    bar(add(row, "td"), cost, most, cost > 0 ? "f-alarm" : "f-quiet", words[i]);
  }
  const lines = rest ? [[rest + (rest > 1 ? " other features" : " other feature"), words[costs.length]]] : [];
  total(body, [...lines, ["together: by so much it scores below a row with values of the normal rows most like it", words.at(-1)]], 4);
}

function fillMembers(box, detail) {
  const { body } = listing(box, "Members that lowered the score most", ["member", "its score", "trusted (weight)", "its share of the score"]);
  const order = DATA.members.map((_, j) => j).sort((a, b) => detail.shares[a] - detail.shares[b]);
  const heaviest = Math.max(...detail.weights.map(Math.abs));
  const most = Math.max(...detail.shares.map(Math.abs));
  const listed = order.slice(0, N_MEMBERS), rest = order.slice(N_MEMBERS), parts = listed.map((j) => detail.shares[j]), lines = [];
  if (detail.base) parts.push(detail.base);
  if (rest.length) parts.push(detail.score - sum(parts));
  const words = summing(parts, detail.score), weightWords = aligned(detail.weights);
  for (const [i, j] of listed.entries()) {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, DATA.members[j]);
    add(row, "td", { class: "short" }, number(detail.scores[j]));
    bar(add(row, "td"), detail.weights[j], heaviest, "f-normal", weightWords(detail.weights[j]));
    bar(add(row, "td"), detail.shares[j], most, detail.shares[j] < 0 ? "f-alarm" : "f-quiet", words[i]);
  }
  if (rest.length) lines.push([rest.length + (rest.length > 1 ? " other members" : " other member"), words.at(-2)]);
  if (detail.base) lines.push(["before any member has spoken", words[listed.length]]);
  total(body, [...lines, ["together: the score", words.at(-1)]], 4);
}

function openRow(index) {
  const body = byId("row-" + index);
  if (!body) return;
  body.hidden = false;
  toggle(body, true);
  body.scrollIntoView({ block: "center" });
  body.querySelector(".open").focus({ preventScroll: true });
}

function sortBy(button) {
  const head = button.closest("th"), key = button.dataset.sort;
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of byId("table").tHead.querySelectorAll("[aria-sort]")) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const numeric = key !== "id" || [...byId("table").tBodies].every((b) => b.dataset.id.trim() !== "" && isFinite(b.dataset.id));
  const compare = (a, b) => numeric ? Number(a.dataset[key]) - Number(b.dataset[key]) : a.dataset[key].localeCompare(b.dataset[key], "en", { numeric: true });
  const isGap = (body) => Number(numeric && isNaN(body.dataset[key]));  // such as a row without a time: always last
  const bodies = [...byId("table").tBodies].sort((a, b) => isGap(a) - isGap(b) || (isGap(a) ? 0 : (down ? -1 : 1) * compare(a, b)) || a.dataset.index - b.dataset.index);
  byId("table").append(...bodies);
}

function find() {
  const wanted = byId("find").value.trim().toLowerCase();
  let shown = 0;
  for (const body of byId("table").tBodies) {
    const detail = DATA.details[Number(body.dataset.index)];
    const text = body.querySelector(".entry").textContent + " " + detail.readings.map((r) => r.slice(0, 3).join(" ")).join(" ");
    body.hidden = !text.toLowerCase().includes(wanted);
    if (!body.hidden) shown += 1;
  }
  byId("found").textContent = wanted ? counted(shown, "row") : "";
}

function startTable() {
  for (const body of byId("table").tBodies) body.querySelector(".entry").addEventListener("click", () => toggle(body));
  for (const button of document.querySelectorAll("[data-sort]")) button.addEventListener("click", () => sortBy(button));
  byId("find").addEventListener("input", find);
  const first = byId("go-first");
  if (first) first.addEventListener("click", (event) => { event.preventDefault(); openRow(0); });
}
