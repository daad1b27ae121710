// The plane: across what a unit says by itself, up how loud it is, the size its share of the
// attention.
(function (slalom) {
  "use strict";
  const { drawn, number } = slalom;
  const [LEFT, RIGHT, TOP, BOTTOM] = [46, 14, 14, 50];
  const [N_LABELS, N_LOUDEST, LETTER, ROW] = [24, 3, 6.8, 13];
  const SPOTS = [ // where a label may stand beside its point: anchor and offset, the best first
    ["", 1, 0], ["end", -1, 0], ["mid", 0, -1], ["mid", 0, 1], ["", 0.7, -0.8], ["end", -0.7, -0.8], ["", 0.7, 0.8], ["end", -0.7, 0.8],
  ];

  slalom.across = (view) => (view.has("alone") ? "alone" : view.has("value") ? "value" : null);
  slalom.hasPlane = (view) => slalom.across(view) !== null && view.has("importance");

  // All of the data, but for values so far out that they would squeeze the others.
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

  // Labels of the points worth naming, where they cover neither a point nor each other.
  const labels = (points, worth, frame) => {
    const taken = points.map(({ x, y, r }) => [x - r, y - r, x + r, y + r]);
    const found = new Map();
    for (const { row, x, y, r, name } of points) {
      if (!worth.has(row) || found.size === N_LABELS) continue;
      const wide = LETTER * name.length;
      for (const [anchor, across, down] of SPOTS) {
        const [dx, dy] = [across * (r + 5), down * (r + 8) + 4];
        const left = x + dx - { "": 0, end: wide, mid: wide / 2 }[anchor];
        const box = [left, y + dy - ROW + 2, left + wide, y + dy + 3];
        const inside = box[0] > LEFT && box[2] < frame.right && box[1] > 0 && box[3] < frame.bottom;
        if (inside && !taken.some((other) => overlap(box, other))) {
          taken.push(box);
          found.set(row, [anchor, dx, dy]);
          break;
        }
      }
    }
    return found;
  };

  const frameOf = (across, up, frame, label, anchor) => [
    across.ticks(frame.right > 400 ? 5 : 3).map((tick) => [
      drawn("line", { class: tick === 0 ? "zero" : "grid", x1: across(tick), x2: across(tick), y1: TOP, y2: frame.bottom }),
      drawn("text", { class: "tick mid", x: across(tick), y: frame.bottom + 16 }, slalom.tick(tick)),
    ]),
    up.ticks().map((tick) => [
      drawn("line", { class: "grid", x1: LEFT, x2: frame.right, y1: up(tick), y2: up(tick) }),
      drawn("text", { class: "tick end", x: LEFT - 7, y: up(tick) + 4 }, slalom.tick(tick)),
    ]),
    anchor && up.holds(anchor.importance) && [
      drawn("line", { class: "always", x1: LEFT, x2: frame.right, y1: up(anchor.importance), y2: up(anchor.importance) }),
      drawn("text", { class: "tick end", x: frame.right - 4, y: up(anchor.importance) - 5 }, "what is always there"),
    ],
    drawn("text", { class: "tick", x: LEFT, y: frame.bottom + 36 }, `← against ${slalom.short(label, 14)}`),
    drawn("text", { class: "tick end", x: frame.right, y: frame.bottom + 36 }, `for ${slalom.short(label, 14)} →`),
    drawn("text", { class: "tick mid", transform: `translate(12 ${(TOP + frame.bottom) / 2}) rotate(-90)` }, "louder →"),
  ];

  slalom.plane = (record, view, width) => {
    const height = Math.round(Math.min(Math.max(width * 0.74, 300), 460));
    const frame = { right: width - RIGHT, bottom: height - BOTTOM };
    const says = slalom.across(view);
    const known = view.order.filter((row) => record.rows[row].identified);
    const across = slalom.axis(...range(known.map((row) => view.of(says, row)), [0]), LEFT, frame.right);
    const up = slalom.axis(...range(known.map((row) => view.of("importance", row)), []), frame.bottom, TOP);
    const most = Math.max(...known.map((row) => record.rows[row].share ?? 0), 1e-9);
    const points = known.map((row) => ({
      row,
      x: across(view.of(says, row)),
      y: up(view.of("importance", row)),
      r: 3 + 7 * Math.sqrt((record.rows[row].share ?? 0) / most),
      name: slalom.short(record.rows[row].label),
    }));
    const loudest = [...known].sort((a, b) => view.of("importance", b) - view.of("importance", a)).slice(0, N_LOUDEST);
    const worth = new Set([...known.filter((row) => slalom.shade(view.strength(row), true)), ...loudest]);
    const named = labels(points, worth, frame);
    return drawn(
      "svg",
      { class: "chart plane", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Across: what each unit says by itself. Up: how loud it is." },
      frameOf(across, up, frame, view.label, view.anchor),
      [...points].reverse().map(({ row, x, y, r, name }) => {
        const [anchor, dx, dy] = named.get(row) ?? ["", r + 5, 4];
        const beyond = across.holds(view.of(says, row)) && up.holds(view.of("importance", row)) ? "" : " beyond";
        return drawn(
          "g",
          { class: `p ${slalom.shade(view.strength(row), view.sided)}${beyond}${named.has(row) ? " named" : ""}`, "data-row": row, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
          drawn("circle", { r: r.toFixed(1) }),
          drawn("text", { class: anchor, x: dx, y: dy }, name),
        );
      }),
    );
  };

  slalom.planeCaption = (record, view) =>
    [
      slalom.across(view) === "alone"
        ? "Across: what the classifier says to the unit by itself, beyond the empty text."
        : "Across: where the model would end up if only the unit were heard.",
      " Up: how loud it is. Size: its share of the attention in the whole text.",
      view.anchor ? ` What is always there (special tokens, a prompt) has loudness ${number(view.anchor.importance)}.` : "",
    ].join("");
})((window.slalom = window.slalom || {}));
