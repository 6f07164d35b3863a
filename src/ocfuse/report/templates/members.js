// How far the members agree.

function drawMembers() {
  const R = DATA.agreement.values, order = DATA.agreement.order, d = order.length;
  const width = widthOf("members-figure");
  const margin = Math.min(10 + 6.6 * Math.max(...DATA.members.map((m) => m.length)), width * 0.35);
  const cell = Math.min((width - margin - 4) / d, 64);
  const s = sheet("members-figure", cell * d + margin, agreementWords(), { left: margin });
  const short = (text) => text.length * 6.6 > margin ? text.slice(0, Math.floor(margin / 6.6) - 1) + "…" : text;
  order.forEach((a, i) => {
    s.text(margin - 6, (i + 0.5) * cell + 4, short(DATA.members[a]), "end");
    const x = margin + (i + 0.5) * cell + 4, y = d * cell + 8;
    s.text(x, y, short(DATA.members[a]), "end").setAttribute("transform", "rotate(-60 " + x + " " + y + ")");
    order.forEach((b, j) => {
      if (j <= i) drawCell(s, margin + j * cell, i * cell, cell, R[a][b], DATA.members[a] + " and " + DATA.members[b]);
    });
  });
}

function drawCell(s, x, y, size, r, who) {
  const step = Math.min(Math.floor(Math.max(r, 0) ** 2 * N_STEPS), N_STEPS - 1);
  const box = s.rect(x + 0.5, y + 0.5, size - 1, size - 1, r === null ? "grid" : r < 0 ? "f-alarm" : "h" + step);
  if (r < 0) box.setAttribute("fill-opacity", (0.1 + 0.5 * -r).toFixed(2));
  box.addEventListener("pointerenter", () => { byId("members-read").textContent = who + ": " + number(r, 2); });
  if (size < 24 || r === null) return;
  const colour = step < 3 ? "ink" : step === 3 ? "dark" : "on";
  const label = s.text(x + size / 2, y + size / 2 + 4, r.toFixed(2).replace("0.", ".").replace("1.00", "1").replace("-", "−"), "middle", colour);
  label.setAttribute("pointer-events", "none");
  if (size < 30) label.setAttribute("font-size", "10");
}

function agreementWords() {
  let least = null;
  DATA.agreement.values.forEach((row, a) => row.forEach((r, b) => {
    if (b < a && r !== null && (least === null || r < least[0])) least = [r, a, b];
  }));
  const end = least ? " Least agree " + DATA.members[least[1]] + " and " + DATA.members[least[2]] + ": " + number(least[0], 2) + "." : "";
  return "Rank correlation of the members." + end;
}
