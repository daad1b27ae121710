// The text with its units painted, and the sentence above it.
(function (slalom) {
  "use strict";
  const { element } = slalom;
  const FAINTEST = 0.03; // as in reading.py
  const SHADES = 9;
  const N_SHORT = 200; // pieces; a shorter text is set in larger type
  const MARKUP = /^<[^]*>$/; // tags, which are shown faintly

  slalom.side = (strength, sided) => {
    if (Math.abs(strength) < FAINTEST) return "";
    return !sided ? "unsigned s7" : strength > 0 ? "for s7" : "against s7";
  };
  slalom.shade = (strength, sided) => slalom.side(strength, sided).replace("7", Math.max(1, Math.round(Math.abs(strength) * SHADES)));

  slalom.sentence = (parts) =>
    parts.map(([text, role]) => (role ? element("b", { class: role }, text) : slalom.unbroken(text)));

  // `removed` holds the units that were clicked away.
  slalom.text = (record, view, removed) =>
    record.sides.map((side) =>
      element(
        "div",
        {},
        side.name && element("h3", {}, side.name),
        element(
          "p",
          { class: `text${side.pieces.length < N_SHORT ? " short" : ""}`, dir: "auto" },
          side.pieces.map(([text, row, unit]) =>
            row === undefined
              ? text
              : element("span", {
                  class: `w ${slalom.shade(view.strength(row), view.sided)}${removed.has(unit) ? " removed" : ""}${MARKUP.test(text) ? " markup" : ""}`,
                  "data-row": row, "data-unit": unit,
                }, text),
          ),
        ),
      ),
    );

  slalom.legend = (record, view) =>
    element(
      "figcaption",
      {},
      view.sided && [
        element("span", { class: "key for" }, "for"), " ", element("span", { class: "key against" }, "against"),
        " ", element("b", {}, view.label), " · ",
      ],
      "coloured by ", element("b", {}, view.column.title),
      view.column.title === view.column.name ? "" : ` (${view.column.name})`,
      view.column.says && `: ${view.column.says}`,
      `. ${record.units[0].toUpperCase()}${record.units.slice(1)} not clearly different from zero are left uncoloured.`,
    );
})((window.slalom = window.slalom || {}));
