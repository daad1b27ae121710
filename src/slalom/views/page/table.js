// Every score of every unit; a click on a heading sorts. The paper's single score is behind a switch.
(function (slalom) {
  "use strict";
  const { element, number, digits } = slalom;

  slalom.cell = (record, view, column, row, tag = "td") => {
    if (!record.rows[row].identified) return element(tag, {}, "–");
    const error = view.errorOf(column.name, row);
    const told = column.name === "share" ? slalom.percent(view.of("share", row)) : number(view.of(column.name, row), view.digitsOf(column));
    const measured = view.measuredOf(column.name, row);
    return element(
      tag,
      {},
      told,
      measured ? element("small", { title: "measured on the classifier itself" }, " measured") : error > 0 && element("small", {}, ` ±${column.name === "share" ? slalom.percent(error) : digits(error, view.digitsOf(column))}`),
    );
  };

  slalom.table = (record, view, advanced) => {
    const columns = record.scores.filter((column) => advanced || !column.advanced);
    const body = element(
      "tbody",
      {},
      view.order.map((row) => {
        const told = record.rows[row];
        return element(
          "tr",
          { "data-row": row },
          element("th", { scope: "row" }, told.label, element("small", {}, told.more)),
          columns.map((column) => slalom.cell(record, view, column, row)),
        );
      }),
    );
    const sort = (head, column) => {
      const size = (line) => (record.rows[line.dataset.row].identified ? view.of(column.name, line.dataset.row) : -Infinity);
      const down = head.getAttribute("aria-sort") !== "descending";
      [...body.rows].sort((a, b) => (down ? size(b) - size(a) : size(a) - size(b))).forEach((line) => body.append(line));
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    };
    const heads = columns.map((column) => {
      const head = element("th", { scope: "col", title: column.says });
      head.append(element("button", { type: "button", click: () => sort(head, column) }, column.title));
      return head;
    });
    return element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "unit"), heads)), body);
  };

  slalom.anchorLine = (view) =>
    view.anchor && element("p", { class: "small" }, `Anchor (what is always present: special tokens, a prompt): value ${number(view.anchor.value)}, importance ${number(view.anchor.importance)}.`);
})((window.slalom = window.slalom || {}));
