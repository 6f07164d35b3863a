// The page: everything is started and drawn.

const PAPER = 700;  // width in pixels, on A4 and letter paper
const MOST_PRINTED = 3;  // rows that are printed with their details

function startTheme() {
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
}

// Paper is narrower than most screens, and shows why the first rows are unusual.
function watchPrint() {
  let opened = [];
  addEventListener("beforeprint", () => {
    state.width = PAPER;
    opened = [...byId("table").tBodies].slice(0, MOST_PRINTED).filter((body) => body.querySelector(".why").hidden);
    opened.forEach((body) => toggle(body, true));
    redraw();
  });
  addEventListener("afterprint", () => {
    state.width = null;
    opened.forEach((body) => toggle(body, false));
    redraw();
  });
}

const redraw = () => state.redraw.forEach((draw) => draw());

function watchWidth() {
  let width = document.documentElement.clientWidth, timer = 0;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    clearTimeout(timer);
    timer = setTimeout(redraw, 120);
  });
}

startTheme();
startTable();
startScores();
if (DATA.timeline) startTime();
startMap();
if (DATA.agreement) state.redraw.push(drawMembers);
startTrust();
showOutcome();
redraw();
watchWidth();
watchPrint();
