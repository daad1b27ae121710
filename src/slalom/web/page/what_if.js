// What happens without some words: the classifier's new answer beside the predicted one, and the
// best order of removal as a slider with its curve.
(function (slalom) {
  "use strict";
  const live = (slalom.live = slalom.live || {});
  const { element, drawn } = slalom;
  const HEIGHT = 150;

  const asPercent = (record) => record.percent && !record.competing;
  const written = (record, score) =>
    score === null || score === undefined ? "–" : asPercent(record) ? `${slalom.percent(slalom.probability(score))}  (${slalom.number(score)})` : slalom.number(score);

  const share = (record, score) => {
    const meter = element("span", { class: "meter" }, element("span"));
    if (asPercent(record)) meter.firstChild.style.width = `${(100 * slalom.probability(score)).toFixed(1)}%`;
    return asPercent(record) ? meter : "";
  };

  // The answers as a small table; `found` is what /api/whatif returned.
  live.answers = (record, label, found, at) => {
    const pick = (scores) => (scores === null ? null : scores.length > 1 ? scores[at] : scores[0]);
    const lines = [
      ["the classifier", pick(found.said)],
      ...found.predicted.map(({ method, scores }) => [method === "lime" ? "predicted by LIME" : `predicted by ${method}`, scores && pick(scores)]),
    ];
    return element(
      "table",
      { class: "answers" },
      element("caption", {}, `for ${label}`),
      element("tbody", {}, lines.map(([who, score]) => element("tr", {}, element("th", { scope: "row" }, who), element("td", {}, score === null ? "" : share(record, score)), element("td", {}, written(record, score))))),
    );
  };

  live.curve = (record, path, step, width) => {
    const scale = asPercent(record) ? slalom.probability : (score) => score;
    const lines = [["predicted", path.predicted], ["said", path.said]].filter(([, scores]) => scores);
    const all = lines.flatMap(([, scores]) => scores.map(scale));
    const across = slalom.axis(0, Math.max(1, path.order.length), 44, width - 10);
    const up = asPercent(record) ? slalom.axis(0, 1, HEIGHT - 26, 10) : slalom.axis(Math.min(...all), Math.max(...all) + 1e-9, HEIGHT - 26, 10);
    return drawn(
      "svg",
      { class: "chart", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": "The answer as words are removed one by one" },
      up.ticks(4).map((tick) => [
        drawn("line", { class: "grid", x1: 44, x2: width - 10, y1: up(tick), y2: up(tick) }),
        drawn("text", { class: "tick end", x: 38, y: up(tick) + 4 }, asPercent(record) ? `${Math.round(100 * tick)} %` : slalom.tick(tick)),
      ]),
      drawn("line", { class: "zero", x1: across(step), x2: across(step), y1: 6, y2: HEIGHT - 26 }),
      lines.map(([name, scores]) => drawn("path", { class: `path ${name}`, d: scores.map((score, at) => `${at ? "L" : "M"}${across(at).toFixed(1)} ${up(scale(score)).toFixed(1)}`).join("") })),
      drawn("text", { class: "tick", x: 44, y: HEIGHT - 8 }, "nothing removed"),
      drawn("text", { class: "tick end", x: width - 10, y: HEIGHT - 8 }, `${path.order.length} removed`),
    );
  };

  // `host` has record(), names(), shown(), removed, setRemoved(units); names() are ids to ask about.
  live.whatIf = (host) => {
    const told = element("div", { class: "told", role: "status", "aria-live": "polite" });
    const curve = element("div", { class: "canvas" });
    const slider = element("input", { type: "range", min: 0, max: 0, value: 0, hidden: true, "aria-label": "Words removed in the best order" });
    const back = element("button", { type: "button", hidden: true, click: () => host.setRemoved([]) }, "restore all words");
    const legend = element("p", { class: "small", hidden: true }, element("span", { class: "key line said" }, "the classifier"), " ", element("span", { class: "key line predicted" }, "the explanation"));
    const find = element("button", { type: "button", click: () => order().catch(host.fail) }, "find the best order of removal");
    let path = null;
    let newest = 0;

    const order = async () => {
      find.disabled = true;
      try {
        path = await live.asked("/api/order", { explanation: (await host.names())[0], class: host.classIndex() });
      } finally {
        find.disabled = false;
      }
      slider.max = path.order.length;
      slider.hidden = false;
      legend.hidden = false;
      find.hidden = true;
      host.setRemoved([]);
    };
    const draw = () => path && curve.clientWidth > 0 && curve.replaceChildren(live.curve(host.record(), path, host.removed.size, Math.max(240, curve.clientWidth)));
    slider.addEventListener("input", () => host.setRemoved(path.order.slice(0, +slider.value)));

    const refresh = async () => {
      const turn = (newest += 1);
      const removed = [...host.removed];
      back.hidden = removed.length === 0;
      if (path) slider.value = removed.length;
      draw();
      if (!removed.length) return told.replaceChildren("Click a word to remove it; click again to restore it.");
      const found = await live.asked("/api/whatif", { explanations: await host.names(), removed });
      if (turn === newest) told.replaceChildren(live.answers(host.record(), host.label(), found, host.shown()));
    };
    const root = element(
      "section",
      { class: "whatif" },
      element("h2", {}, "What if?"),
      told,
      element("div", { class: "row" }, back, find, slider),
      curve,
      legend,
    );
    refresh().catch(host.fail);
    new ResizeObserver(draw).observe(curve);
    return { root, refresh: () => refresh().catch(host.fail), forget: () => ((path = null), (find.hidden = false), (legend.hidden = true), (slider.hidden = true), curve.replaceChildren()) };
  };
})((window.slalom = window.slalom || {}));
