// How the score drifts with the sheer number of units shown, whatever they are.
(function (slalom) {
  "use strict";
  const { drawn } = slalom;
  const HEIGHT = 110;
  const WORTH = 0.1; // log-odds; a flatter curve is not shown

  slalom.mattersHere = (curve) => curve !== null && Math.max(...curve) - Math.min(...curve) >= WORTH;

  slalom.length = (curve, width) => {
    const across = slalom.axis(0, curve.length - 1, 40, width - 12);
    const up = slalom.axis(Math.min(0, ...curve), Math.max(0, ...curve), HEIGHT - 30, 8);
    const line = curve.map((g, n) => `${n ? "L" : "M"}${across(n).toFixed(1)} ${up(g).toFixed(1)}`).join("");
    return drawn(
      "svg",
      { class: "chart", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": "How the score drifts with the length of what is shown" },
      up.ticks(2).map((tick) => [
        drawn("line", { class: tick === 0 ? "zero" : "grid", x1: 40, x2: width - 12, y1: up(tick), y2: up(tick) }),
        drawn("text", { class: "tick end", x: 34, y: up(tick) + 4 }, slalom.tick(tick)),
      ]),
      drawn("path", { class: "curve", d: line }),
      drawn("text", { class: "tick", x: 40, y: HEIGHT - 8 }, "no units"),
      drawn("text", { class: "tick end", x: width - 12, y: HEIGHT - 8 }, `all ${curve.length - 1}`),
    );
  };
})((window.slalom = window.slalom || {}));
