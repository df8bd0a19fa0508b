"use strict";
// Marks that answer, tables that sort, rows that can be filtered. The page says everything without this, too.

const tip = document.getElementById("tip");

function mark(name) {
  for (const one of document.querySelectorAll("[data-trial]"))
    one.classList.toggle("active", name !== null && one.dataset.trial === name);
}

function line(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

// What a mark is drawn as, without its label.
const body = (mark) => (mark.querySelector(".shape, i") ?? mark).getBoundingClientRect();

function show(point) {
  const facts = point.dataset.tip.split("\n").filter(Boolean);
  const name = point.dataset.trial;
  tip.replaceChildren(...(name ? [line("b", name)] : []), ...facts.map((fact) => line("span", fact)));
  tip.hidden = false;
  mark(name ?? null);
  const place = body(point);
  const own = tip.getBoundingClientRect();
  const room = document.documentElement.clientWidth - own.width - 12;
  const left = place.left + place.width / 2 - own.width / 2;
  const above = place.top - own.height - 10;
  tip.style.left = `${Math.max(12, Math.min(left, room)) + scrollX}px`;
  tip.style.top = `${(above > 8 ? above : place.bottom + 10) + scrollY}px`;
}

function hide() {
  tip.hidden = true;
  mark(null);
}

// In a graph the nearest point answers: a finger is wider than a point.
function nearest(chart, event) {
  if (!chart.matches("svg")) return event.target.closest("[data-tip]");
  let found = null;
  let least = 28;
  for (const point of chart.querySelectorAll(".point")) {
    const place = body(point);
    const across = place.left + place.width / 2 - event.clientX;
    const up = place.top + place.height / 2 - event.clientY;
    const distance = Math.hypot(across, up);
    if (distance < least) [found, least] = [point, distance];
  }
  return found;
}

// One stop of the tab key a chart; arrows lead from mark to mark.
function step(marks, event) {
  const place = marks.indexOf(document.activeElement);
  const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const ends = { Home: 0, End: marks.length - 1 };
  const next = event.key in moves ? place + moves[event.key] : ends[event.key];
  if (place < 0 || next === undefined || !marks[next]) return;
  event.preventDefault();
  marks[place].tabIndex = -1;
  marks[next].tabIndex = 0;
  marks[next].focus();
}

for (const chart of document.querySelectorAll(".tips")) {
  const marks = [...chart.querySelectorAll("[data-tip]")];
  for (const kind of ["pointermove", "pointerdown"])
    chart.addEventListener(kind, (event) => {
      const point = nearest(chart, event);
      if (point) show(point);
      else hide();
    });
  chart.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") hide();
  });
  chart.addEventListener("keydown", (event) => step(marks, event));
  for (const point of marks) {
    point.addEventListener("focus", () => show(point));
    point.addEventListener("blur", hide);
  }
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hide();
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest(".tips")) hide();
});

// Rows and bars without the words of the filter are hidden.
const filter = document.getElementById("filter");

function sift() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const one of document.querySelectorAll("[data-filter]"))
    one.hidden = !words.every((word) => one.dataset.filter.includes(word));
  const left = document.querySelectorAll("tr[data-filter]:not([hidden])").length;
  const shown = document.getElementById("shown");
  shown.textContent = words.length ? `${left} ${shown.dataset.all}` : "";
}

if (filter) {
  filter.closest(".filter").hidden = false;
  filter.addEventListener("input", sift);
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === "" || b === "") return a === "" ? 2 : -2; // what is unknown stays last
  const [x, y] = [Number(a), Number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return a < b ? -1 : 1;
  return x < y ? -1 : 1;
}

function sort(table, column, heading) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => row.cells[column].dataset.sort ?? "";
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const order = compare(key(a), key(b));
    return down && Math.abs(order) < 2 ? -order : order;
  });
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable"))
  [...table.tHead.rows[0].cells].forEach((heading, column) =>
    heading.querySelector("button")?.addEventListener("click", () => sort(table, column, heading)),
  );
