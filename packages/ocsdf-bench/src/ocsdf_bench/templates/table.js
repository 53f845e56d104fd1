"use strict";
// Sorting: a button in each column's head; rows with class "summary" stay at the bottom.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("number");
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const rows = [...body.rows].filter((row) => !row.classList.contains("summary"));
      const summary = [...body.rows].filter((row) => row.classList.contains("summary"));
      const key = (row) => {
        const cell = row.cells[column];
        return numeric ? (cell.dataset.value ? Number(cell.dataset.value) : NaN) : cell.textContent.trim();
      };
      rows.sort((a, b) => {
        const x = key(a), y = key(b);
        if (!numeric) return (down ? -1 : 1) * x.localeCompare(y, undefined, { numeric: true });
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return (down ? -1 : 1) * (x - y);
      });
      body.append(...rows, ...summary);
    });
  });
}
// Filters: each control names a data attribute of the rows; "" admits all.
const form = document.querySelector("form.filters");
if (form) {
  const rows = [...document.querySelectorAll("table.filtered tbody tr")];
  const count = document.getElementById("count");
  const apply = () => {
    let shown = 0;
    for (const row of rows) {
      const admitted = [...form.elements].every((control) => {
        if (!control.name || control.value === "") return true;
        if (control.name === "text") {
          return row.textContent.toLowerCase().includes(control.value.toLowerCase());
        }
        // A clean result holds under every threat.
        return [control.value, "any"].includes(row.dataset[control.name]);
      });
      row.hidden = !admitted;
      shown += admitted;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}
