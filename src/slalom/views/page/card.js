// The card with every score of a unit, beside the pointer or the focus.
(function (slalom) {
  "use strict";
  const { element } = slalom;

  slalom.card = (tip, record, view, row, target) => {
    const told = record.rows[row];
    tip.replaceChildren(element("b", {}, told.label + told.more));
    if (!told.identified) tip.append(element("small", {}, "not identified: no query says anything about it"));
    else
      tip.append(
        element(
          "div",
          {},
          record.scores
            .filter((column) => !column.advanced)
            .map((column) => [element("span", {}, column.title), slalom.cell(record, view, column, row, "span")]),
        ),
      );
    tip.hidden = false;
    const box = target.getBoundingClientRect();
    const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
    const below = box.bottom + high + 10 < innerHeight;
    tip.style.top = `${below ? box.bottom + 8 : Math.max(4, box.top - high - 8)}px`;
    tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - wide - 8))}px`;
  };
})((window.slalom = window.slalom || {}));
