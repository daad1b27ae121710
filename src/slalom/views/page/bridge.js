// From the empty text to the answer, step by step.
(function (slalom) {
  "use strict";
  const { drawn, number } = slalom;
  const LINE = 28;
  const NAMES = { base: "empty text", open: "unexplained", answer: "full text" };

  slalom.bridge = (record, view, width) => {
    const steps = view.bridge;
    const wide = Math.min(164, width * 0.32);
    const numbers = Math.min(132, width * 0.3);
    const ends = steps.flatMap((step) => [step.start, step.end]);
    const place = slalom.axis(Math.min(...ends), Math.max(...ends) + 1e-9, wide + 8, width - numbers - 8);
    const height = LINE * steps.length + 34;
    const asPercent = record.percent && !record.competing;
    return drawn(
      "svg",
      { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "From the empty text to the answer, step by step" },
      place.ticks(4).map((tick) => [
        drawn("line", { class: tick === 0 ? "zero" : "grid", x1: place(tick), x2: place(tick), y1: 0, y2: height - 32 }),
        drawn("text", { class: "tick mid", x: place(tick), y: height - 18 }, slalom.tick(tick)),
      ]),
      drawn("text", { class: "tick end", x: width, y: height - 3 }, asPercent ? "log-odds · probability after the step" : record.explained.measure),
      steps.map((step, at) => {
        const y = LINE * at;
        const total = step.kind === "base" || step.kind === "answer";
        const [from, to] = [place(Math.min(step.start, step.end)), place(Math.max(step.start, step.end))];
        const side = total ? "total" : step.end >= step.start ? "for s7" : "against s7";
        const label = step.kind === "unit" || step.kind === "others" ? step.label : NAMES[step.kind];
        return drawn(
          "g",
          { class: `p ${side}`, "data-row": step.row },
          drawn("rect", { class: "hit", x: 0, y, width, height: LINE }),
          drawn("text", { class: `name end${step.kind === "unit" ? "" : " soft"}`, x: wide, y: y + 18 }, slalom.short(label, Math.floor(wide / 6.8))),
          drawn("rect", { x: from, y: y + 5, width: Math.max(to - from, 1.5), height: LINE - 10, rx: 2 }),
          at + 1 < steps.length && drawn("line", { class: "link", x1: place(step.end), x2: place(step.end), y1: y + LINE - 5, y2: y + LINE + 5 }),
          drawn("text", { class: `amount end${total ? " strong" : ""}`, x: width - numbers + 56, y: y + 18 }, number(total ? step.end : step.end - step.start)),
          asPercent && drawn("text", { class: `tick end${total ? " strong" : ""}`, x: width, y: y + 18 }, slalom.percent(slalom.probability(step.end))),
        );
      }),
    );
  };
})((window.slalom = window.slalom || {}));
