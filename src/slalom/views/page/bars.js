// The strongest units as sorted bars around a zero line, with 90 % intervals.
(function (slalom) {
  "use strict";
  const { drawn, number } = slalom;
  const LINE = 26;
  const SURE = 1.645;
  slalom.N_BARS = 14;

  const reach = (view, rows) => {
    const ends = rows.flatMap((row) => {
      const [score, error] = [view.score(row), view.error(row) ?? 0];
      return [score, score - SURE * error, score + SURE * error];
    });
    const peak = Math.max(...rows.map((row) => Math.abs(view.score(row))), 1e-9);
    const inside = (x) => Math.min(Math.max(x, -1.6 * peak), 1.6 * peak); // a wide interval may be cut off
    return [Math.min(0, ...ends.map(inside)), Math.max(0, ...ends.map(inside))];
  };

  const bar = (view, row, y, place) => {
    const score = view.score(row);
    const [from, to] = [place(Math.min(0, score)), place(Math.max(0, score))];
    const error = view.error(row);
    const middle = y + LINE / 2;
    const whisker = error > 0 && [place(score - SURE * error), place(score + SURE * error)];
    return [
      drawn("rect", { x: from, y: y + 4, width: Math.max(to - from, 1), height: LINE - 8, rx: 2 }),
      whisker && drawn("path", { class: "whisker", d: `M${whisker[0]} ${middle}H${whisker[1]}M${whisker[0]} ${middle - 3}v6M${whisker[1]} ${middle - 3}v6` }),
    ];
  };

  slalom.bars = (record, view, width, all) => {
    const known = view.order.filter((row) => record.rows[row].identified);
    const rows = all ? known : known.slice(0, slalom.N_BARS);
    const longest = Math.max(4, ...rows.map((row) => (record.rows[row].label + record.rows[row].more).length));
    const wide = Math.min(8 * longest, 170, width * 0.3);
    const numbers = Math.min(112, width * 0.26);
    const [low, high] = reach(view, rows);
    const place = slalom.axis(low, high, wide + 8, width - numbers - 8);
    const height = LINE * rows.length + 34;
    const letters = Math.floor(wide / 7.4);
    const zero = place(0);
    const mixed = view.measuredAny;
    return drawn(
      "svg",
      { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `The strongest units by ${view.column.title}` },
      place.ticks(4).map((tick) => [
        drawn("line", { class: tick === 0 ? "zero" : "grid", x1: place(tick), x2: place(tick), y1: 0, y2: height - 32 }),
        drawn("text", { class: "tick mid", x: place(tick), y: height - 18 }, slalom.tick(tick)),
      ]),
      view.sided && [
        low < 0 && zero - place(low) > 60 && drawn("text", { class: "tick end", x: zero - 8, y: height - 3 }, "← lowers"),
        high > 0 && drawn("text", { class: "tick", x: zero + 8, y: height - 3 }, "raises →"),
      ],
      rows.map((row, at) => {
        const y = LINE * at;
        const told = record.rows[row];
        const error = view.error(row);
        const state = mixed && !view.measured(row) ? " estimated" : "";
        return drawn(
          "g",
          { class: `p ${slalom.side(view.strength(row), view.sided)}${state}`, "data-row": row },
          drawn("rect", { class: "hit", x: 0, y, width, height: LINE }),
          drawn("text", { class: "name end", x: wide, y: y + 17 }, slalom.short(told.label + told.more, letters)),
          bar(view, row, y, place),
          drawn("text", { class: "amount end", x: width - numbers + 46, y: y + 17 }, number(view.score(row), view.column.digits)),
          error > 0 && drawn("text", { class: "tick", x: width - numbers + 52, y: y + 17 }, `±${slalom.digits(error, view.column.digits)}`),
        );
      }),
    );
  };
})((window.slalom = window.slalom || {}));
