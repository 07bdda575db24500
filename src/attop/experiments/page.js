"use strict";
// Tables sort by a click on a heading; the list of fits is filtered as one types.
function valueOf(row, column) {
  const cell = row.cells[column];
  const text = "value" in cell.dataset ? cell.dataset.value : cell.textContent.trim();
  const number = Number(text);
  return text !== "" && !Number.isNaN(number) ? number : text;
}
function compare(a, b) {
  if (a === "" || b === "") return (a === "") - (b === "");
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}
function sortBy(heading) {
  const table = heading.closest("table");
  const body = table.tBodies[0];
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const column = heading.cellIndex;
  const rows = Array.from(body.rows);
  rows.sort((a, b) => (ascending ? 1 : -1) * compare(valueOf(a, column), valueOf(b, column)));
  body.append(...rows);
}
for (const heading of document.querySelectorAll("thead th")) {
  heading.tabIndex = 0;
  heading.addEventListener("click", () => sortBy(heading));
  heading.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sortBy(heading); }
  });
}
for (const field of document.querySelectorAll("input[data-filters]")) {
  const table = document.getElementById(field.dataset.filters);
  const shown = document.getElementById(field.dataset.filters + "-shown");
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += !row.hidden;
    }
    shown.textContent = count + " of " + table.tBodies[0].rows.length + " shown";
  };
  field.addEventListener("input", filter);
  filter();
}
document.documentElement.dataset.ready = "yes";
