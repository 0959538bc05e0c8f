"use strict";
// A click on a column's title sorts by it, a second click the other way round. What is no number comes last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(table.tBodies[0], column, head.classList.contains("n"), up ? 1 : -1);
    });
  });
}

function sort(body, column, byNumber, sign) {
  const rows = [...body.rows].map((row) => {
    const text = row.cells[column].textContent;
    return { row, key: byNumber ? parseFloat(text) : text };
  });
  const isMissing = (key) => (byNumber ? Number.isNaN(key) : key === "–");
  rows.sort((a, b) => {
    if (isMissing(a.key) || isMissing(b.key)) return isMissing(a.key) - isMissing(b.key);
    return sign * (byNumber ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true }));
  });
  body.replaceChildren(...rows.map(({ row }) => row));
}
