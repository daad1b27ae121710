// How the score depends on the number of units shown, whatever they are.
(function (slalom) {
  "use strict";
  const { drawn } = slalom;
  const HEIGHT = 110;
  const WORTH = 0.1; // log-odds; a flatter curve is not shown
  const SURE = 1.645;

  slalom.mattersHere = (curve) => curve !== null && Math.max(...curve) - Math.min(...curve) >= WORTH;

  // `errors`: standard errors, or null; the band is a 90 % interval at each size.
  slalom.length = (curve, errors, width) => {
    const across = slalom.axis(0, curve.length - 1, 40, width - 12);
    const [below, above] = [-1, 1].map((side) => curve.map((g, n) => g + side * SURE * (errors?.[n] ?? 0)));
    const up = slalom.axis(Math.min(0, ...below), Math.max(0, ...above), HEIGHT - 30, 8);
    const marks = up.ticks(2).length > 1 ? up.ticks(2) : up.ticks(4); // a zero alone is no scale
    const at = (g, n) => `${across(n).toFixed(1)} ${up(g).toFixed(1)}`;
    const line = "M" + curve.map(at).join("L");
    const band = "M" + [...above.map(at), ...below.map(at).reverse()].join("L") + "Z";
    return drawn(
      "svg",
      { class: "chart", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": "The part of the score that depends on length alone" },
      marks.map((tick) => [
        drawn("line", { class: tick === 0 ? "zero" : "grid", x1: 40, x2: width - 12, y1: up(tick), y2: up(tick) }),
        drawn("text", { class: "tick end", x: 34, y: up(tick) + 4 }, slalom.tick(tick)),
      ]),
      errors && drawn("path", { class: "band", d: band }),
      drawn("path", { class: "curve", d: line }),
      drawn("text", { class: "tick", x: 40, y: HEIGHT - 8 }, "no units"),
      drawn("text", { class: "tick end", x: width - 12, y: HEIGHT - 8 }, `all ${curve.length - 1}`),
    );
  };
})((window.slalom = window.slalom || {}));
