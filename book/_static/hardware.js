// The overviews of accelerators and of runs: sorted by the head of a column, filtered by words.
"use strict";
for (const part of document.querySelectorAll(".sm-hardware")) {
  const [body] = part.querySelector("table").tBodies;
  const heads = [...part.querySelectorAll("thead th")];
  const rows = [...body.rows]; // in the records' order, which settles ties

  const text = (row, column) => row.cells[column].textContent;
  const number = (row, column) => parseFloat(text(row, column).replaceAll(",", ""));

  const byName = (a, b) => text(a, 0).localeCompare(text(b, 0), "en", { numeric: true });

  /** Numbers in the order that `sign` says; what is not published stays last. */
  const byNumber = (column, sign) => (a, b) => {
    const [x, y] = [number(a, column), number(b, column)];
    return Number.isNaN(x) - Number.isNaN(y) || sign * (x - y) || 0;
  };

  // Names begin at A, numbers with the largest; the same button again turns the order.
  function sort(column) {
    const first = column ? "descending" : "ascending";
    const other = column ? "ascending" : "descending";
    const order = heads[column].getAttribute("aria-sort") === first ? other : first;
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const compare = column ? byNumber(column, sign) : (a, b) => sign * byName(a, b);
    body.append(...[...rows].sort(compare));
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column));
    head.append(button);
  });

  const filter = part.querySelector(".sm-filter");
  const field = filter.querySelector("input");

  /** Show the rows that have every word of the field. */
  function show() {
    const words = field.value.toLowerCase().split(/\s+/);
    const shown = rows.filter((row) => {
      row.hidden = !words.every((word) => row.dataset.words.includes(word));
      return !row.hidden;
    });
    const count = `${shown.length} of ${rows.length} shown`;
    filter.querySelector("[role=status]").textContent = count;
  }

  field.addEventListener("input", show);
  filter.hidden = false;
  show();
}
