// Two scatter plots of words: importance against value, and what removing a word changes against
// its score alone.
(function (slalom) {
  "use strict";
  const { drawn, number } = slalom;
  const [LEFT, RIGHT, TOP, BOTTOM] = [46, 14, 14, 50];
  const [N_LABELS, N_STRONGEST, LETTER, ROW, SURE, NEAR] = [24, 3, 6.8, 13, 1.645, 3];
  const SPOTS = [ // where a label may go beside its point: anchor and offset, the best first
    ["", 1, 0], ["end", -1, 0], ["mid", 0, -1], ["mid", 0, 1], ["", 0.7, -0.8], ["end", -0.7, -0.8], ["", 0.7, 0.8], ["end", -0.7, 0.8],
  ];

  slalom.hasPlane = (view) => view.has("value") && view.has("importance");

  // The range of the data without outliers that would squeeze the rest.
  const range = (data, always) => {
    const sorted = [...data].sort((a, b) => a - b);
    const at = (share) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
    const spread = 4 * (at(0.95) - at(0.05));
    const inner = [...always, ...data.filter((x) => x >= at(0.05) - spread && x <= at(0.95) + spread)];
    const [low, high] = inner.length ? [Math.min(...inner), Math.max(...inner)] : [0, 0];
    const room = 0.08 * (high - low) || 1;
    return [low - room, high + room];
  };

  const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

  // Places for labels of points worth naming, so that they cover neither a point nor each other.
  // Equal words at one place are named once.
  const labels = (points, worth, frame) => {
    const taken = points.map(({ x, y, r }) => [x - r, y - r, x + r, y + r]);
    const [found, told] = [new Map(), new Set()];
    for (const { row, x, y, r, name } of points) {
      const same = `${name.toLowerCase()} ${x} ${y}`;
      if (!worth.has(row) || found.size === N_LABELS || told.has(same)) continue;
      const wide = LETTER * name.length;
      for (const [anchor, across, down] of SPOTS) {
        const [dx, dy] = [across * (r + 5), down * (r + 8) + 4];
        const left = x + dx - { "": 0, end: wide, mid: wide / 2 }[anchor];
        const box = [left, y + dy - ROW + 2, left + wide, y + dy + 3];
        const inside = box[0] > LEFT && box[2] < frame.right && box[1] > 0 && box[3] < frame.bottom;
        if (inside && !taken.some((other) => overlap(box, other))) {
          taken.push(box);
          found.set(row, [anchor, dx, dy]);
          told.add(same);
          break;
        }
      }
    }
    return found;
  };

  const spreadOf = (numbers) => {
    const mean = numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
    return Math.sqrt(numbers.reduce((sum, x) => sum + (x - mean) ** 2, 0) / numbers.length);
  };

  // Where the 90 % intervals across and up begin and end.
  const intervals = (axes, { at, errors }) =>
    errors.map((error, n) => [-1, 1].map((side) => axes[n](at[n] + side * SURE * error)).sort((a, b) => a - b));

  // Rows whose crosses can be told apart: none runs into that of a stronger word.
  const apart = (points, axes) => {
    const taken = [];
    const clear = ({ x, y, ...point }) => {
      const [[left, right], [top, bottom]] = intervals(axes, point);
      const arms = [[left, y - NEAR, right, y + NEAR], [x - NEAR, top, x + NEAR, bottom]];
      return !arms.some((arm) => taken.some((other) => overlap(arm, other))) && taken.push(...arms);
    };
    return new Set(points.filter(clear).map(({ row }) => row));
  };

  // 90 % intervals as a cross through the point.
  const cross = (axes, point) => {
    const [ends, { x, y }] = [intervals(axes, point), point];
    return drawn("path", { class: "cross", d: `M${(ends[0][0] - x).toFixed(1)} 0H${(ends[0][1] - x).toFixed(1)}M0 ${(ends[1][0] - y).toFixed(1)}V${(ends[1][1] - y).toFixed(1)}` });
  };

  const grid = (across, up, frame) => [
    across.ticks(frame.right > 400 ? 5 : 3).map((tick) => [
      drawn("line", { class: "grid", x1: across(tick), x2: across(tick), y1: TOP, y2: frame.bottom }),
      drawn("text", { class: "tick mid", x: across(tick), y: frame.bottom + 16 }, slalom.tick(tick)),
    ]),
    up.ticks().map((tick) => [
      drawn("line", { class: "grid", x1: LEFT, x2: frame.right, y1: up(tick), y2: up(tick) }),
      drawn("text", { class: "tick end", x: LEFT - 7, y: up(tick) + 4 }, slalom.tick(tick)),
    ]),
  ];

  const sides = (frame, [left, right, upwards]) => [
    drawn("text", { class: "tick", x: LEFT, y: frame.bottom + 36 }, left),
    drawn("text", { class: "tick end", x: frame.right, y: frame.bottom + 36 }, right),
    drawn("text", { class: "tick mid", transform: `translate(12 ${(TOP + frame.bottom) / 2}) rotate(-90)` }, upwards),
  ];

  // Words as points: `names` of the scores across and up, `worth` of rows to be named.
  const scatter = (record, view, { rows, names, axes, frame, radius, worth, titles, behind, told }) => {
    const [across, up] = axes;
    const places = rows.map((row) => names.map((name) => view.of(name, row)));
    const spreads = names.map((_, n) => spreadOf(places.map((place) => place[n])));
    const points = rows.map((row, n) => ({
      row,
      at: places[n],
      x: across(places[n][0]),
      y: up(places[n][1]),
      r: radius(row),
      name: slalom.short(record.rows[row].label),
      errors: names.map((name) => view.errorOf(name, row) ?? 0),
    }));
    const named = labels(points, worth, frame);
    const faint = ({ errors }) => errors.some((error, n) => error > spreads[n]);
    const crossed = apart(points.filter((point) => named.has(point.row) && !faint(point)), axes);
    return drawn(
      "svg",
      { class: "chart plane", width: frame.right + RIGHT, height: frame.bottom + BOTTOM, viewBox: `0 0 ${frame.right + RIGHT} ${frame.bottom + BOTTOM}`, role: "img", "aria-label": told },
      grid(across, up, frame),
      behind,
      sides(frame, titles),
      [...points].reverse().map((point) => {
        const { row, at, x, y, r, name, errors } = point;
        const [anchor, dx, dy] = named.get(row) ?? ["", r + 5, 4];
        const kinds = [
          slalom.shade(view.strength(row), view.sided),
          across.holds(at[0]) && up.holds(at[1]) ? "" : "beyond",
          faint(point) ? "faint" : "",
          named.has(row) ? "named" : "",
          crossed.has(row) ? "crossed" : "",
        ];
        return drawn(
          "g",
          { class: `p ${kinds.filter(Boolean).join(" ")}`, "data-row": row, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
          errors.some((error) => error > 0) && cross(axes, point),
          drawn("circle", { r: r.toFixed(1) }),
          drawn("text", { class: anchor, x: dx, y: dy }, name),
        );
      }),
    );
  };

  const frameOf = (width, height) => ({ right: width - RIGHT, bottom: Math.round(height) - BOTTOM });
  const sideTitles = (label) => [`← against ${slalom.short(label, 14)}`, `for ${slalom.short(label, 14)} →`];
  const strong = (view, rows) => rows.filter((row) => slalom.shade(view.strength(row), true));

  slalom.plane = (record, view, width) => {
    const frame = frameOf(width, Math.min(Math.max(width * 0.74, 300), 460));
    const rows = view.order.filter((row) => record.rows[row].identified);
    const [values, importances] = ["value", "importance"].map((name) => rows.map((row) => view.of(name, row)));
    const most = Math.max(...rows.map((row) => record.rows[row].share ?? 0), 1e-9);
    const empty = view.anchor ? view.anchor.value : 0;
    const across = slalom.axis(...range(values, [empty]), LEFT, frame.right);
    const up = slalom.axis(...range(importances, []), frame.bottom, TOP);
    const strongest = [...rows].sort((a, b) => view.of("importance", b) - view.of("importance", a)).slice(0, N_STRONGEST);
    const always = view.anchor && up.holds(view.anchor.importance) && up(view.anchor.importance);
    return scatter(record, view, {
      ...{ rows, frame, names: ["value", "importance"], axes: [across, up] },
      radius: (row) => 3 + 7 * Math.sqrt((record.rows[row].share ?? 0) / most),
      worth: new Set([...strong(view, rows), ...strongest]),
      titles: [...sideTitles(view.label), "more attention →"],
      behind: [
        drawn("line", { class: "zero", x1: across(empty), x2: across(empty), y1: TOP, y2: frame.bottom }),
        always && [
          drawn("line", { class: "always", x1: LEFT, x2: frame.right, y1: always, y2: always }),
          drawn("text", { class: "tick end", x: frame.right - 4, y: always - 5 }, "anchor"),
        ],
      ],
      told: "Across: value. Up: importance.",
    });
  };

  slalom.planeCaption = (record, view) =>
    [
      record.two_scores.told,
      view.attention,
      "Across: value, the score of the unit if all attention rested on it; the line marks the empty text. Up: importance. Size: its share of the attention in the full text.",
      view.has("value") && record.rows.some((_, row) => view.errorOf("value", row) > 0) ? "Crosses: 90 % intervals; point at any word for its own. Faint: uncertain." : "",
      view.anchor ? `The anchor (what is always present: special tokens, a prompt) has importance ${number(view.anchor.importance)}.` : "",
    ].filter(Boolean).join(" ");

  slalom.context = (record, view, width) => {
    const side = Math.min(width, 480);
    const frame = frameOf(side, side - RIGHT - TOP);
    const rows = view.order.filter((row) => record.rows[row].identified && view.measuredOf("alone", row) && view.measuredOf("removal", row));
    const ends = range(rows.flatMap((row) => [view.of("alone", row), view.of("removal", row)]), [0]);
    const across = slalom.axis(...ends, LEFT, frame.right);
    const up = slalom.axis(...ends, frame.bottom, TOP);
    const apart = (row) => Math.abs(view.of("alone", row) - view.of("removal", row));
    const striking = [...rows].sort((a, b) => apart(b) - apart(a)).slice(0, N_STRONGEST);
    const line = (kind, x1, y1, x2, y2) => drawn("line", { class: kind, x1: across(x1), y1: up(y1), x2: across(x2), y2: up(y2) });
    return scatter(record, view, {
      ...{ rows, frame, names: ["alone", "removal"], axes: [across, up] },
      radius: () => 5,
      worth: new Set([...striking, ...strong(view, rows)]),
      titles: [...sideTitles(view.label), "removed from the text →"],
      behind: [line("zero", 0, ends[0], 0, ends[1]), line("zero", ends[0], 0, ends[1], 0), line("always", ends[0], ends[0], ends[1], ends[1])],
      told: "Across: the score of each unit alone. Up: what removing it from the text takes away.",
    });
  };

  slalom.contextCaption = (record, view) =>
    `${view.context} Across: the score of the word alone. Up: what removing it takes away. On the dashed line both are equal and effects add up; elsewhere the other words change what a word does. All measured on the classifier itself.`;
})((window.slalom = window.slalom || {}));
